"""Points of a square and their convex hull (Vinyals et al. 2015, section 3.1). Knows nothing of files or models."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from eyeline.data.generated import PointingPair
from eyeline.data.generated.points import Length, Point, bounds, points, scaled, turn

LENGTH = (5, 50)  # the paper's


def convex_hull(count: int, seed: int, length: Length = LENGTH) -> Iterator[PointingPair]:
    """Points uniform in the unit square, and the positions of the corners of their hull: see `hull`.

    The paper closes the polygon by naming the first corner again; here no position comes twice. Points that all lie on one line
    are drawn anew. Pairs are drawn one at a time; the same arguments give the same pairs, and a larger count begins with those
    of a smaller one.

    Raises:
        ConfigError: a length that cannot be.
    """
    shortest, longest = bounds(length, 3)
    chance = random.Random(seed)

    def draw() -> PointingPair:
        while True:
            drawn = points(chance.randint(shortest, longest), chance)
            corners = hull(drawn)
            if len(corners) > 2:
                return PointingPair(scaled(drawn), tuple(corners))

    return (draw() for _ in range(count))


def hull(of: Sequence[Point]) -> list[int]:
    """Positions of the corners of the convex hull, counter-clockwise, the lowest position first (Andrew 1979).

    Exact for whole numbers. A point on an edge is no corner; of equal points the first stands for all. Points on one line have
    two corners, equal points one, and no points none.
    """
    first = {point: position for position, point in reversed(list(enumerate(of)))}
    order = sorted(first)
    if len(order) < 2:
        return list(first.values())
    chain: list[Point] = []
    for walk in (order, order[::-1]):  # along the lower side, then back along the upper
        start = len(chain)
        for point in walk:
            while len(chain) > start + 1 and turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chain.pop()  # the other side begins with it
    corners = [first[point] for point in chain]
    lowest = corners.index(min(corners))
    return corners[lowest:] + corners[:lowest]
