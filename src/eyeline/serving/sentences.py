"""A text as sentences with white space between them, and predictions of these as one of the whole. Knows strings; no models.

A sentence ends at a line end, or behind one of ENDS with whatever quotes and brackets close there, if white space follows; WIDE
ones need none. Others end none before a small letter, and a full stop none behind a single letter, a number or one of
ABBREVIATIONS: so `z. B.`, `26. Januar` and `Dr. Lee` stay whole, at the price of a sentence that ends in a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eyeline.contracts import Prediction
from eyeline.predictor.pieces import joined

WIDE = "。！？｡︒"  # white space need not follow
ENDS = ".!?…؟۔।॥։።፧။៕‼⁇⁈⁉" + WIDE
CLOSERS = "\"'”’»›)]}」』）】》〉"
ABBREVIATIONS = frozenset({"ca", "cf", "dr", "etc", "fig", "inc", "jr", "mr", "mrs", "ms", "nr", "prof", "sr", "st", "vgl", "vs"})
_ANY, _CLOSE = re.escape(ENDS), re.escape(CLOSERS)
_END = re.compile(rf"\n|[{WIDE}]+[{_CLOSE}]*|[{_ANY}]+[{_CLOSE}]*(?=\s)")
_LAST_WORD = re.compile(r"(\w+)\.$")
_NEXT = re.compile(r"\s*(\S?)")


@dataclass(frozen=True)
class Parts:
    """A text in parts; `between[i]` is the white space before part i, and the last that behind them all."""

    parts: tuple[str, ...]
    between: tuple[str, ...]

    def filled(self, parts: Sequence[str]) -> str:
        """The white space as it was, with other texts in it."""
        inside = "".join(white + part for white, part in zip(self.between[:-1], parts, strict=True))
        return inside + self.between[-1]

    def prediction(self, source: str, answers: Sequence[Prediction], normalize: Callable[[float, int], float]) -> Prediction:
        """The answer to the text from those to its parts; without an alignment where there are several."""
        whole = joined(source, answers, normalize)
        texts = [self.filled([part.n_best[rank].text for part in answers]) for rank in range(len(whole.n_best))]
        several = [replace(one, text=text) for one, text in zip(whole.n_best, texts, strict=True)]
        return replace(whole, source=source, text=several[0].text, n_best=several)


def lines(text: str) -> Parts:
    """The lines of a text that are not blank."""
    return _parts(text, [place + 1 for place, character in enumerate(text) if character == "\n"])


def sentences(text: str) -> Parts:
    """The sentences of a text."""
    return _parts(text, [match.end() for match in _END.finditer(text) if _ends(text, match)])


def _ends(text: str, match: re.Match[str]) -> bool:
    if match[0] == "\n" or match[0][0] in WIDE:
        return True
    word = _LAST_WORD.search(text, max(0, match.start() - 20), match.end())
    if word is not None and (len(word[1]) == 1 or word[1].isdecimal() or word[1].lower() in ABBREVIATIONS):
        return False
    following = _NEXT.match(text, match.end())
    return following is None or not following[1].islower()


def _parts(text: str, cuts: Sequence[int]) -> Parts:
    """The text cut at some places; white space around each part, and parts of nothing else, go between."""
    parts, between, white = list[str](), list[str](), ""
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        piece = text[start:end]
        part = piece.strip()
        if not part:
            white += piece
            continue
        before = len(piece) - len(piece.lstrip())
        parts.append(part)
        between.append(white + piece[:before])
        white = piece[before + len(part) :]
    return Parts(tuple(parts), (*between, white))
