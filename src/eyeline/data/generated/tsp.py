"""Points of a square and a short round trip through them (Vinyals et al. 2015, section 3.3). Knows nothing of files or models.

Up to EXACT points the tour is the shortest there is; beyond, the best of several local optima (see tours.py). Instances are
solved many at a time, so that numpy's cost of a call is shared; which of them are solved together changes no answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from eyeline.data.generated import PointingPair
from eyeline.data.generated.points import Length, Point, bounds, points, scaled
from eyeline.data.generated.tours import good_tours

LENGTH = (5, 20)  # the paper's
EXACT = 12
_TOGETHER = 512  # pairs drawn at a time
_HELD = 1 << 19  # numbers in the table of partial tours: few enough for a processor's cache

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


def tsp(count: int, seed: int, length: Length = LENGTH) -> Iterator[PointingPair]:
    """Points uniform in the unit square, and the order in which a short closed tour visits them.

    Position 0 comes first and every position once: the way back to the first is understood. Of the two directions it is the
    counter-clockwise one, that is the one whose enclosed area is positive. The same arguments give the same pairs, and a larger
    count begins with those of a smaller one.

    Raises:
        ConfigError: a length that cannot be.
    """
    shortest, longest = bounds(length, 3)

    def draw() -> Iterator[PointingPair]:
        chance = random.Random(seed)
        instances = (points(chance.randint(shortest, longest), chance) for _ in range(count))
        while together := list(islice(instances, _TOGETHER)):
            tours = _solved(together)
            yield from (PointingPair(scaled(drawn), tour) for drawn, tour in zip(together, tours, strict=True))

    return draw()


def _solved(instances: list[list[Point]]) -> list[tuple[int, ...]]:
    """A tour for each, solved with those of equal size."""
    tours: dict[int, tuple[int, ...]] = {}
    for size in sorted({len(drawn) for drawn in instances}):
        members = [number for number, drawn in enumerate(instances) if len(drawn) == size]
        of = np.array([instances[number] for number in members], dtype=np.float64)  # [B, n, 2]
        found = counter_clockwise(of, shortest_tours(of) if size <= EXACT else good_tours(of))
        tours.update(zip(members, map(tuple, found.tolist()), strict=True))
    return [tours[number] for number in range(len(instances))]


def distances(of: Real) -> Real:
    """[B, n, n] from points [B, n, 2]."""
    apart = of[:, :, None] - of[:, None]
    lengths: Real = np.sqrt((apart * apart).sum(-1))
    return lengths


def tour_lengths(of: Real, tours: Whole) -> Real:
    """[B] lengths of closed tours [B, n] through points [B, n, 2]."""
    visited = np.take_along_axis(of, tours[..., None], 1)
    lengths: Real = np.sqrt(((visited - np.roll(visited, -1, 1)) ** 2).sum(-1)).sum(-1)
    return lengths


def counter_clockwise(of: Real, tours: Whole) -> Whole:
    """Tours [B, n], each beginning at position 0, in the direction whose enclosed area is positive; where it is zero, in the one
    whose second position is the lower."""
    x, y = np.moveaxis(np.take_along_axis(of, tours[..., None], 1), -1, 0)
    area = (x * np.roll(y, -1, 1) - np.roll(x, -1, 1) * y).sum(-1)
    turned = np.concatenate([tours[:, :1], tours[:, :0:-1]], 1)
    keep = (area > 0) | ((area == 0) & (tours[:, 1] <= tours[:, -1]))
    return np.where(keep[:, None], tours, turned)


def shortest_tours(of: Real) -> Whole:
    """[B, n] shortest closed tours through points [B, n, 2], each from position 0 (Held & Karp 1962).

    The table has an entry for each set of the other n - 1 points and the one visited last: the length of the shortest way from
    position 0 through all of the set to that one. Time grows as n² 2ⁿ, memory as n 2ⁿ.
    """
    count, size = of.shape[:2]
    if size < 4:
        return np.tile(np.arange(size), (count, 1))
    at_once = max(1, _HELD // (size << (size - 1)))
    parts = [_held_karp(distances(of[start : start + at_once])) for start in range(0, count, at_once)]
    return np.concatenate(parts)


def _held_karp(apart: Real) -> Whole:
    """Tours [B, n] from distances [B, n, n]."""
    count, others = len(apart), apart.shape[1] - 1
    between = apart[:, 1:, 1:]  # [B, m, m], m = n - 1 other points
    table = np.full((count, 1 << others, others), np.inf)
    for last in range(others):
        table[:, 1 << last, last] = apart[:, 0, last + 1]
    for members in range(2, others + 1):
        sets = np.array([sum(1 << member for member in chosen) for chosen in combinations(range(others), members)])
        for last in range(others):
            whole = sets[sets >> last & 1 == 1]
            before = table[:, whole ^ (1 << last)] + between[:, None, :, last]  # [B, sets, m]: by the one before the last
            table[:, whole, last] = before.min(-1)
    rows, left = np.arange(count), np.full(count, (1 << others) - 1)
    way = [(table[:, -1] + apart[:, 1:, 0]).argmin(-1)]  # the last one, from which it is shortest back to position 0
    for _ in range(others - 1):
        left = left ^ (1 << way[-1])
        way.append((table[rows, left] + between[rows, :, way[-1]]).argmin(-1))
    return np.stack([np.zeros(count, dtype=np.int64), *(last + 1 for last in reversed(way))], 1)
