"""Charts as SVG for a page: series of points, scores with their intervals, bars. Knows numbers and names; no reports, no metrics.

Colours are CSS variables of the page (`--c0` … `--c7`, `--ink`, `--faint`, `--grid`, `--shade`), so that a chart reads in
light and in dark. A series is told by its marker and dashes as well as by its colour. Every text is escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import count

from eyeline.compare.scales import Scale, scale, short

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 22, 42  # margins
COLOURS = 8
_DASHES = ("", "7 3", "2 3")  # of the first eight series, the next eight, and so on
_ROW = 26  # height of a line of scores or bars
_TURN = 1.4  # pixels that one series is moved aside from the next, so that their whiskers can be told apart

_numbers = count(1)


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A line: its name, which of the colours and markers it has, and its points from left to right."""

    name: str
    style: int
    points: list[Point] = field(default_factory=list)
    marked: bool = True  # whether points have markers


@dataclass(frozen=True)
class ScoreRow:
    """A name with a score, its interval, and the values that it is made of."""

    name: str
    style: int
    score: float
    low: float
    high: float
    parts: Sequence[float] = ()


def marker(style: int, x: float, y: float, size: float = 4.0) -> str:
    """The sign of a series."""
    s, colour = size, f'class="f{style % COLOURS}"'
    shapes = (
        f'<circle {colour} cx="{x:g}" cy="{y:g}" r="{s:g}"/>',
        f'<rect {colour} x="{x - s:g}" y="{y - s:g}" width="{2 * s:g}" height="{2 * s:g}"/>',
        f'<path {colour} d="M{x:g} {y - 1.2 * s:g}L{x + 1.2 * s:g} {y + s:g}L{x - 1.2 * s:g} {y + s:g}Z"/>',
        f'<path {colour} d="M{x:g} {y - 1.4 * s:g}L{x + 1.4 * s:g} {y:g}L{x:g} {y + 1.4 * s:g}L{x - 1.4 * s:g} {y:g}Z"/>',
        f'<path {colour} d="M{x:g} {y + 1.2 * s:g}L{x + 1.2 * s:g} {y - s:g}L{x - 1.2 * s:g} {y - s:g}Z"/>',
        f'<path class="l{style % COLOURS}" d="M{x - s:g} {y - s:g}l{2 * s:g} {2 * s:g}m0 {-2 * s:g}l{-2 * s:g} {2 * s:g}"/>',
        f'<path class="l{style % COLOURS}" d="M{x - 1.2 * s:g} {y:g}h{2.4 * s:g}m{-1.2 * s:g} {-1.2 * s:g}v{2.4 * s:g}"/>',
        f'<circle class="l{style % COLOURS} open" cx="{x:g}" cy="{y:g}" r="{s:g}"/>',
    )
    return shapes[style % len(shapes)]


def key(style: int) -> str:
    """A series' sign for a legend."""
    drawn = _line(style, "M1 7H25") + marker(style, 13, 7)
    return f'<svg class="key" width="26" height="14" viewBox="0 0 26 14" aria-hidden="true">{drawn}</svg>'


def _line(style: int, path: str) -> str:
    dashes = _DASHES[min(style // COLOURS, len(_DASHES) - 1)]
    return f'<path class="l{style % COLOURS}" d="{path}"' + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>"


def _svg(content: str, height: float, title: str) -> str:
    number = next(_numbers)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-labelledby="chart{number}">'
        f'<title id="chart{number}">{escape(title)}</title>{content}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def line_chart(
    series: Sequence[Series],
    title: str,
    x_label: str,
    *,
    percent: bool = False,
    x_ticks: Sequence[float] | None = None,
    shaded_to: float | None = None,
    shade_label: str = "",
) -> str:
    """Lines over a common x axis, whiskers where points have intervals.

    Args:
        title: what a screen reader says.
        percent: the y axis begins at 0, and ends at 100 where values come near.
        x_ticks: where the x axis has its ticks; default: round numbers.
        shaded_to: the part of the x axis up to here has another ground, which `shade_label` names at its end.
    """
    points = [point for one in series for point in one.points]
    ends = [value for p in points for value in (p.y, p.low, p.high) if value is not None]
    y_scale, y_ticks = scale(ends, HEIGHT - BOTTOM, TOP, percent=percent)
    if x_ticks is None:
        x_scale, ticks = scale([0.0, *(p.x for p in points)], LEFT, WIDTH - RIGHT)
    else:
        x_scale, ticks = Scale(0.0, max(x_ticks), LEFT, WIDTH - RIGHT), list(x_ticks)
    parts = []
    if shaded_to is not None:
        edge = x_scale(shaded_to)
        parts.append(f'<rect class="shade" x="{LEFT}" y="{TOP}" width="{edge - LEFT:g}" height="{HEIGHT - BOTTOM - TOP}"/>')
        parts.append(f'<path class="edge" d="M{edge:g} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(_text((LEFT + edge) / 2, TOP - 7, shade_label, kind="note"))
    for tick in y_ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {y_scale(tick):g}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 5, y_scale(tick) + 4, short(tick), "end"))
    free = LEFT - 30.0  # right end of the last label
    for tick in ticks:
        x, label = x_scale(tick), short(tick)
        if x - 3.5 * len(label) < free + 4:
            continue
        free = x + 3.5 * len(label)
        parts.append(f'<path class="grid" d="M{x:g} {HEIGHT - BOTTOM}v4"/>')
        parts.append(_text(min(x, WIDTH - 3.5 * len(label) - 1), HEIGHT - BOTTOM + 16, label))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, kind="label"))
    middle = (len(series) - 1) / 2
    parts += [_drawn(one, x_scale, y_scale, _TURN * (place - middle)) for place, one in enumerate(series)]
    return _svg("".join(parts), HEIGHT, title)


def _drawn(series: Series, x_scale: Scale, y_scale: Scale, aside: float) -> str:
    whiskered = any(point.low is not None for point in series.points)
    aside = aside if whiskered else 0.0
    places = [(round(x_scale(point.x) + aside, 2), y_scale(point.y), point) for point in series.points]
    if not places:
        return ""
    parts = [_line(series.style, "M" + "L".join(f"{x:g} {y:g}" for x, y, _ in places))]
    for x, y, point in places:
        if point.low is not None and point.high is not None:
            parts.append(
                f'<path class="l{series.style % COLOURS} thin" d="M{x:g} {y_scale(point.low):g}V{y_scale(point.high):g}"/>'
            )
        if series.marked:
            parts.append(marker(series.style, x, y, 3.4))
    return "".join(parts)


def score_chart(rows: Sequence[ScoreRow], title: str, x_label: str, *, percent: bool = True) -> str:
    """A line a row: its name, a marker at its score, its interval, and ticks for single values. Names stand above their lines."""
    height = TOP + len(rows) * 1.5 * _ROW + BOTTOM
    ends = [value for row in rows for value in (row.low, row.high, *row.parts)]
    x_scale, ticks = scale(ends, 14, WIDTH - 20, percent=percent)
    bottom = height - BOTTOM
    parts = []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{x_scale(tick):g} {TOP}V{bottom:g}"/>')
        parts.append(_text(x_scale(tick), bottom + 16, short(tick)))
    for place, row in enumerate(rows):
        y = TOP + (place + 0.75) * 1.5 * _ROW
        parts.append(_text(14, y - 9, f"{row.name}   {row.score:.1f} [{row.low:.1f}, {row.high:.1f}]", "start", "name"))
        parts.append(f'<path class="l{row.style % COLOURS}" d="M{x_scale(row.low):g} {y:g}H{x_scale(row.high):g}"/>')
        parts += [f'<path class="l{row.style % COLOURS} thin" d="M{x_scale(part):g} {y + 3:g}v6"/>' for part in row.parts]
        parts.append(marker(row.style, x_scale(row.score), y))
    parts.append(_text(WIDTH / 2, height - 8, x_label, kind="label"))
    return _svg("".join(parts), height, title)


def bar_chart(rows: Sequence[tuple[str, int, float | None]], title: str, x_label: str) -> str:
    """A bar for each (name, style, value); names and values stand above their bars."""
    height = TOP + len(rows) * 1.3 * _ROW + 22
    known = [value for _, _, value in rows if value is not None]
    x_scale, _ = scale([0.0, *known], 14, WIDTH - 20)
    parts = []
    for place, (name, style, value) in enumerate(rows):
        y = TOP + place * 1.3 * _ROW
        shown = "–" if value is None else f"{value:,.0f}"
        parts.append(_text(14, y + 11, f"{name}   {shown}", "start", "name"))
        if value is not None:
            parts.append(
                f'<rect class="f{style % COLOURS}" x="14" y="{y + 16:g}" width="{max(1.0, x_scale(value) - 14):g}" height="9"/>'
            )
    parts.append(_text(WIDTH / 2, height - 6, x_label, kind="label"))
    return _svg("".join(parts), height, title)
