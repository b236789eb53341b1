"""What the pointing tasks share: how many elements, and elements drawn from a grid. Knows no task, no file and no model.

Coordinates are whole multiples of 1/GRID. So what a file says in six digits is exactly what was drawn, numbers that differ do so
in single precision, too, and every question of geometry (is this a left turn, is that point inside the circle?) is answered in
whole numbers, without rounding.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eyeline.errors import ConfigError

GRID = 10**6

Point = tuple[int, int]  # in units of 1/GRID
Length = int | tuple[int, int]  # of a source: fixed, or from … to, both counted in


def bounds(length: Length, least: int) -> tuple[int, int]:
    """(shortest, longest) of `length`.

    Raises:
        ConfigError: less than `least`, or the first more than the last.
    """
    first, last = (length, length) if isinstance(length, int) else length
    if not least <= first <= last:
        shown = f"{first}" if first == last else f"{first}-{last}"
        raise ConfigError(f"a length is at least {least} here, and a range runs upwards", f"length={shown}")
    return first, last


def points(number: int, chance: random.Random) -> list[Point]:
    """Different points of the unit square, uniform, in random order."""
    drawn: dict[Point, None] = {}
    while len(drawn) < number:
        drawn[int(chance.random() * GRID), int(chance.random() * GRID)] = None
    return list(drawn)


def scaled(drawn: Sequence[tuple[int, ...]]) -> tuple[tuple[float, ...], ...]:
    """Elements in whole units as elements in [0, 1)."""
    return tuple(tuple(unit / GRID for unit in element) for element in drawn)


def turn(a: Point, b: Point, c: Point) -> int:
    """Twice the signed area of the triangle a, b, c: above zero for a left turn, zero where they lie on one line."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
