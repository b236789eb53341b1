"""Turns, simple polygons and areas in the plane, decided without rounding. Knows points; no model and no metric."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum

Point = tuple[float, float]

_ROUNDING = 4e-16  # more than twice the unit roundoff of each product and of their difference (Shewchuk 1997, section 4.2)


def turn(a: Point, b: Point, c: Point) -> int:
    """1 for a left turn from a over b to c, -1 for a right turn, 0 on a straight line: exact for the numbers given.

    Where the difference of two products could be rounding, it is taken again in fractions.
    """
    left, right = (b[0] - a[0]) * (c[1] - a[1]), (b[1] - a[1]) * (c[0] - a[0])
    if abs(left - right) > _ROUNDING * (abs(left) + abs(right)):
        return 1 if left > right else -1
    (ax, ay), (bx, by), (cx, cy) = ((Fraction(x), Fraction(y)) for x, y in (a, b, c))
    exact = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    return (exact > 0) - (exact < 0)


def area(polygon: Sequence[Point]) -> float:
    """The enclosed area, above zero counter-clockwise, by the trapezoids below each edge (the shoelace formula)."""
    if not polygon:
        return 0.0
    x0, y0 = polygon[0]  # subtracted, so that a small polygon far from the origin keeps its digits
    near = [(x - x0, y - y0) for x, y in polygon]
    return fsum(a[0] * b[1] - a[1] * b[0] for a, b in _edges(near)) / 2


def is_simple(polygon: Sequence[Point]) -> bool:
    """Whether the closed polygon is one: three corners or more, all different, and no two edges that meet but for neighbours in
    the corner they share. A corner on a straight line is allowed, a way back along the same edge is not."""
    if len(polygon) < 3 or len(set(polygon)) < len(polygon):
        return False
    edges = _edges(polygon)
    count = len(edges)
    if any(_turns_back(edges[place - 1][0], *edges[place]) for place in range(count)):
        return False
    return not any(_meet(*edges[i], *edges[j]) for i in range(count) for j in range(i + 2, count) if (i, j) != (0, count - 1))


def _edges(polygon: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(polygon, [*polygon[1:], polygon[0]], strict=True))


def _turns_back(before: Point, corner: Point, after: Point) -> bool:
    """Whether the way from a corner runs along the way to it."""
    return turn(before, corner, after) == 0 and not min(before, after) < corner < max(before, after)


def _meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the closed segments a b and c d have a point in common."""
    ends = turn(a, b, c), turn(a, b, d), turn(c, d, a), turn(c, d, b)
    if ends[0] * ends[1] < 0 and ends[2] * ends[3] < 0:
        return True
    on = zip(ends, (c, d, a, b), ((a, b), (a, b), (c, d), (c, d)), strict=True)
    return any(end == 0 and min(segment) <= point <= max(segment) for end, point, segment in on)
