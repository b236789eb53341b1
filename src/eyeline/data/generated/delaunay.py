"""Points of a square and their Delaunay triangulation (Vinyals et al. 2015, section 3.2). Knows nothing of files or models."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import sqrt

from eyeline.data.generated import PointingPair
from eyeline.data.generated.points import Length, Point, bounds, points, scaled, turn

LENGTH = (5, 10)
_NOWHERE = -1  # the corner of a triangle that reaches from an edge of the hull outwards

Triangle = tuple[int, int, int]


def delaunay(count: int, seed: int, length: Length = LENGTH) -> Iterator[PointingPair]:
    """Points uniform in the unit square, and the positions of the corners of their triangles, three after three: see
    `triangulation`.

    The paper orders triangles alike, and names the corners of each in ascending order instead of counter-clockwise. Points that
    have no triangle or more than one triangulation are drawn anew, so that there is one right answer. Pairs are drawn one at a
    time; the same arguments give the same pairs, and a larger count begins with those of a smaller one.

    Raises:
        ConfigError: a length that cannot be.
    """
    shortest, longest = bounds(length, 3)
    chance = random.Random(seed)

    def draw() -> PointingPair:
        while True:
            drawn = points(chance.randint(shortest, longest), chance)
            triangles = triangulation(drawn)
            if triangles and not _ambiguous(drawn, triangles):
                return PointingPair(scaled(drawn), tuple(corner for triangle in triangles for corner in triangle))

    return (draw() for _ in range(count))


def triangulation(of: Sequence[Point]) -> list[Triangle]:
    """The Delaunay triangles: no point lies inside the circle through the corners of any (Bowyer 1981, Watson 1981).

    Exact for whole numbers. Each triangle goes counter-clockwise from its lowest position; triangles stand in the order of their
    incentres, from left to right, then from below. Where more than three points lie on an empty circle, the triangles are those
    that adding the points in order of position leaves. Of equal points the first stands for all; points on one line have none.
    """
    different = list({point: position for position, point in reversed(list(enumerate(of)))}.values())[::-1]
    triangles = _first_triangle(of, different)
    inside = {corner for triangle in triangles for corner in triangle}
    for new in different:
        if new in inside:
            continue
        hit = [triangle for triangle in triangles if _in_conflict(of, triangle, new)]
        edges = {edge for triangle in hit for edge in _edges(triangle)}
        triangles.difference_update(hit)
        triangles.update(_from_lowest(a, b, new) for a, b in edges if (b, a) not in edges)
    real = [triangle for triangle in triangles if _NOWHERE not in triangle]
    return sorted(real, key=lambda triangle: (_incentre(of, triangle), triangle))


def _first_triangle(of: Sequence[Point], different: Sequence[int]) -> set[Triangle]:
    """The first three points that are not on one line, and the three triangles from their edges outwards."""
    for third in different[2:]:
        a, b = different[0], different[1]
        side = turn(of[a], of[b], of[third])
        if side:
            a, b = (a, b) if side > 0 else (b, a)
            outwards = ((b, a), (third, b), (a, third))
            return {_from_lowest(a, b, third), *((start, end, _NOWHERE) for start, end in outwards)}
    return set()


def _from_lowest(a: int, b: int, c: int) -> Triangle:
    """The same triangle beginning with its lowest position, or ending with the corner that is nowhere."""
    if _NOWHERE in (a, b, c):
        return (a, b, c) if c == _NOWHERE else (b, c, a) if a == _NOWHERE else (c, a, b)
    return (a, b, c) if a < b and a < c else (b, c, a) if b < c else (c, a, b)


def _edges(triangle: Triangle) -> tuple[tuple[int, int], ...]:
    a, b, c = triangle
    return (a, b), (b, c), (c, a)


def _in_conflict(of: Sequence[Point], triangle: Triangle, new: int) -> bool:
    """Whether a new point lies inside the triangle's circle; for one that reaches outwards, the half-plane beyond its edge and
    the edge itself."""
    a, b, c = triangle
    if c == _NOWHERE:
        side = turn(of[a], of[b], of[new])
        return side > 0 or (side == 0 and min(of[a], of[b]) < of[new] < max(of[a], of[b]))
    return in_circle(of[a], of[b], of[c], of[new]) > 0


def in_circle(a: Point, b: Point, c: Point, d: Point) -> int:
    """Above zero when d lies inside the circle through a, b, c, given counter-clockwise; zero when on it."""
    ax, ay, bx, by, cx, cy = a[0] - d[0], a[1] - d[1], b[0] - d[0], b[1] - d[1], c[0] - d[0], c[1] - d[1]
    return (
        (ax * ax + ay * ay) * (bx * cy - cx * by)
        - (bx * bx + by * by) * (ax * cy - cx * ay)
        + (cx * cx + cy * cy) * (ax * by - bx * ay)
    )


def _ambiguous(of: Sequence[Point], triangles: Sequence[Triangle]) -> bool:
    """Whether the corner across some edge lies on the triangle's circle, so that the other diagonal would do as well."""
    across = {(a, b): c for x, y, z in triangles for a, b, c in ((x, y, z), (y, z, x), (z, x, y))}
    return any(
        (b, a) in across and in_circle(of[a], of[b], of[c], of[across[b, a]]) == 0 for (a, b), c in across.items() if a < b
    )


def _incentre(of: Sequence[Point], triangle: Triangle) -> tuple[float, float]:
    (ax, ay), (bx, by), (cx, cy) = (of[corner] for corner in triangle)
    a, b, c = (sqrt(x * x + y * y) for x, y in ((bx - cx, by - cy), (cx - ax, cy - ay), (ax - bx, ay - by)))
    around = a + b + c
    return (a * ax + b * bx + c * cx) / around, (a * ay + b * by + c * cy) / around
