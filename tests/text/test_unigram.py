"""The unigram trainer beside a slow one that lists every way to cut a word."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.text.unigram import _candidates, _Lattice, train_unigram

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=6)


def cuts(word: str, pieces: list[str]) -> Iterator[list[str]]:
    """Every way to cut a word into pieces."""
    if not word:
        yield []
    for piece in pieces:
        if word.startswith(piece):
            yield from ([piece, *rest] for rest in cuts(word[len(piece) :], pieces))


@given(WORDS, st.data())
def test_expected_counts_are_those_of_all_cuts(words: dict[str, int], data: st.DataObject) -> None:
    longer = data.draw(st.sets(st.text("abc", min_size=2, max_size=4), max_size=6))
    pieces = sorted({"a", "b", "c", *longer})
    scores = np.log(np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=len(pieces), max_size=len(pieces)))))
    by_name = dict(zip(pieces, scores.tolist(), strict=True))
    wanted = dict.fromkeys(pieces, 0.0)
    for word, count in words.items():
        ways = [(way, math.exp(sum(by_name[piece] for piece in way))) for way in cuts(word, pieces)]
        total = sum(weight for _, weight in ways)
        for way, weight in ways:
            for piece in way:
                wanted[piece] += count * weight / total
    lattice = _Lattice(list(words), {piece: number for number, piece in enumerate(pieces)})
    found = lattice.expected(scores, np.array(list(words.values()), dtype=np.float64))
    np.testing.assert_allclose(found, [wanted[piece] for piece in pieces], rtol=1e-9, atol=1e-12)
    best = lattice.forward(scores, np.maximum)[lattice.last]
    slow = [max(sum(by_name[piece] for piece in way) for way in cuts(word, pieces)) for word in words]
    np.testing.assert_allclose(best, slow, rtol=1e-12)


def test_the_best_cut_that_is_not_the_piece_itself() -> None:
    names = ["a", "ab", "b"]
    lattice = _Lattice(names, {name: number for number, name in enumerate(names)}, proper=True)
    best = lattice.forward(np.array([-1.0, -0.5, -2.0]), np.maximum)[lattice.last]
    assert best.tolist() == [-math.inf, -3.0, -math.inf]


@given(WORDS, st.integers(3, 30))
def test_size_alphabet_and_shares(words: dict[str, int], entries: int) -> None:
    pieces = train_unigram(words, ["c", "a", "b"], entries)
    assert len(pieces) <= entries
    assert {"a", "b", "c"} <= {piece for piece, _ in pieces}
    assert sum(math.exp(score) for _, score in pieces) == pytest.approx(1, abs=1e-4)
    assert pieces == train_unigram(dict(reversed(words.items())), ["a", "b", "c"], entries)
    assert [score for _, score in pieces] == sorted((score for _, score in pieces), reverse=True)


@given(WORDS)
def test_candidates_are_all_that_is_seen_twice(words: dict[str, int]) -> None:
    wanted: dict[str, int] = {}
    for word, count in words.items():
        for begin in range(len(word)):
            for end in range(begin + 2, len(word) + 1):
                wanted[word[begin:end]] = wanted.get(word[begin:end], 0) + count
    assert _candidates(list(words.items()), 1000) == {piece: count for piece, count in wanted.items() if count >= 2}


def test_a_very_long_word_is_neither_slow_nor_impossible() -> None:
    pieces = dict(train_unigram({"abcd" * 2000: 2}, list("abcd"), 20))
    assert max(map(len, pieces)) > 4
    assert all(math.isfinite(score) for score in pieces.values())
