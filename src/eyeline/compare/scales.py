"""From values to places on a chart, and numbers as people write them. Knows arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def steps(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers 1, 2 or 5 · 10^k apart, about `wanted` of them, that reach from at most `low` to at least `high`."""
    if not high > low:
        high = low + 1
    raw = (high - low) / max(1, wanted)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 10) for place in range(first, last + 1)]


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * min(1.0, max(0.0, share)), 2)


def scale(
    values: Sequence[float], start: float, end: float, *, wanted: int = 5, percent: bool = False
) -> tuple[Scale, list[float]]:
    """A scale over finite values and its ticks. `percent`: from 0, and to 100 where they do not go beyond."""
    found = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(found), max(found)
    if percent:
        low, high = min(0.0, low), 100.0 if 50 < high <= 100 else high
    ticks = steps(low, high, wanted)
    return Scale(ticks[0], ticks[-1], start, end), ticks


def short(value: float) -> str:
    """`1.2M`, `300k`, `45`, `0.05`: few digits, for axes."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            unit = 1e3 if letter == "k" else size
            return f"{value / unit:.4g}{letter}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def figure(value: float | None, digits: int = 1) -> str:
    """A number for a table; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.{digits}f}"
