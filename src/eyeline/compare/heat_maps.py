"""Heat maps as SVG for a page: where a rung looked, in colours that follow the page. Knows tokens and weights."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import count

from eyeline.figures.labels import shortened, visible

CELL = 15
LEAST = 0.02  # weights below are as good as none, and left out of the picture
LONGEST = 12  # characters of a token that are written
_LETTER = 6.6  # pixels of a letter in labels, at most
_WIDE = 11.5  # and of one that is as wide as high
_numbers = count(1)


def heat_map(source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]], title: str) -> str:
    """Rows are target tokens, columns source tokens; the darker (or, on a dark page, the brighter) the more."""
    columns, rows = [_label(token) for token in source], [_label(token) for token in target]
    left = 8 + max(map(_width, rows), default=0)
    top = 8 + max(map(_width, columns), default=0)
    width, height = left + CELL * len(columns) + 4, top + CELL * len(rows) + 4
    number = next(_numbers)
    parts = [
        f'<svg class="heat" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="heat{number}"><title id="heat{number}">{escape(title)}</title>'
        f'<rect class="ground" x="{left:g}" y="{top:g}" width="{CELL * len(columns)}" height="{CELL * len(rows)}"/>'
    ]
    for place, label in enumerate(columns):
        x, y = left + CELL * (place + 0.5) + 3.5, top - 4
        parts.append(f'<text class="token" transform="translate({x:g} {y:g})rotate(-90)">{escape(label)}</text>')
    for place, label in enumerate(rows):
        y = top + CELL * (place + 0.5) + 3.5
        parts.append(f'<text class="token" x="{left - 4:g}" y="{y:g}" text-anchor="end" direction="ltr">{escape(label)}</text>')
    for row, line in enumerate(weights):
        for column, weight in enumerate(line):
            if weight >= LEAST:
                x, y = left + CELL * column, top + CELL * row
                parts.append(f'<rect x="{x:g}" y="{y:g}" width="{CELL}" height="{CELL}" fill-opacity="{min(1.0, weight):.2g}"/>')
    return "".join([*parts, "</svg>"])


def strongest(source: Sequence[str], weights: Sequence[float]) -> str:
    """`wort (0.93)`: where a target token looked most, for a table."""
    place = max(range(len(weights)), key=lambda one: weights[one])
    return f"{visible(source[place])} ({weights[place]:.2f})"


def _label(token: str) -> str:
    return shortened(visible(token), LONGEST)


def _width(label: str) -> float:
    return sum(_WIDE if ord(letter) > 0x2E80 else _LETTER for letter in label)
