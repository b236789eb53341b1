"""What a metric is: numbers a line that may be summed, a way from the sum to a score, and a signature. Knows no single metric."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyeline.errors import UserError

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A corpus score in percent, and what must be said beside it for anyone to get the same number."""

    name: str
    score: float
    signature: str


@dataclass(frozen=True)
class Metric:
    """One metric, made so that the score of any resample of a corpus follows from a sum.

    statistics: n hypotheses and n references to [n, k] numbers, one row a line.
    aggregate: the sum of rows, [k], to a score in percent.
    signature: called after `statistics`; what the number depends on, `name:value` parts joined by `|`.
    """

    name: str
    statistics: Callable[[Sequence[str], Sequence[str]], Numbers]
    aggregate: Callable[[Numbers], float]
    signature: Callable[[], str]


def check_lines(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Refuses everything but two non-empty lists of as many strings.

    A metric that accepts another shape gives a confident wrong number: a string is read as a list of characters, a list
    of lists as sets of references, and lists of unequal length are cut to the shorter.

    Raises:
        UserError: naming both counts, or the first line that is not a string.
    """
    for side, lines in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(lines, (str, bytes)) or not isinstance(lines, Sequence):
            raise UserError(f"{side} are one {type(lines).__name__}, not a list of strings", hint="give one string a line")
        for number, line in enumerate(lines, 1):
            if not isinstance(line, str):
                raise UserError(
                    f"line {number} of the {side} is a {type(line).__name__}, not a string",
                    hint="give one string a line: there is one reference to a hypothesis",
                )
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses)} hypotheses and {len(references)} references", hint="give one reference to a hypothesis"
        )
    if not hypotheses:
        raise UserError("no lines to score: 0 hypotheses and 0 references")


def plain(text: str) -> str:
    """The form in which our own metrics compare text: NFC, runs of white space as one blank, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())
