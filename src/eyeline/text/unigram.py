"""A unigram language model of pieces learnt from counted words (Kudo 2018, section 3.2). Knows strings and arrays, no files.

The `tokenizers` library has a trainer of its own. It is not used because the same words give it other pieces from one run to the
next (its hash maps are seeded at random and break ties), because it exceeds small sizes, and because a word that is the
beginning of no other is never a candidate. Encoding is the library's.

Letters: W words, P pieces, E edges (a piece at a place in a word), N nodes (the places between characters).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LONGEST = 16  # characters of a piece
MOST_CHARACTERS = 500_000  # of distinct words, the most frequent first: bounds time (some 20 s) and memory (some 500 MB)
CANDIDATES = 20_000, 10  # to begin with: at least so many, and so many an entry
SHRINK = 0.75  # Kudo 2018 keeps 80 % a round; SentencePiece's 75 % is nearly as good and a third faster
LEAST = 0.5  # a piece expected less often than this is given up, as in SentencePiece

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class _Lattice:
    """Every way to put strings together from pieces. Each string's characters are pieces, so there always is one."""

    def __init__(self, strings: Sequence[str], numbers: Mapping[str, int], proper: bool = False) -> None:
        """`proper` leaves out the piece that is the whole string."""
        begins, ends, pieces, places = [], [], [], []
        sizes = np.array([len(string) for string in strings], dtype=np.int64)
        self.last = np.cumsum(sizes + 1) - 1  # [W] the last node of each
        self.first = self.last - sizes  # [W]
        for string, base in zip(strings, self.first.tolist(), strict=True):
            size = len(string)
            for begin in range(size):
                for end in range(begin + 1, min(size, begin + LONGEST) + 1):
                    number = numbers.get(string[begin:end])
                    if number is not None and not (proper and end - begin == size):
                        begins.append(base + begin)
                        ends.append(base + end)
                        pieces.append(number)
                        places.append(begin)
        # Edges that begin at one place of their words have ends of their own, so that a level can be added up at once.
        order = np.argsort(np.array(places, dtype=np.int64), kind="stable")
        self.begins, self.ends, self.pieces, self.places = (
            np.array(values, dtype=np.int64)[order] for values in (begins, ends, pieces, places)
        )  # [E]
        self.words = np.repeat(np.arange(len(strings)), self.last - self.first + 1)  # [N] the string of each node

    def keep(self, alive: NDArray[np.bool_]) -> None:
        """Drops the edges of pieces that are not alive [P]."""
        kept = alive[self.pieces]
        self.begins, self.ends, self.pieces, self.places = (
            values[kept] for values in (self.begins, self.ends, self.pieces, self.places)
        )

    def forward(self, scores: Floats, join: np.ufunc) -> Floats:
        """[N]: all ways from a string's beginning to each node, joined by log-sum-exp (sum) or maximum (best)."""
        values = np.full(len(self.words), -np.inf)
        values[self.first] = 0.0
        for level in _levels(self.places):
            ends = self.ends[level]
            values[ends] = join(values[ends], values[self.begins[level]] + scores[self.pieces[level]])
        return values

    def backward(self, scores: Floats) -> Floats:
        """[N]: all ways from each node to its string's end, summed. A level is what ends at one place of its words."""
        places = self.ends - self.first[self.words[self.ends]]  # [E]
        order = np.argsort(-places, kind="stable")
        values = np.full(len(self.words), -np.inf)
        values[self.last] = 0.0
        for level in _levels(places[order]):
            edges = order[level]
            begins = self.begins[edges]
            values[begins] = np.logaddexp(values[begins], values[self.ends[edges]] + scores[self.pieces[edges]])
        return values

    def expected(self, scores: Floats, counts: Floats) -> Floats:
        """[P]: how often each piece is expected when the strings are seen `counts` [W] times."""
        ahead, behind = self.forward(scores, np.logaddexp), self.backward(scores)
        words = self.words[self.begins]
        total = ahead[self.last]
        likely = np.exp(ahead[self.begins] + scores[self.pieces] + behind[self.ends] - total[words])  # [E]
        weights = likely * counts[words]
        return np.bincount(self.pieces, weights=weights, minlength=len(scores)).astype(np.float64, copy=False)


def train_unigram(words: Mapping[str, int], alphabet: Sequence[str], entries: int) -> list[tuple[str, float]]:
    """(piece, natural-log probability), the likeliest first, ties by code point.

    Args:
        words: how often each is seen; of characters of the alphabet.
        alphabet: every one of them becomes a piece.
        entries: the most pieces.
    """
    assert len(alphabet) <= entries, "each character needs an entry"
    counted = _most_frequent_words(words)
    seeds = _candidates(counted, max(CANDIDATES[0], CANDIDATES[1] * entries))
    names = sorted({*alphabet, *seeds})
    numbers = {name: number for number, name in enumerate(names)}
    single = np.array([len(name) == 1 for name in names], dtype=bool)  # [P]
    lattice = _Lattice([word for word, _ in counted], numbers)
    apart = _Lattice(names, numbers, proper=True)
    counts = np.array([count for _, count in counted], dtype=np.float64)
    letters = Counter[str]()
    for word, count in counted:
        for letter in word:
            letters[letter] += count
    alive = np.ones(len(names), dtype=bool)
    scores = _log_shares(np.array([seeds.get(name, letters[name]) for name in names], dtype=np.float64), alive)
    while True:
        for _ in range(2):
            expected = lattice.expected(scores, counts)
            alive &= single | (expected >= LEAST)
            scores = _log_shares(expected, alive)
            lattice.keep(alive)
            apart.keep(alive)
        living = int(alive.sum())
        if living <= entries:
            break
        cut = apart.forward(scores, np.maximum)[apart.last]  # [P], the best way without the piece itself
        loss = np.where(single, np.inf, -np.inf)  # in nats, if the piece were given up; characters never are
        weighed = alive & ~single
        loss[weighed] = expected[weighed] * (scores - cut)[weighed]
        chosen = np.argsort(-np.round(loss, 6), kind="stable")[: max(entries, int(SHRINK * living))]  # ties by code point
        alive = np.zeros_like(alive)
        alive[chosen] = True
        lattice.keep(alive)
        apart.keep(alive)
    found = [(names[number], round(float(scores[number]), 6)) for number in np.flatnonzero(alive)]
    return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def _levels(places: Integers) -> list[slice]:
    """Runs of equal values."""
    edges = np.flatnonzero(np.diff(places)) + 1
    bounds = [0, *edges.tolist(), len(places)]
    return [slice(begin, end) for begin, end in pairwise(bounds) if begin < end]


def _log_shares(counts: Floats, alive: NDArray[np.bool_]) -> Floats:
    """Natural logarithms of shares; a living piece counts as half an occurrence at least, so that none is impossible."""
    counts = np.maximum(counts, LEAST)
    return np.asarray(np.log(counts) - np.log(counts[alive].sum()))


def _most_frequent_words(words: Mapping[str, int]) -> list[tuple[str, int]]:
    counted = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    sizes = np.cumsum([len(word) for word, _ in counted])
    return counted[: int(np.searchsorted(sizes, MOST_CHARACTERS, side="right"))] or counted[:1]


def _candidates(words: Sequence[tuple[str, int]], most: int) -> dict[str, int]:
    """What is seen at least twice, and how often, longer than a character; the `most` that cover the most characters.

    Grown by a character at a time from what is frequent itself, so that memory is bounded by the words' length.
    """
    found: dict[str, int] = {}
    known: dict[str, int] | None = None
    for size in range(2, LONGEST + 1):
        counts = Counter[str]()
        for word, count in words:
            for begin in range(len(word) - size + 1):
                piece = word[begin : begin + size]
                if known is None or (piece[1:] in known and piece[:-1] in known):
                    counts[piece] += count
        known = {piece: count for piece, count in counts.items() if count >= 2}
        found.update(known)
    ranked = sorted(found.items(), key=lambda item: (-item[1] * len(item[0]), item[0]))
    return dict(ranked[:most])
