"""Figures of pointing tasks by hand: what counts as right, what as no answer, and areas, triangles and lengths."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eyeline.data.generated.convex_hull import convex_hull, hull
from eyeline.data.generated.delaunay import delaunay
from eyeline.data.generated.sorting import sorting
from eyeline.data.generated.tsp import tsp
from eyeline.errors import ConfigError, UserError
from eyeline.metrics import pointing_report
from eyeline.metrics.polygons import area, is_simple, turn

MADE: dict[str, Any] = {"sorting": sorting, "convex-hull": convex_hull, "delaunay": delaunay, "tsp": tsp}
SQUARE = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0), (1.0, 1.0)]  # and its middle
HULL = [0, 1, 2, 3]


def scores(task: str, source: Any, outputs: list[Any], target: list[int], **options: Any) -> dict[str, float | None]:
    report = pointing_report(task, [source] * len(outputs), outputs, [target] * len(outputs), samples=50, **options)
    assert (report["task"], report["n"]) == (task, len(outputs))
    return {name: figure["score"] for name, figure in report["metrics"].items()}


# What holds for all of them


@pytest.mark.parametrize("task", MADE)
def test_the_right_answers_are_all_right(task: str) -> None:
    pairs = list(MADE[task](30, 1, (5, 9)))
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    report = pointing_report(task, sources, targets, targets, samples=50)
    for name, figure in report["metrics"].items():
        expected = 0 if name == "invalid" else figure["score"] if name.endswith("_length") else 100
        assert figure["score"] == pytest.approx(expected)
        assert figure["low"] - 1e-9 <= figure["score"] <= figure["high"] + 1e-9
        assert figure["signature"].startswith(f"{name}|version:1|task:{task}")


@pytest.mark.parametrize("task", MADE)
@pytest.mark.parametrize("output", [None, [], [0], [0, 1, 2, 99], [-1, 0, 1], [0, 0, 1, 2]])
def test_no_output_is_an_error_and_none_of_these_is_right(task: str, output: Any) -> None:
    pair = next(MADE[task](1, 1, 6))
    found = scores(task, pair.source, [output], list(pair.target))
    assert (found["sequence_accuracy"], found["exact_match"]) == (0, 0)
    assert found["invalid"] == (0 if (task, output) == ("delaunay", []) else 100)


@pytest.mark.parametrize("task", MADE)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_what_matches_exactly_is_right_and_what_is_right_is_valid(task: str, data: st.DataObject) -> None:
    pairs = list(MADE[task](4, data.draw(st.integers(0, 3)), 5))
    positions = st.one_of(st.none(), st.lists(st.integers(-1, 6), max_size=9), st.permutations(range(5)))
    outputs = [data.draw(st.one_of(positions, st.just(list(pair.target)))) for pair in pairs]
    report = pointing_report(task, [p.source for p in pairs], outputs, [p.target for p in pairs], samples=20)
    found = {name: figure["score"] for name, figure in report["metrics"].items()}
    assert found["exact_match"] <= found["sequence_accuracy"] <= 100 - found["invalid"]
    assert found.get("area_covered") is None or 0 < found["area_covered"] <= 100 + 1e-9
    assert found.get("tour_ratio") is None or found["tour_ratio"] >= 100 - 1e-9
    for figure in report["metrics"].values():
        assert figure["score"] is None or figure["low"] <= figure["high"]


def test_an_interval_is_a_bootstrap_over_instances() -> None:
    outputs = [HULL] * 70 + [[0, 1, 2]] * 30
    report = pointing_report("convex-hull", [SQUARE] * 100, outputs, [HULL] * 100, seed=3)
    accuracy, covered = report["metrics"]["sequence_accuracy"], report["metrics"]["area_covered"]
    assert (accuracy["score"], covered["score"]) == (70, pytest.approx(85))
    assert accuracy["low"] == pytest.approx(70 - 1.96 * math.sqrt(21), abs=1.5)
    assert accuracy["high"] == pytest.approx(70 + 1.96 * math.sqrt(21), abs=1.5)
    assert covered["low"] == pytest.approx((100 + accuracy["low"]) / 2)
    few = [pointing_report("convex-hull", [SQUARE] * 100, outputs, [HULL] * 100, seed=seed, samples=30) for seed in (3, 3, 4)]
    assert few[0] == few[1] != few[2]


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"convexhull.*did you mean 'convex-hull'"):
        pointing_report("convexhull", [SQUARE], [HULL], [HULL])
    with pytest.raises(UserError, match="2 sources, 1 outputs and 2 targets"):
        pointing_report("convex-hull", [SQUARE] * 2, [HULL], [HULL] * 2)
    with pytest.raises(UserError, match="no outputs"):
        pointing_report("convex-hull", [], [], [])
    for target in ([0, 1], [0, 2, 1, 3], [0, 1, 5]):
        with pytest.raises(UserError, match=f"target 2 is no answer: {target[0]} {target[1]}"):
            pointing_report("convex-hull", [SQUARE] * 2, [HULL] * 2, [HULL, target])


# Orders


def test_equal_numbers_may_be_pointed_at_in_any_order() -> None:
    numbers = [[3.0], [1.0], [3.0], [2.0]]
    outputs = [[1, 3, 0, 2], [1, 3, 2, 0], [1, 0, 3, 2], [1, 3, 0], [1, 1, 3, 0, 2]]
    assert scores("sorting", numbers, outputs, [1, 3, 0, 2]) == {
        "sequence_accuracy": 40,
        "exact_match": 20,
        "invalid": 40,
    }


# Hulls


@pytest.mark.parametrize(
    ("output", "right", "valid", "covered"),
    [
        ([0, 1, 2, 3], True, True, 100),
        ([2, 3, 0, 1], True, True, 100),  # the same cycle from elsewhere
        ([3, 2, 1, 0], False, True, 100),  # clockwise: the same figure, not the same sequence
        ([0, 1, 2], False, True, 50),
        ([1, 2, 4], False, True, 25),
        ([0, 1, 4, 2, 3], False, True, 75),
        ([0, 2, 1, 3], False, False, None),  # edges that cross
        ([0, 1], False, False, None),
        ([0, 4, 2], False, False, None),  # on one line
        ([0, 1, 2, 3, 0], False, False, None),  # closed
        ([0, 4, 1, 2, 3, 4], False, False, None),
        ([0, 2, 4], False, False, None),
    ],
)
def test_hulls(output: list[int], right: bool, valid: bool, covered: float | None) -> None:
    found = scores("convex-hull", SQUARE, [output], HULL)
    assert found["sequence_accuracy"] == 100 * right
    assert found["exact_match"] == 100 * (output == HULL)
    assert found["invalid"] == 100 * (not valid)
    assert found["area_covered"] == (None if covered is None else pytest.approx(covered))


def test_area_is_fail_when_more_than_one_in_a_hundred_is_no_polygon() -> None:
    crossing = [0, 2, 1, 3]
    found = scores("convex-hull", SQUARE, [[0, 1, 2]] * 99 + [crossing], HULL)
    assert found == {"sequence_accuracy": 0, "exact_match": 0, "invalid": 1, "area_covered": pytest.approx(50)}
    found = scores("convex-hull", SQUARE, [[0, 1, 2]] * 98 + [crossing] * 2, HULL)
    assert found == {"sequence_accuracy": 0, "exact_match": 0, "invalid": 2, "area_covered": None}
    report = pointing_report("convex-hull", [SQUARE], [crossing], [HULL])["metrics"]["area_covered"]
    assert (report["score"], report["low"], report["high"]) == (None, None, None)
    assert report["signature"].endswith("|fails:>1%")


# Polygons


@pytest.mark.parametrize(
    ("polygon", "simple"),
    [
        ([(0, 0), (1, 0), (0, 1)], True),
        ([(0, 0), (1, 0), (2, 0), (0, 1)], True),  # a corner on a straight line
        ([(0, 0), (2, 0), (1, 0), (0, 1)], False),  # back along the same edge
        ([(0, 0), (1, 0), (2, 0)], False),
        ([(0, 0), (2, 2), (2, 0), (0, 2)], False),  # a bow tie
        ([(0, 0), (4, 0), (4, 4), (2, 0), (0, 4)], False),  # a corner that touches an edge
        ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)], True),
        ([(0, 0), (1, 0), (1, 0), (0, 1)], False),
        ([(0, 0), (1, 0)], False),
        ([], False),
    ],
)
def test_simple_polygons_by_hand(polygon: Any, simple: bool) -> None:
    assert is_simple(polygon) is simple
    assert is_simple(polygon[::-1]) is simple
    assert is_simple(polygon[1:] + polygon[:1]) is simple
    assert is_simple([(y / 1024 + 5, x / 1024) for x, y in polygon]) is simple


GRID = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=7, unique=True)


@given(GRID)
def test_a_hull_is_simple_and_no_simple_polygon_of_its_points_is_larger(points: Any) -> None:
    corners = [points[corner] for corner in hull(points)]
    assume(len(corners) > 2)
    assert is_simple(corners)
    assert area(corners) > 0
    assert area(corners[::-1]) == -area(corners)
    if is_simple(points):
        assert 0 < abs(area(points)) <= area(corners)


@given(GRID)
@settings(max_examples=300)
def test_simple_polygons_by_the_winding_of_their_corners(points: Any) -> None:
    """A second way: every pair of edges as sets of their points, on a grid so fine that where they meet is on it."""
    edges = list(zip(points, points[1:] + points[:1], strict=True))
    fine = math.lcm(*range(1, 33))

    def common(a: Any, b: Any, c: Any, d: Any) -> Any:
        """Points that the segments share: none, one, or more."""
        (rx, ry), (sx, sy), (qx, qy) = (b[0] - a[0], b[1] - a[1]), (d[0] - c[0], d[1] - c[1]), (c[0] - a[0], c[1] - a[1])
        across = rx * sy - ry * sx
        if across:
            t, u = fine * (qx * sy - qy * sx) // across, fine * (qx * ry - qy * rx) // across
            return 1 if 0 <= t <= fine and 0 <= u <= fine else 0
        if qx * ry - qy * rx:
            return 0
        low, high = max(min(a, b), min(c, d)), min(max(a, b), max(c, d))
        return 0 if low > high else 1 if low == high else 2

    expected = all(
        common(*edges[i], *edges[j]) == (1 if j - i in (1, len(edges) - 1) else 0)
        for i in range(len(edges))
        for j in range(i + 1, len(edges))
    )
    assert is_simple(points) is expected


def test_turns_are_exact_where_rounding_would_decide() -> None:
    tiny = 2.0**-52
    assert turn((0.5, 0.5), (12.0, 12.0), (24.0, 24.0)) == 0
    assert turn((0.5, 0.5 + tiny), (12.0, 12.0), (24.0, 24.0)) == 1
    assert turn((0.5 + tiny, 0.5), (12.0, 12.0), (24.0, 24.0)) == -1
    assert turn((0.0, 0.0), (1e-170, 0.0), (1e-170, 1e-170)) == 1  # the product alone is zero


# Triangulations

TRIANGLES = [0, 1, 4, 1, 2, 4, 2, 3, 4, 0, 4, 3]  # the square, cut at its middle


@pytest.mark.parametrize(
    ("output", "right", "valid", "covered"),
    [
        (TRIANGLES, True, True, 100),
        ([4, 2, 1, 3, 4, 2, 0, 3, 4, 1, 4, 0], True, True, 100),  # any order, begun anywhere, either way around
        ([0, 1, 4, 1, 2, 4], False, True, 50),
        ([0, 1, 4, 0, 1, 4, 1, 0, 4, 4, 0, 1], False, True, 25),  # one triangle four times
        ([*TRIANGLES, 0, 1, 2], False, True, 100),  # one too many
        ([*TRIANGLES, 0, 1, 4], False, True, 100),  # one said twice
        (TRIANGLES[:-1], False, False, 75),  # broken off
        ([0, 1, 1, 1, 2, 4], False, False, 25),
        ([0, 1, 9, 1, 2, 4], False, False, 25),
        (None, False, False, 0),
    ],
)
def test_triangles(output: Any, right: bool, valid: bool, covered: float) -> None:
    assert scores("delaunay", SQUARE, [output], TRIANGLES) == {
        "sequence_accuracy": 100 * right,
        "exact_match": 100 * (output == TRIANGLES),
        "invalid": 100 * (not valid),
        "triangle_coverage": covered,
    }


def test_triangles_are_pooled_over_instances() -> None:
    sources, targets = [SQUARE, SQUARE[:3]], [TRIANGLES, [0, 1, 2]]
    report = pointing_report("delaunay", sources, [[0, 1, 4], [0, 1, 2]], targets, samples=10)
    assert report["metrics"]["triangle_coverage"]["score"] == pytest.approx(100 * 2 / 5)


# Tours


@pytest.mark.parametrize(
    ("output", "right", "valid", "length"),
    [
        ([0, 1, 2, 3], True, True, 8),
        ([0, 3, 2, 1], True, True, 8),  # the other way around
        ([2, 1, 0, 3], True, True, 8),
        ([0, 2, 1, 3], False, True, 4 + 4 * math.sqrt(2)),
        ([0, 1, 2], False, False, None),
        ([0, 1, 2, 3, 0], False, False, None),
        ([0, 1, 1, 3], False, False, None),
    ],
)
def test_tours(output: list[int], right: bool, valid: bool, length: float | None) -> None:
    assert scores("tsp", SQUARE[:4], [output], [0, 1, 2, 3]) == {
        "sequence_accuracy": 100 * right,
        "exact_match": 100 * (output == [0, 1, 2, 3]),
        "invalid": 100 * (not valid),
        "tour_ratio": None if length is None else pytest.approx(100 * length / 8),
        "tour_length": None if length is None else pytest.approx(length),
        "target_length": 8,
    }


def test_lengths_are_of_valid_tours_alone() -> None:
    outputs = [[0, 1, 2, 3], [0, 1, 2], [0, 2, 1, 3]]
    found = scores("tsp", SQUARE[:4], outputs, [0, 1, 2, 3])
    assert found["invalid"] == pytest.approx(100 / 3)
    assert found["tour_length"] == pytest.approx((12 + 4 * math.sqrt(2)) / 2)
    assert found["tour_ratio"] == pytest.approx(100 * (12 + 4 * math.sqrt(2)) / 16)
    assert found["target_length"] == 8
