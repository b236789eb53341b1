"""What separates words, said once for training, prediction, scoring and alignment. Knows strings only.

A word is a run of characters other than U+0020 and the tab. Every other white space (U+00A0, U+3000, U+2009 …) is part of the
word it stands in, so that whoever counts words with a plain split at the blank, as aligners do, counts the same ones.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

BLANKS = " \t"
_WORD = re.compile(f"[^{BLANKS}]+")

Span = tuple[int, int]  # first character, one past the last


def is_blank(text: str) -> bool:
    """Whether a line holds nothing but white space of any kind; such a line is never given to a model."""
    return not text or text.isspace()


def word_spans(text: str) -> list[Span]:
    """The place of every word, in order."""
    return [match.span() for match in _WORD.finditer(text)]


def word_index(text: str, spans: Sequence[Span]) -> list[int | None]:
    """For each token's span in `text`, the number of the word it belongs to, from 0.

    A token belongs to the word that holds its first character other than a blank; one of blanks alone, or an empty span
    (a feature, END), belongs to none.
    """
    words = word_spans(text)
    starts = [start for start, _ in words]
    result: list[int | None] = []
    for start, end in spans:
        while start < end and text[start] in BLANKS:
            start += 1
        result.append(bisect_right(starts, start) - 1 if start < end else None)
    return result
