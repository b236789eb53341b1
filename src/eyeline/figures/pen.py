"""Measures and writes literal text on a figure. Knows fonts and inches; nothing of what the text labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eyeline.errors import require
from eyeline.figures.labels import left_to_right, shortened, spelt

_SMALLER = 0.72  # type of labels that hold code points, of that of the others


@dataclass(frozen=True)
class Text:
    """What will be written, at which size in points, and how wide that is in inches."""

    text: str
    size: float
    width: float


class Pen:
    """Writes on one figure, in the first of `families` that has a character.

    `missing` are characters that none of them has: written as they are where `keep` is set, else as their code points.
    """

    def __init__(self, figure: Any, families: Sequence[str], missing: frozenset[str], keep: bool) -> None:
        self._figure, self._missing, self._keep = figure, missing, keep
        # the reader of an SVG may have none of our fonts: any without serifs is near enough
        self._families = [*families, "sans-serif"] if keep else list(families)
        self._renderer = require("matplotlib.backends.backend_agg", "plots").FigureCanvasAgg(figure).get_renderer()

    def label(self, label: str, size: float) -> Text:
        """Prepares a token's label. One that holds code points is cut again where they make it long, and is smaller."""
        if self._keep or self._missing.isdisjoint(label):
            return self._prepared(label, size)
        return self._prepared(shortened(spelt(label, self._missing)), size * _SMALLER)

    def spelling(self, line: str) -> str:
        """Running text with code points for what cannot be drawn."""
        return line if self._keep else spelt(line, self._missing)

    def line(self, line: str, size: float) -> Text:
        """Prepares a line of running text, which starts on the left."""
        return self._prepared(line if self._keep else left_to_right(self.spelling(line)), size)

    def _prepared(self, text: str, size: float) -> Text:
        return Text(text, size, self._measured("".join(self._stand_in(c) for c in text), size))

    def fitted(self, text: Text, width: float) -> Text:
        """The same in smaller type where it is wider than `width` inches."""
        return text if text.width <= width else replace(text, size=text.size * width / text.width, width=width)

    def write(self, text: Text, x: float, y: float, *, ha: str, va: str, color: str, rotation: float = 0) -> None:
        """Writes at x, y inches from the upper left corner of the figure. Nothing in the text is a formula."""
        width, height = self._figure.get_size_inches()
        self._figure.text(
            x / width,
            1 - y / height,
            text.text,
            fontproperties=self._properties(text.size),
            parse_math=False,
            ha=ha,
            va=va,
            color=color,
            rotation=rotation,
            rotation_mode="anchor",  # in SVG the reader's fonts then start or end where ours do
        )

    def _properties(self, size: float) -> Any:
        return require("matplotlib.font_manager", "plots").FontProperties(family=self._families, size=size)

    def _measured(self, text: str, size: float) -> float:
        written = self._figure.text(0, 0, text, fontproperties=self._properties(size), parse_math=False)
        width = float(written.get_window_extent(self._renderer).width) / float(self._figure.dpi)
        written.remove()
        return width

    def _stand_in(self, character: str) -> str:
        """A letter we have that is about as wide as one we do not have is in the reader's font."""
        if character not in self._missing:
            return character
        return "W" if unicodedata.east_asian_width(character) in "WF" else "m"
