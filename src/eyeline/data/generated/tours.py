"""Closed tours that no small change makes shorter, for more points than can be solved exactly. Knows points; no pairs, no files.

Every tour begins as a nearest-neighbour tour and takes the change that shortens it most, until none does. A change takes some
points after a place out of the tour and puts them back so many places further on, perhaps turned around: turned around on the
spot it is a 2-opt move (Croes 1958), at most three points moved elsewhere an Or-opt move (Or 1976).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

STARTS = 8  # nearest-neighbour tours of an instance, from points spread over its positions
_AT_ONCE = 1 << 21  # numbers held for the changes of all tours at a time
_LEAST = 1e-9  # of the largest distance: a smaller gain is rounding

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


def good_tours(of: Real, starts: int = STARTS) -> Whole:
    """[B, n] short closed tours through points [B, n, 2], n ≥ 4, each from position 0: the best local optimum of `starts`."""
    count, size = of.shape[:2]
    starts = min(starts, size)
    at_once = max(1, _AT_ONCE // (starts * len(_changes(size)[0])))
    return np.concatenate([_best_of(of[start : start + at_once], starts) for start in range(0, count, at_once)])


def _best_of(of: Real, starts: int) -> Whole:
    count, size = of.shape[:2]
    apart = np.sqrt(((of[:, :, None] - of[:, None]) ** 2).sum(-1))
    apart = np.repeat(apart, starts, 0)  # [R, n, n], R = B · starts
    tours = np.tile(np.arange(starts) * size // starts, count)
    found = improved(apart, _nearest_neighbours(apart, tours))
    lengths = np.take_along_axis(_between(apart, found), np.roll(np.arange(size), -1)[None, :, None], 2).sum((1, 2))
    best = found.reshape(count, starts, size)[np.arange(count), lengths.reshape(count, starts).argmin(1)]
    zero = (best == 0).argmax(1)
    return np.take_along_axis(best, (zero[:, None] + np.arange(size)) % size, 1)


def _nearest_neighbours(apart: Real, starts: Whole) -> Whole:
    """Tours [R, n] that go from `starts` [R] to the nearest point not visited yet."""
    rows, size = np.arange(len(apart)), apart.shape[1]
    way, visited = [starts], np.zeros(apart.shape[:2], dtype=np.bool_)
    for _ in range(size - 1):
        visited[rows, way[-1]] = True
        way.append(np.where(visited, np.inf, apart[rows, way[-1]]).argmin(1))
    return np.stack(way, 1)


def _between(apart: Real, tours: Whole) -> Real:
    """[R, n, n] distances between places of the tour rather than between points."""
    return np.take_along_axis(np.take_along_axis(apart, tours[:, :, None], 1), tours[:, None], 2)


@cache
def _changes(size: int) -> tuple[Whole, Whole, Whole]:
    """Every change of a tour through `size` points.

    Returns:
        changes [C, 4]: place before the points, how many, how far they move, whether they are turned around;
        added and removed [C, 3]: the edges it adds and takes away, as indices into flat distances between places.
    """
    turned = [(place, number, 0, 1) for place in range(size) for number in range(2, size // 2 + 1)]
    moved = [
        (place, number, further, turn)
        for number in range(1, min(3, size - 3) + 1)
        for turn in range(min(2, number))
        for further in range(1, size - number)
        for place in range(size)
    ]
    changes = np.array(turned + moved, dtype=np.int64)
    place, number, further, turn = changes.T
    before, first, last, after = place, (place + 1) % size, (place + number) % size, (place + number + 1) % size
    left, right = (place + number + further) % size, (place + number + further + 1) % size  # where they are put in between
    stays = further == 0
    begin, end = np.where(turn, last, first), np.where(turn, first, last)
    left, right = np.where(stays, before, left), np.where(stays, after, right)
    nothing = np.zeros_like(place)  # the edge of a place with itself, of no length
    closing = np.where(stays, nothing, before * size + after)
    opening = np.where(stays, nothing, left * size + right)
    added = np.stack([left * size + begin, end * size + right, closing], 1)
    removed = np.stack([before * size + first, last * size + after, opening], 1)
    return changes, added, removed


def improved(apart: Real, tours: Whole) -> Whole:
    """Tours [R, n] after the best change again and again, until no change makes them shorter."""
    tours, size = tours.copy(), tours.shape[1]
    changes, added, removed = _changes(size)
    least = _LEAST * apart.max(initial=1.0)
    open_rows = np.arange(len(tours))
    while len(open_rows):
        between = _between(apart[open_rows], tours[open_rows]).reshape(len(open_rows), -1)
        gain = np.zeros((len(open_rows), len(changes)))
        for edge in range(3):
            gain += between[:, removed[:, edge]] - between[:, added[:, edge]]
        best = gain.argmax(1)
        better = np.take_along_axis(gain, best[:, None], 1)[:, 0] > least
        open_rows, best = open_rows[better], best[better]
        tours[open_rows] = _changed(tours[open_rows], changes[best])
    return tours


def _changed(tours: Whole, changes: Whole) -> Whole:
    """Tours [R, n] after one change [R, 4] each."""
    size = tours.shape[1]
    place, number, further, turn = (column[:, None] for column in changes.T)
    index = np.arange(size)  # from the first of the points that move
    within = index - further
    inside = np.where(turn == 1, number - 1 - within, within)
    source = np.where(index < further, index + number, np.where(within < number, inside, index))
    return np.take_along_axis(tours, (place + 1 + source) % size, 1)
