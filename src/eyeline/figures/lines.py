"""Line charts side by side as PNG or SVG. Knows matplotlib, numbers and their names; not what was measured."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyeline.errors import ConfigError, UserError, require
from eyeline.figures.fonts import coverage, tell_missing
from eyeline.figures.labels import left_to_right, one_line, shortened, spelt
from eyeline.figures.style import DPI, FAINT, INK, own_settings
from eyeline.files import beside

# Told apart by most colour-blind eyes (Okabe & Ito 2008), black and grey for what is compared with; the marks tell them, too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b2330", "#8a6d3b", "#7a7a7a", "#6a3d9a")
MARKS = "osD^vP*X<>"
PICTURES = (".png", ".svg")
_WIDE, _HIGH = 4.6, 3.4  # inches of a panel, its legend apart
_LEGEND_LINE = 0.19  # inches
_LEGEND_LETTERS = 34  # characters of a name in a legend that are shown
_FEW_DECADES = 50.0  # an axis that spans less has 2 and 5 written, too
_ROW = 3  # panels side by side


@dataclass(frozen=True)
class Line:
    """Some y over x. A y that is None or no finite number is a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None  # with `high`, an interval around each y
    high: Sequence[float | None] | None = None
    dashed: bool = False  # what theory says, or what others are compared with
    colour: int | None = None  # of COLOURS, so that two lines belong together; by its place among the lines when None


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    marks: Sequence[tuple[float, str]] = ()  # places on the x axis, with what is there
    floor: float | None = None  # with `log_y`: what is smaller, zero included, is drawn here

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which the picture could be drawn again."""
        return asdict(self)


def save_lines(path: str | Path, panels: Sequence[Panel], title: str = "", note: str = "") -> Path:
    """Writes the picture (.png or .svg), whole or not at all. Returns the path.

    Raises:
        ConfigError: for another suffix.
        MissingExtra: without matplotlib.
        UserError: no panels, a line without as many y as x, or the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in PICTURES:
        raise ConfigError("not a kind of file that a chart is written as", str(path), f"valid: {', '.join(PICTURES)}")
    content = draw_lines(panels, title=title, note=note, kind=suffix[1:])
    with beside(path) as temporary:
        temporary.write_bytes(content)
    return path


def draw_lines(panels: Sequence[Panel], *, title: str = "", note: str = "", kind: str = "png") -> bytes:
    """The picture of panels, three in a row at most, as a file's content; `kind` is png or svg. Nothing in it is a formula.

    The same values give the same bytes.
    """
    _check(panels)
    figure_class = require("matplotlib.figure", "plots").Figure
    columns = min(_ROW, len(panels))
    rows = -(-len(panels) // columns)
    legend = _LEGEND_LINE * max(math.ceil(len(panel.lines) / 2) for panel in panels)
    heading, small = one_line(title), textwrap.wrap(one_line(note), 40 * columns)
    with own_settings():
        families, missing = coverage([heading, *small, *(text for panel in panels for text in _texts(panel))])
        if missing and kind != "svg":
            tell_missing(missing)
        figure = figure_class(dpi=DPI, facecolor="white", layout="constrained")
        settings = {"text.parse_math": False, "font.sans-serif": families, "font.size": 9, "text.color": INK}
        with require("matplotlib", "plots").rc_context(settings):
            figure.set_size_inches(_WIDE * columns, rows * (_HIGH + legend) + 0.4 + 0.18 * len(small))
            plain = _Plain(missing if kind != "svg" else frozenset())
            if heading:
                figure.suptitle(plain(heading), fontsize=11.5, x=0.01, ha="left")
            if small:
                figure.supxlabel("\n".join(plain(line) for line in small), fontsize=7.5, color=FAINT, x=0.01, ha="left")
            for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).flat, panels, strict=False):
                _paint(axes, panel, plain)
            for axes in figure.axes[len(panels) :]:
                axes.set_axis_off()
            content = io.BytesIO()
            metadata = {"Date": None, "Title": heading or "chart"} if kind == "svg" else {"Software": None}
            figure.savefig(content, format=kind, metadata=metadata)
    return content.getvalue()


@dataclass(frozen=True)
class _Plain:
    """Text as it is written: on one line, from the left, with code points for what no font has."""

    missing: frozenset[str]

    def __call__(self, text: str) -> str:
        return left_to_right(spelt(one_line(text), self.missing))


def _check(panels: Sequence[Panel]) -> None:
    if not panels:
        raise UserError("nothing to draw: no panels")
    for panel in panels:
        for line in panel.lines:
            bounds = [values for values in (line.low, line.high) if values is not None]
            if any(len(values) != len(line.x) for values in (line.y, *bounds)):
                raise UserError(f"the line {line.name!r} has {len(line.x)} places and other numbers of values")


def _texts(panel: Panel) -> list[str]:
    names = [one_line(line.name) for line in panel.lines]
    return [one_line(text) for text in (panel.title, panel.x, panel.y)] + names + [one_line(text) for _, text in panel.marks]


def _paint(axes: Any, panel: Panel, plain: _Plain) -> None:
    for number, line in enumerate(panel.lines):
        place = number if line.colour is None else line.colour
        colour = COLOURS[place % len(COLOURS)]
        style = {"linestyle": "--" if line.dashed else "-", "linewidth": 1.2 if line.dashed else 1.6}
        mark = {} if line.dashed or len(line.x) > 60 else {"marker": MARKS[place % len(MARKS)], "markersize": 4}
        label = plain(shortened(one_line(line.name), _LEGEND_LETTERS))
        axes.plot(line.x, _drawn(line.y, panel), color=colour, label=label, **style, **mark)
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, _drawn(line.low, panel), _drawn(line.high, panel), color=colour, alpha=0.15, linewidth=0)
    for where, text in panel.marks:
        axes.axvline(where, color=FAINT, linewidth=0.9, linestyle=":")
        axes.annotate(
            plain(text),
            (where, 1),
            (2, -2),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            fontsize=7,
            color=FAINT,
            va="top",
            rotation=90,
        )
    _scale(axes, panel)
    axes.set_title(plain(panel.title), fontsize=9.5, loc="left")
    axes.set_xlabel(plain(panel.x))
    axes.set_ylabel(plain(panel.y))
    axes.grid(True, color="#e3e8ec", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.2), ncols=2, frameon=False, fontsize=7.5, borderaxespad=0)


def _scale(axes: Any, panel: Panel) -> None:
    """Logarithms where they are wanted and there is something to take them of; numbers written out at every scale."""
    ticker = require("matplotlib.ticker", "plots")
    for axis, logarithmic, which in ((axes.xaxis, panel.log_x, "x"), (axes.yaxis, panel.log_y, "y")):
        written = ticker.FuncFormatter(lambda value, _: f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:g}")
        if logarithmic and (which == "x" or _positive(panel)):
            (axes.set_xscale if which == "x" else axes.set_yscale)("log")
            axis.set_minor_formatter(ticker.NullFormatter())
            if which == "x":
                axis.set_major_locator(ticker.FixedLocator(_some({x for line in panel.lines for x in line.x if x > 0})))
                axis.set_minor_locator(ticker.NullLocator())
            elif axes.get_ylim()[1] / axes.get_ylim()[0] < _FEW_DECADES:
                axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(written)


def _some(places: set[float]) -> list[float]:
    """At most eight of the places, evenly by their logarithms, so that their numbers do not meet."""
    chosen: list[float] = []
    if places:
        apart = math.log(max(places) / min(places)) / 7 if len(places) > 1 else 0.0
        for place in sorted(places):
            if not chosen or math.log(place / chosen[-1]) >= apart * 0.99:
                chosen.append(place)
    return chosen


def _positive(panel: Panel) -> bool:
    return any(value is not None and value > 0 for line in panel.lines for value in _drawn(line.y, panel))


def _drawn(values: Sequence[float | None], panel: Panel) -> list[float]:
    """Gaps as NaN; on a logarithmic axis, what is not positive is a gap, or at the floor where there is one."""
    numbers = np.array([math.nan if value is None else value for value in values], dtype=float)
    numbers[~np.isfinite(numbers)] = math.nan
    if panel.log_y:
        numbers = np.where(numbers > (panel.floor or 0), numbers, np.where(np.isnan(numbers), math.nan, panel.floor or math.nan))
    return list(numbers)
