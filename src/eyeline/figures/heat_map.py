"""Draws a labelled matrix of numbers from 0 as PNG or SVG. Knows matplotlib, layout and labels; not what the weights mean.

The layout is worked out here, in inches, from the measured width of every label, so that none can leave the picture.
matplotlib is used through `Figure` alone, under settings of our own that are put back: no pyplot, no figure that stays open.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyeline.errors import require
from eyeline.figures.fonts import coverage, tell_missing
from eyeline.figures.labels import one_line, shortened, visible
from eyeline.figures.pen import Pen, Text
from eyeline.figures.style import DPI, FAINT, INK, own_settings

# From near-white to indigo over teal, in equal steps of CIELAB lightness (98 to 17): twice the weight looks twice as dark.
COLOURS = ("#f5fafb", "#b8e4f1", "#7fcae7", "#49b0dc", "#0294cd", "#0d76b1", "#075b96", "#184075", "#1d274e")
_GRID = "#d5dfe5"

_CELL, _SMALL_CELL = 0.36, 0.2  # inches: up to 24 tokens, and from 43 tokens on
_LARGEST = 36.0  # inches of matrix, either way; cells and type shrink beyond
_LEAST_TYPE = 4.0  # points; a matrix too large for it shows every k-th label and says so
_PAD, _GAP, _MARGIN = 0.07, 0.14, 0.18  # inches: label to matrix, part to part, around everything
_BAR, _BAR_BLOCK = 0.13, 0.48  # inches: the colour bar, and with its numbers
_LEAST_WIDTH = 4.4  # inches that a title may widen the picture to
_SOURCE, _TARGET = "source →", "target ↓"
_TITLE, _NOTE, _HINT = 12.0, 8.5, 7.5  # points
_WIDE_CELL = 0.5  # inches: columns of a small matrix grow to this for the sake of upright labels
_FILLED = 0.88  # share of its cell that a label may fill
_SQUEEZED, _SQUEEZED_ALONE = 1.25, 1.8  # labels up to so much too wide are written smaller, a single one (END) even more so
_SLANT = math.sqrt(0.5)  # sine and cosine of 45°


@dataclass(frozen=True)
class _Plan:
    """Where everything goes, in inches from the upper left corner."""

    rows: list[Text]
    columns: list[Text]
    title: list[Text]
    note: list[Text]
    cell: tuple[float, float]  # width, height
    every: int  # each so many labels one is written
    slanted: bool  # column labels stand at 45°
    left: float
    top: float
    width: float
    height: float


def draw_heat_map(
    row_tokens: Sequence[str],
    column_tokens: Sequence[str],
    weights: NDArray[np.float64],
    *,
    title: str = "",
    note: str = "",
    kind: str = "png",
    top: float = 1.0,
) -> bytes:
    """The picture of weights [rows, columns] as a file's content; `kind` is png or svg. Colours run from 0 to `top`.

    In a PNG a character that no installed font has is written as its code point, and one line of the log tells so. In an SVG
    every character stays itself, for the fonts of whoever reads it.

    Raises:
        MissingExtra: without matplotlib.
    """
    figure_class = require("matplotlib.figure", "plots").Figure
    rows, columns = ([shortened(visible(token)) for token in tokens] for tokens in (row_tokens, column_tokens))
    heading = [one_line(title), one_line(note)]
    with own_settings():
        families, missing = coverage([*rows, *columns, *heading])
        figure = figure_class(dpi=DPI, facecolor="white")
        pen = Pen(figure, families, missing, keep=kind == "svg")
        if missing and kind != "svg":
            tell_missing(missing)
        plan = _plan(pen, rows, columns, heading)
        figure.set_size_inches(plan.width, plan.height)
        _paint(figure, pen, plan, weights, top)
        content = io.BytesIO()
        metadata = {"Date": None, "Title": heading[0] or "alignment"} if kind == "svg" else {"Software": None}
        figure.savefig(content, format=kind, dpi=DPI, metadata=metadata, facecolor="white")
    return content.getvalue()


def _plan(pen: Pen, rows: list[str], columns: list[str], heading: list[str]) -> _Plan:
    most = max(len(rows), len(columns))
    cell = min(max(_SMALL_CELL, min(_CELL, _CELL * 24 / most)), _LARGEST / most)
    type_size = min(11.0, 0.6 * cell * 72)
    every = math.ceil(_LEAST_TYPE / type_size)
    type_size = max(type_size, _LEAST_TYPE)
    row_texts = [pen.label(label, type_size) for label in rows[::every]]
    column_texts = [pen.label(label, type_size) for label in columns[::every]]
    cell_width, slanted = _fit_columns([text.width for text in column_texts], cell, every)
    if not slanted:
        column_texts = [pen.fitted(text, cell_width * every * _FILLED) for text in column_texts]
    left = _MARGIN + _PAD + max(pen.line(_SOURCE, _HINT).width, *(text.width for text in row_texts))
    reach = cell_width * len(columns) + _GAP + _BAR_BLOCK
    label_height = type_size / 72 * 1.3
    if slanted:
        for index, text in enumerate(column_texts):
            reach = max(reach, (index * every + 0.5) * cell_width + text.width * _SLANT + label_height)
        label_height += max(text.width for text in column_texts) * _SLANT
    if every > 1:
        heading = [heading[0], f"{heading[1]} (one label in {every})".strip()]
    title_width = max(pen.line(heading[0], _TITLE).width, pen.line(heading[1], _NOTE).width)
    width = max(left + reach, _MARGIN + min(title_width * 1.02, _LEAST_WIDTH)) + _MARGIN
    lines = [_wrapped(pen, line, size, width - 2 * _MARGIN) for line, size in zip(heading, (_TITLE, _NOTE), strict=True)]
    title_height = sum(_line_height(text.size) for part in lines for text in part) + (_GAP if any(lines) else 0)
    top = _MARGIN + title_height + max(label_height, 2 * _line_height(_HINT)) + _PAD
    height = top + max(cell * len(rows), _bar_height(cell * len(rows))) + _MARGIN
    return _Plan(row_texts, column_texts, lines[0], lines[1], (cell_width, cell), every, slanted, left, top, width, height)


def _fit_columns(widths: list[float], cell: float, every: int) -> tuple[float, bool]:
    """Width of a column, and whether labels of these widths must be slanted in it. The widest label alone decides little."""
    widest, second = sorted([widths[0], *widths] if len(widths) == 1 else widths)[:-3:-1]
    if len(widths) <= 24 and second / _FILLED / _SQUEEZED <= _WIDE_CELL:
        cell = max(cell, min(_WIDE_CELL, second / _FILLED))
    fitting = cell * every * _FILLED
    return cell, second > fitting * _SQUEEZED or widest > fitting * _SQUEEZED_ALONE


def _bar_height(matrix_height: float) -> float:
    return min(max(matrix_height, 0.8), 2.4)


def _line_height(size: float) -> float:
    return size / 72 * 1.4


def _wrapped(pen: Pen, line: str, size: float, width: float, most: int = 4) -> list[Text]:
    """The line in at most `most` lines that are no wider than `width` inches; what is over ends in an ellipsis."""
    if not line:
        return []
    line = pen.spelling(line)
    letters = len(line)
    while True:
        parts = textwrap.wrap(line, max(letters, 1))
        texts = [pen.line(part, size) for part in parts[:most]]
        widest = max(text.width for text in texts)
        if widest <= width or letters <= 1:
            break
        letters = min(letters - 1, int(letters * width / widest) + 1)
    if len(parts) > most:
        texts[-1] = pen.line(shortened(parts[most - 1] + "……", letters), size)
    return texts


def _paint(figure: Any, pen: Pen, plan: _Plan, weights: NDArray[np.float64], top: float) -> None:
    line = _MARGIN
    for texts, colour in ((plan.title, INK), (plan.note, FAINT)):
        for text in texts:
            pen.write(text, _MARGIN, line, ha="left", va="top", color=colour)
            line += _line_height(text.size)
    cell_width, cell_height = plan.cell
    for index, text in enumerate(plan.rows):
        middle = plan.top + (index * plan.every + 0.5) * cell_height
        pen.write(text, plan.left - _PAD, middle, ha="right", va="center", color=INK)
    for index, text in enumerate(plan.columns):
        middle = plan.left + (index * plan.every + 0.5) * cell_width
        if plan.slanted:
            pen.write(text, middle, plan.top - _PAD, ha="left", va="center", color=INK, rotation=45)
        else:
            pen.write(text, middle, plan.top - _PAD, ha="center", va="bottom", color=INK)
    for text, lift in ((pen.line(_SOURCE, _HINT), _line_height(_HINT)), (pen.line(_TARGET, _HINT), 0)):
        pen.write(text, plan.left - _PAD, plan.top - _PAD - lift, ha="right", va="bottom", color=FAINT)
    rows, columns = weights.shape
    grid = 0.5 if max(rows, columns) <= 40 else 0.3 if max(rows, columns) <= 120 else 0
    _paint_cells(figure, plan, (plan.left, cell_width * columns, cell_height * rows), weights / top, grid)
    _paint_bar(figure, pen, plan, (plan.left + cell_width * columns + _GAP, _bar_height(cell_height * rows)), top)


def _paint_bar(figure: Any, pen: Pen, plan: _Plan, place: tuple[float, float], top: float) -> None:
    """The scale of colours, the largest value on top, level with the top of the matrix. `place`: left and height in inches."""
    left, height = place
    _paint_cells(figure, plan, (left, _BAR, height), np.linspace(1, 0, 128)[:, None], 0)
    for share, label in ((0.0, f"{top:g}"), (0.5, f"{top / 2:g}"), (1.0, "0")):
        pen.write(pen.line(label, _NOTE), left + _BAR + 0.05, plan.top + height * share, ha="left", va="center", color=FAINT)


def _paint_cells(figure: Any, plan: _Plan, place: tuple[float, float, float], values: NDArray[np.float64], grid: float) -> None:
    """Cells of values 0…1 [rows, columns], first row on top, at `place`: left, width, height in inches, level with the matrix.

    With a grid each cell is a shape of its own in an SVG; without, all are one image, which leaves no seams.
    """
    left, width, height = place
    bottom = plan.height - plan.top - height
    axes = figure.add_axes((left / plan.width, bottom / plan.height, width / plan.width, height / plan.height))
    colours = require("matplotlib.colors", "plots").LinearSegmentedColormap.from_list("eyeline", COLOURS)
    axes.pcolormesh(
        values,
        cmap=colours,
        vmin=0,
        vmax=1,
        edgecolors=_GRID if grid else "face",
        linewidth=grid or 0.1,
        rasterized=not grid,
    )
    axes.invert_yaxis()
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.6)
