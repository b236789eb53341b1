"""Sorting, hulls, triangulations and tours: by hand, by brute force, against scipy, and on points that lie badly."""

from __future__ import annotations

import gzip
import json
import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.data.generated import GeneratedPair, PointingPair, write_jsonl
from eyeline.data.generated.convex_hull import convex_hull, hull
from eyeline.data.generated.delaunay import delaunay, triangulation
from eyeline.data.generated.sorting import sorting, sorting_symbols
from eyeline.data.generated.tours import good_tours
from eyeline.data.generated.tsp import counter_clockwise, shortest_tours, tour_lengths, tsp
from eyeline.errors import ConfigError, UserError

Task = Callable[..., Iterator[Any]]
POINTS: dict[str, Task] = {"convex_hull": convex_hull, "delaunay": delaunay, "tsp": tsp}
TASKS: dict[str, Task] = {"sorting": sorting, "sorting_symbols": sorting_symbols, **POINTS}
Points = list[tuple[int, int]]


def crowded(least: int = 0, most: int = 9, side: int = 4) -> st.SearchStrategy[Points]:
    """Points of a grid so small that equal ones, straight lines and circles through four of them are common."""
    return st.lists(st.tuples(st.integers(0, side), st.integers(0, side)), min_size=least, max_size=most)


def cross(a: Any, b: Any, c: Any) -> Any:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def area2(points: list[Any]) -> Any:
    """Twice the area that a closed walk encloses."""
    return sum(a[0] * b[1] - a[1] * b[0] for a, b in pairwise([*points, *points[:1]]))


# What holds for all of them


@pytest.mark.parametrize("name", TASKS)
def test_the_same_arguments_give_the_same_pairs_and_more_begin_with_fewer(name: str) -> None:
    task = TASKS[name]
    pairs = list(task(30, 1, (4, 9)))
    assert list(task(30, 1, (4, 9))) == pairs
    assert list(task(12, 1, (4, 9))) == pairs[:12]
    assert list(islice(task(10**9, 1, (4, 9)), 12)) == pairs[:12]  # nothing is made before it is asked for
    assert list(task(30, 2, (4, 9))) != pairs
    assert len(set(pairs)) > 25
    assert list(task(0, 1)) == []


@pytest.mark.parametrize("name", TASKS)
def test_lengths_are_fixed_or_all_of_a_range(name: str) -> None:
    def length(pair: Any) -> int:
        return len(pair.source.split(" ") if isinstance(pair, GeneratedPair) else pair.source)

    assert {length(pair) for pair in TASKS[name](20, 1, 6)} == {6}
    assert {length(pair) for pair in TASKS[name](150, 1, (4, 7))} == {4, 5, 6, 7}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("length", [(6, 5), (0, 5), 0, -3])
def test_a_length_that_cannot_be_is_refused_before_anything_is_drawn(name: str, length: Any) -> None:
    shown = "-".join(map(str, length)) if isinstance(length, tuple) else str(length)
    with pytest.raises(ConfigError, match=f"length={shown}"):
        TASKS[name](3, 1, length)


@pytest.mark.parametrize("name", POINTS)
def test_less_than_a_triangle_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"at least 3 .*length=2-5"):
        POINTS[name](3, 1, (2, 5))


@pytest.mark.parametrize("name", POINTS)
def test_points_are_uniform_and_what_a_file_says_is_what_was_labelled(name: str) -> None:
    pairs = list(POINTS[name](200, 5, 8))
    everything = np.array([pair.source for pair in pairs])
    assert everything.shape == (200, 8, 2)
    assert 0 <= everything.min() < 0.01 < 0.99 < everything.max() < 1
    assert np.allclose(everything.mean((0, 1)), 0.5, atol=0.03)
    assert np.allclose(everything.var((0, 1)), 1 / 12, atol=0.01)
    for pair in pairs:
        assert json.loads(json.dumps(pair.source)) == [list(point) for point in pair.source]
        assert all(len(repr(number)) <= 8 for point in pair.source for number in point)
        assert len({tuple(np.float32(point)) for point in pair.source}) == 8
        assert all(0 <= position < 8 for position in pair.target)


def test_a_file_of_pairs_is_json_lines_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [PointingPair(((0.5,), (0.25,)), (1, 0)), PointingPair(((0.1, 1e-06), (0.0, 0.2)), (0,))]
    assert write_jsonl(iter(pairs), tmp_path / "one.jsonl") == 2
    lines = b'{"source": [[0.5], [0.25]], "target": [1, 0]}\n{"source": [[0.1, 1e-06], [0.0, 0.2]], "target": [0]}\n'
    assert (tmp_path / "one.jsonl").read_bytes() == lines
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_jsonl(pairs, tmp_path / name)
        assert gzip.decompress((tmp_path / name).read_bytes()) == lines
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()

    def breaks() -> Iterator[PointingPair]:
        yield pairs[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match=r"No space left on device .*one\.jsonl"):
        write_jsonl(breaks(), tmp_path / "one.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == lines
    assert len(list(tmp_path.iterdir())) == 3


def test_hulls_are_made_fast() -> None:
    began = time.process_time()
    assert sum(1 for _ in convex_hull(5_000, 1, 10)) == 5_000
    assert time.process_time() - began < 5  # a hundred thousand in 100 s, on a machine twenty times slower than a usual one


# Sorting


def test_sorting_points_from_the_smallest_to_the_largest() -> None:
    for pair in sorting(200, 3, (1, 12)):
        values = [element[0] for element in pair.source]
        assert sorted(pair.target) == list(range(len(values)))
        ordered = [values[position] for position in pair.target]
        assert all(a < b for a, b in pairwise(ordered))


def test_symbols_are_sorted_stably_and_linked() -> None:
    for pair in sorting_symbols(200, 3, (1, 12), symbols=8):
        numbers, order = [int(word) for word in pair.source.split(" ")], [int(word) for word in pair.target.split(" ")]
        assert max(numbers) < 8
        assert [(numbers[i], i) for i in order] == sorted((number, i) for i, number in enumerate(numbers))
        links = [tuple(map(int, link.split("-"))) for link in pair.alignment.split(" ")]
        assert links == sorted((i, j) for j, i in enumerate(order))
    with pytest.raises(ConfigError, match="symbols=0"):
        sorting_symbols(1, 1, symbols=0)


# Hulls


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        ([], []),
        ([(3, 3)], [0]),
        ([(3, 3), (3, 3)], [0]),
        ([(5, 5), (0, 0)], [0, 1]),
        ([(1, 1), (0, 0), (2, 2), (0, 0)], [1, 2]),  # on one line: its ends
        ([(0, 0), (2, 0), (1, 0), (1, 1)], [0, 1, 3]),  # a point on an edge is no corner
        ([(1, 1), (0, 2), (2, 2), (2, 0), (0, 0)], [1, 4, 3, 2]),  # not clockwise, and from the lowest position
        ([(0, 0), (4, 0), (4, 0), (0, 4), (4, 4), (0, 0)], [0, 1, 4, 3]),  # of equal points the first
    ],
)
def test_hulls_by_hand(points: Points, corners: list[int]) -> None:
    assert hull(points) == corners


@given(crowded())
def test_a_hull_is_strictly_convex_counter_clockwise_and_around_all_points(points: Points) -> None:
    corners = hull(points)
    assert len(set(corners)) == len(corners)
    assert corners[:1] == ([min(corners)] if corners else [])
    at = [points[corner] for corner in corners]
    assert all(points.index(place) == corner for place, corner in zip(at, corners, strict=True))
    if len(corners) < 3:
        assert all(cross(a, b, c) == 0 for a in points for b in points for c in points)
        assert {min(points), max(points)} == set(at) if points else not at
        return
    around = [*at, *at[:2]]
    assert all(cross(a, b, c) > 0 for a, b, c in zip(around, around[1:], around[2:], strict=False))
    assert area2(at) == sum(cross(at[0], b, c) for b, c in pairwise(at[1:]))  # once around, not twice
    assert all(cross(a, b, point) >= 0 for a, b in pairwise(around[:-1]) for point in points)


@pytest.mark.parametrize("length", [5, 10, 50])
def test_hulls_are_those_of_scipy(length: int) -> None:
    theirs = pytest.importorskip("scipy.spatial").ConvexHull
    for pair in convex_hull(200, 7, length):
        corners = theirs(np.array(pair.source)).vertices.tolist()
        lowest = corners.index(min(corners))
        assert pair.target == (*corners[lowest:], *corners[:lowest])


# Triangulations


def outside_or_on(triangle: list[Any], point: Any) -> bool:
    """Whether a point is not inside the circle: by its centre and radius, in fractions."""
    (ax, ay), (bx, by), (cx, cy) = ((Fraction(x), Fraction(y)) for x, y in triangle)
    d = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
    a2, b2, c2 = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    x, y = (a2 * (by - cy) + b2 * (cy - ay) + c2 * (ay - by)) / d, (a2 * (cx - bx) + b2 * (ax - cx) + c2 * (bx - ax)) / d
    return bool((point[0] - x) ** 2 + (point[1] - y) ** 2 >= (ax - x) ** 2 + (ay - y) ** 2)


@pytest.mark.parametrize(
    ("points", "triangles"),
    [
        ([], []),
        ([(0, 0), (1, 1)], []),
        ([(0, 0), (1, 1), (2, 2), (3, 3)], []),
        ([(0, 0), (0, 3), (3, 0)], [(0, 2, 1)]),
        ([(9, 0), (0, 0), (0, 9), (1, 1)], [(1, 3, 2), (0, 3, 1), (0, 2, 3)]),  # incentres from left to right
        ([(0, 0), (2, 0), (4, 0), (2, 3)], [(0, 1, 3), (1, 2, 3)]),  # a point on an edge of the hull
        ([(0, 0), (2, 0), (2, 0), (1, 1)], [(0, 1, 3)]),
        ([(0, 0), (1, 0), (1, 1), (0, 1)], [(0, 2, 3), (0, 1, 2)]),  # four on a circle: one of two answers
    ],
)
def test_triangles_by_hand(points: Points, triangles: list[tuple[int, ...]]) -> None:
    assert triangulation(points) == triangles


@given(crowded(most=8))
@settings(max_examples=150)
def test_triangles_tile_the_hull_and_their_circles_are_empty(points: Points) -> None:
    triangles = triangulation(points)
    at = [[points[corner] for corner in triangle] for triangle in triangles]
    assert all(triangle[0] == min(triangle) for triangle in triangles)
    assert all(cross(*corners) > 0 for corners in at)
    assert all(outside_or_on(corners, point) for corners in at for point in points)
    assert sum(map(area2, at)) == area2([points[corner] for corner in hull(points)])
    used = {corner for triangle in triangles for corner in triangle}
    assert not triangles or used == {points.index(point) for point in points}


@pytest.mark.parametrize("length", [5, 10, 40])
def test_triangles_are_those_of_scipy_and_stand_in_order(length: int) -> None:
    theirs = pytest.importorskip("scipy.spatial").Delaunay
    for pair in delaunay(60, 7, length):
        triples = [pair.target[i : i + 3] for i in range(0, len(pair.target), 3)]
        expected = {tuple(sorted(triangle)) for triangle in theirs(np.array(pair.source)).simplices.tolist()}
        assert {tuple(sorted(triple)) for triple in triples} == expected
        assert len(triples) == len(expected)
        centres = []
        for a, b, c in ([pair.source[corner] for corner in triple] for triple in triples):
            sides = math.dist(b, c), math.dist(c, a), math.dist(a, b)
            centres.append(tuple(sum(s * p[i] for s, p in zip(sides, (a, b, c), strict=True)) / sum(sides) for i in (0, 1)))
        assert centres == sorted(centres)


def test_what_has_no_one_answer_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    square, kite, line = [(0, 0), (2, 0), (2, 2), (0, 2)], [(0, 0), (2, 0), (3, 3), (0, 2)], [(0, 0), (1, 1), (2, 2), (3, 3)]
    for module, expected in (("delaunay", (0, 1, 3, 1, 2, 3)), ("convex_hull", (0, 1, 2, 3))):
        coming = iter([line, square, kite] if module == "delaunay" else [line, square])
        with monkeypatch.context() as patch:
            patch.setattr(f"eyeline.data.generated.{module}.points", lambda number, chance, coming=coming: next(coming))
            assert next(POINTS[module](1, 1, 4)).target == expected
        assert next(coming, None) is None


# Tours


def test_tours_by_hand() -> None:
    corners = np.array([[[0, 0], [1, 1], [1, 0], [0, 1]], [[0, 0], [0, 1], [1, 1], [1, 0]]], dtype=np.float64)
    tours = counter_clockwise(corners, shortest_tours(corners))
    assert tours.tolist() == [[0, 2, 1, 3], [0, 3, 2, 1]]
    assert tour_lengths(corners, tours).tolist() == [4, 4]
    line = np.array([[[0, 0], [3, 3], [1, 1], [2, 2]]], dtype=np.float64)  # encloses nothing
    tour = counter_clockwise(line, shortest_tours(line))
    assert tour_lengths(line, tour)[0] == pytest.approx(6 * math.sqrt(2))
    assert tour[0, 1] < tour[0, -1]


def brute(of: Any) -> float:
    ways = np.array([[0, *order] for order in permutations(range(1, of.shape[0]))])
    return float(tour_lengths(np.broadcast_to(of, (len(ways), *of.shape)), ways).min())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8])
def test_no_order_is_shorter(size: int) -> None:
    of = np.random.default_rng(size).random((4, size, 2))
    tours = shortest_tours(of)
    assert all(sorted(tour) == list(range(size)) and tour[0] == 0 for tour in tours.tolist())
    assert tour_lengths(of, tours).tolist() == pytest.approx([brute(instance) for instance in of])


@given(crowded(4, 7, side=2))
@settings(max_examples=30, deadline=None)
def test_tours_of_equal_and_of_regular_points_are_shortest_too(points: Points) -> None:
    of = np.array([points], dtype=np.float64)
    expected = pytest.approx(brute(of[0]))
    for tour in (shortest_tours(of), good_tours(of)):
        assert sorted(tour[0].tolist()) == list(range(len(points)))
        assert tour_lengths(of, tour)[0] == expected


@pytest.mark.parametrize("length", [3, 5, 9, 12, 13, 20])
def test_every_tour_visits_all_counter_clockwise_from_the_first(length: int) -> None:
    for pair in tsp(12, 4, length):
        assert sorted(pair.target) == list(range(length))
        assert pair.target[0] == 0
        assert area2([pair.source[position] for position in pair.target]) > 0


def test_the_heuristic_finds_nearly_all_shortest_tours_where_they_are_known() -> None:
    of = np.random.default_rng(1).random((60, 12, 2))
    shortest, found = tour_lengths(of, shortest_tours(of)), tour_lengths(of, good_tours(of))
    assert (found > shortest - 1e-12).all()
    assert (found < shortest + 1e-9).mean() > 0.95
    assert found.sum() < 1.001 * shortest.sum()


def test_no_reversal_and_no_move_of_a_point_makes_a_long_tour_shorter() -> None:
    size = 15
    of = np.random.default_rng(2).random((20, size, 2))
    tours = good_tours(of, starts=1)
    lengths = tour_lengths(of, tours)
    for b, tour in enumerate(tours.tolist()):
        changed = [tour[:i] + tour[i:j][::-1] + tour[j:] for i in range(size) for j in range(i + 2, size + 1)]
        for i in range(size):
            rest = tour[:i] + tour[i + 1 :]
            changed += [[*rest[:j], tour[i], *rest[j:]] for j in range(size)]
        others = tour_lengths(np.broadcast_to(of[b], (len(changed), size, 2)), np.array(changed))
        assert others.min() > lengths[b] - 1e-9


def test_what_is_solved_together_changes_no_tour(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = list(tsp(40, 9, (5, 14)))
    monkeypatch.setattr("eyeline.data.generated.tsp._TOGETHER", 7)
    monkeypatch.setattr("eyeline.data.generated.tsp._HELD", 1)
    monkeypatch.setattr("eyeline.data.generated.tours._AT_ONCE", 1)
    assert list(tsp(40, 9, (5, 14))) == pairs
