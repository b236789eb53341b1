"""Word alignments: Pharaoh lines, links out of attention, and their error rate. Knows index pairs and weights; no model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from eyeline.errors import DataError, UserError
from eyeline.metrics.base import Numbers

Link = tuple[int, int]  # (source, target), both from 0
Links = frozenset[Link]

_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


class GoldLinks(NamedTuple):
    """Links of one line of a gold alignment; every sure link is also possible (Och & Ney 2003, section 4)."""

    sure: Links
    possible: Links


@dataclass(frozen=True)
class AlignmentScores:
    """Pooled over lines, in percent; `links` and `sure` are the numbers they rest on."""

    precision: float
    recall: float
    f1: float
    aer: float
    links: int
    sure: int


@dataclass(frozen=True)
class LinkCounts:
    """What alignment scores are made of: counts of lines add up to those of all of them."""

    made: int = 0  # |A|
    sure: int = 0  # |S|
    in_sure: int = 0  # |A ∩ S|
    in_possible: int = 0  # |A ∩ P|

    @classmethod
    def of(cls, links: Iterable[Link], sure: Iterable[Link], possible: Iterable[Link] = ()) -> Self:
        """Those of one line; sure links count as possible whether `possible` repeats them or not."""
        made, certain = set(links), set(sure)
        return cls(len(made), len(certain), len(made & certain), len(made & (certain | set(possible))))

    def __add__(self, other: LinkCounts) -> LinkCounts:
        return LinkCounts(
            self.made + other.made,
            self.sure + other.sure,
            self.in_sure + other.in_sure,
            self.in_possible + other.in_possible,
        )

    def scores(self) -> AlignmentScores:
        """Precision, recall, F1 and error rate after Och & Ney 2003, section 4; see `alignment_scores`."""
        nothing = 100.0 if self.made == self.sure == 0 else 0.0
        precision = _percent(self.in_possible, self.made, nothing)
        recall = _percent(self.in_sure, self.sure, 100.0 if self.made == self.in_possible else 0.0)
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        aer = 100 - _percent(self.in_sure + self.in_possible, self.made + self.sure, 100.0)
        return AlignmentScores(precision, recall, f1, aer, self.made, self.sure)


def parse_links(text: str, path: str | Path = "", line: int | None = None) -> GoldLinks:
    """One Pharaoh line, `0-0 1p2`: source-target, `-` for a sure link and `p` for a possible one. A blank line has no links.

    Raises:
        DataError: naming `path`, `line` and the part that is no link.
    """
    sure, possible = set(), set()
    for part in text.split():
        match = _LINK.fullmatch(part)
        if not match:
            raise DataError(f"'{part}' is not an alignment link", path, line, "links are written 0-0, or 0p0 where only possible")
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def parse_alignment(lines: Iterable[str], path: str | Path = "") -> list[GoldLinks]:
    """Every line of a Pharaoh file. Raises DataError with the file and the line number of the first fault."""
    return [parse_links(text, path, number) for number, text in enumerate(lines, 1)]


def format_links(sure: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """A Pharaoh line, by source and then by target position; links that are only possible get a `p`."""
    certain = set(sure)
    return " ".join(f"{i}{'-' if (i, j) in certain else 'p'}{j}" for i, j in sorted(certain | set(possible)))


def links_from_attention(weights: ArrayLike, source_length: int, target_length: int) -> Links:
    """Hard links out of an attention matrix [T, S]: each target row is linked to its heaviest source column.

    Rows are the target tokens produced at each step. `source_length` and `target_length` count real tokens, without END:
    columns and rows beyond them (END, padding) are neither linked nor looked at. Of equal columns the first wins.
    """
    matrix = np.asarray(weights, dtype=np.float64)
    if source_length == 0 or target_length == 0:
        return frozenset()
    assert matrix.ndim == 2, f"attention of shape {matrix.shape} is not a matrix"
    assert matrix.shape[0] >= target_length, f"{matrix.shape[0]} rows for {target_length} target tokens"
    assert matrix.shape[1] >= source_length, f"{matrix.shape[1]} columns for {source_length} source tokens"
    real = matrix[:target_length, :source_length]
    assert not np.isnan(real).any(), "attention with NaN"
    return frozenset((int(column), row) for row, column in enumerate(real.argmax(axis=1)))


def links_between_words(links: Iterable[Link], source_words: Sequence[int | None], target_words: Sequence[int | None]) -> Links:
    """Token links as word links: word i and word j are linked where any of their tokens are.

    `source_words` and `target_words` give each token's word, from 0, and None for a token that is in no word (a blank).
    """
    words = ((source_words[i], target_words[j]) for i, j in links)
    return frozenset((i, j) for i, j in words if i is not None and j is not None)


def attention_between_words(
    weights: ArrayLike, source_words: Sequence[int | None], target_words: Sequence[int | None]
) -> Numbers:
    """Attention between words, [..., target words, source words], from attention [..., T, S] between tokens.

    The mass on a word is the sum over its tokens; a word attends as its tokens do on average. Tokens in no word (None) are
    left out, and so are rows and columns beyond the given word indices, such as END's. Link words by `links_from_attention`
    of this matrix where each target word shall have one link.
    """
    matrix = np.asarray(weights, dtype=np.float64)

    def membership(words: Sequence[int | None]) -> Numbers:
        """[words, tokens], 1 where the token is in the word."""
        count = max((word + 1 for word in words if word is not None), default=0)
        member = np.zeros((count, len(words)))
        for token, word in enumerate(words):
            if word is not None:
                member[word, token] = 1
        return member

    source, target = membership(source_words), membership(target_words)
    sums = target @ matrix[..., : len(target_words), : len(source_words)] @ source.T
    averaged: Numbers = sums / np.maximum(target.sum(axis=1, keepdims=True), 1)
    return averaged


def attention_links(
    weights: ArrayLike, source_words: Sequence[int | None], target_words: Sequence[int | None], *, words: bool
) -> list[Links]:
    """The links of each of several attentions of one pair, [attentions, T, S]: between words, or tokens.

    Args:
        source_words, target_words: as for `attention_between_words`; END has none, and is linked to nothing.
    """
    matrices = np.asarray(weights)
    targets, sources = len(target_words), len(source_words)
    if words:
        matrices = attention_between_words(matrices, source_words, target_words)
        targets, sources = matrices.shape[-2:]
    return [links_from_attention(matrix, sources, targets) for matrix in matrices]


def _percent(part: int, whole: int, empty: float) -> float:
    return 100 * part / whole if whole else empty


def alignment_scores(
    hypotheses: Sequence[Iterable[Link]], sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]] | None = None
) -> AlignmentScores:
    """Precision, recall, F1 and alignment error rate after Och & Ney 2003, section 4, pooled over lines, in percent.

    With links A, sure links S and possible links P ⊇ S: precision |A∩P|/|A|, recall |A∩S|/|S|,
    AER 1 − (|A∩S| + |A∩P|)/(|A| + |S|). Sure links count as possible whether `possible` repeats them or not.
    Without any A the precision is 0, unless there is no S either: then nothing was asked and nothing is wrong.

    Raises:
        UserError: naming the counts when the three have not as many lines.
    """
    allowed = sure if possible is None else possible
    if not len(hypotheses) == len(sure) == len(allowed):
        raise UserError(f"{len(hypotheses)} lines of alignment, {len(sure)} lines of gold and {len(allowed)} of possible links")
    lines = (LinkCounts.of(a, s, p) for a, s, p in zip(hypotheses, sure, allowed, strict=True))
    return sum(lines, LinkCounts()).scores()
