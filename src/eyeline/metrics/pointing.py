"""How good outputs are that point at positions: orders, hulls, triangulations and tours. Knows points and positions; no model.

Every figure carries a signature and, but for lengths, is in percent. Outputs that are no answer of the task are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from eyeline.errors import ConfigError, UserError, nearest
from eyeline.metrics.base import Numbers
from eyeline.metrics.polygons import Point, area, is_simple
from eyeline.metrics.significance import SAMPLES, interval

VERSION = 1  # rises whenever a definition in this file changes
MOST_INVALID = 0.01  # of outputs that are no polygons; with more the area is FAIL (Vinyals et al. 2015, section 4.2)

Positions = Sequence[int]
Elements = Sequence[Sequence[float]]


@dataclass(frozen=True)
class PointingTask:
    """What outputs of a task are held to.

    match: for the signature, how outputs are compared with targets.
    valid: whether positions, all of the source, are an answer at all.
    same: whether valid ones are the right answer, perhaps written otherwise than the target.
    measures: what else is measured.
    """

    match: str
    valid: Callable[[Elements, Positions], bool]
    same: Callable[[Elements, Positions, Positions], bool]
    measures: dict[str, Measure]


@dataclass(frozen=True)
class Measure:
    """A quotient of two sums over instances, times `scale`.

    parts: the two numbers of an instance, from its elements, output, whether that is valid, and target.
    fails: FAIL when too many outputs are invalid.
    """

    parts: Callable[[Elements, Positions, bool, Positions], tuple[float, float]]
    scale: float = 100.0
    fails: bool = False

    def score(self, total: Numbers) -> float:
        """NaN where there is nothing to divide by."""
        return self.scale * float(total[0]) / float(total[1]) if total[1] else math.nan


def pointing_report(
    task: str,
    sources: Sequence[Elements],
    outputs: Sequence[Positions | None],
    targets: Sequence[Positions],
    *,
    seed: int = 1,
    samples: int = SAMPLES,
) -> dict[str, Any]:
    """What is to be said of the outputs, as plain values.

    Args:
        task: `sorting`, `convex-hull`, `delaunay` or `tsp`.
        sources: the elements of each source: numbers to be sorted, or points.
        outputs: the positions that were pointed at, from 0; None for an output that is no list of positions.
        targets: the right answers, as the generated tasks write them.
        seed: of the resamples behind `low` and `high`, the 95 % bootstrap interval over instances.
        samples: how many of them.

    Returns:
        `task`, `n` and `metrics`: name to `score`, `low`, `high` and `signature`. A score is None where it is FAIL, or where no
        output can be measured.

    Raises:
        ConfigError: no such task.
        UserError: lists that do not belong together, or a target that is no answer.
    """
    if task not in TASKS:
        raise ConfigError("no such task", task, nearest(task, TASKS))
    if not len(sources) == len(outputs) == len(targets):
        raise UserError(f"{len(sources)} sources, {len(outputs)} outputs and {len(targets)} targets")
    if not sources:
        raise UserError("no outputs to score")
    held = TASKS[task]
    measures = {"sequence_accuracy": _right(held), "exact_match": _EXACT, "invalid": _INVALID, **held.measures}
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
    for number, (source, output, target) in enumerate(zip(sources, outputs, targets, strict=True), 1):
        if not _inside(source, target) or not held.valid(source, target):
            raise UserError(f"target {number} is no answer: {' '.join(map(str, target))[:60]}")
        said = () if output is None else output
        valid = output is not None and _inside(source, said) and held.valid(source, said)
        for name, measure in measures.items():
            rows[name].append(measure.parts(source, said, valid, target))
    statistics = {name: np.array(numbers, dtype=np.float64) for name, numbers in rows.items()}
    too_many = float(statistics["invalid"][:, 0].mean()) > MOST_INVALID
    metrics = {
        name: _figure(name, task, measure, None if measure.fails and too_many else statistics[name], seed, samples)
        for name, measure in measures.items()
    }
    return {"task": task, "n": len(sources), "metrics": metrics}


def _figure(name: str, task: str, measure: Measure, rows: Numbers | None, seed: int, samples: int) -> dict[str, Any]:
    """A score with its interval and signature, all of them None where there are no rows or nothing to divide by."""
    match = f"|match:{TASKS[task].match}" if name == "sequence_accuracy" else ""
    fails = f"|fails:>{MOST_INVALID:.0%}" if measure.fails else ""
    signature = f"{name}|version:{VERSION}|task:{task}{match}{fails}"
    if rows is None or not rows[:, 1].any():
        return {"score": None, "low": None, "high": None, "signature": signature}
    between = interval(measure.score, rows, seed=seed, samples=samples)
    return {"score": measure.score(rows.sum(axis=0)), "low": between.low, "high": between.high, "signature": signature}


def _inside(source: Elements, positions: Positions) -> bool:
    return all(0 <= position < len(source) for position in positions)


def _right(task: PointingTask) -> Measure:
    return Measure(lambda source, output, valid, target: (valid and task.same(source, output, target), 1))


_EXACT = Measure(lambda source, output, valid, target: (list(output) == list(target), 1))
_INVALID = Measure(lambda source, output, valid, target: (not valid, 1))


# Sorting


def _is_order(source: Elements, positions: Positions) -> bool:
    """Every position once."""
    return len(positions) == len(source) == len(set(positions))


def _is_sorted(source: Elements, output: Positions, target: Positions) -> bool:
    """Ascending; equal numbers in any order."""
    values = [tuple(source[position]) for position in output]
    return all(a <= b for a, b in pairwise(values))


# Hulls


def _at(source: Elements, positions: Positions) -> list[Point]:
    return [(source[position][0], source[position][1]) for position in positions]


def _is_polygon(source: Elements, positions: Positions) -> bool:
    return is_simple(_at(source, positions))


def _from_lowest(positions: Positions) -> list[int]:
    """The same cycle, begun at its lowest position."""
    lowest = positions.index(min(positions)) if positions else 0
    return [*positions[lowest:], *positions[:lowest]]


def _is_same_cycle(source: Elements, output: Positions, target: Positions) -> bool:
    return _from_lowest(output) == _from_lowest(target)


def _area_covered(source: Elements, output: Positions, valid: bool, target: Positions) -> tuple[float, float]:
    """Share of the hull's area, and whether there is a polygon."""
    if not valid:
        return 0.0, 0.0
    if _is_same_cycle(source, output, target):
        return 1.0, 1.0
    return abs(area(_at(source, output))) / abs(area(_at(source, target))), 1.0


# Triangulations


def _are_triples(source: Elements, positions: Positions) -> bool:
    """Whole triples, each of three different positions."""
    return len(positions) % 3 == 0 and all(len(triple) == 3 for triple in _triangles(positions))


def _triangles(positions: Positions) -> list[frozenset[int]]:
    return [frozenset(positions[i : i + 3]) for i in range(0, len(positions), 3)]


def _are_same_triangles(source: Elements, output: Positions, target: Positions) -> bool:
    return len(output) == len(target) and set(_triangles(output)) == set(_triangles(target))


def _triangles_covered(source: Elements, output: Positions, valid: bool, target: Positions) -> tuple[float, float]:
    """True triangles that are among the output's, and all of them; an output that breaks off keeps those before."""
    true = set(_triangles(target))
    return len(true & set(_triangles(output))), len(true)


# Tours


def _is_same_tour(source: Elements, output: Positions, target: Positions) -> bool:
    """The same cycle, in either direction."""
    return _from_lowest(target) in (_from_lowest(output), _from_lowest(list(reversed(output))))


def _length(source: Elements, positions: Positions) -> float:
    around = _at(source, [*positions, *positions[:1]])
    return math.fsum(math.dist(a, b) for a, b in pairwise(around))


def _tour_ratio(source: Elements, output: Positions, valid: bool, target: Positions) -> tuple[float, float]:
    """Lengths of the tour and of the target's, where there is a tour."""
    return (_length(source, output), _length(source, target)) if valid else (0.0, 0.0)


def _tour_length(source: Elements, output: Positions, valid: bool, target: Positions) -> tuple[float, float]:
    return (_length(source, output), 1.0) if valid else (0.0, 0.0)


def _target_length(source: Elements, output: Positions, valid: bool, target: Positions) -> tuple[float, float]:
    return _length(source, target), 1.0


TASKS = {
    "sorting": PointingTask("ascending", _is_order, _is_sorted, {}),
    "convex-hull": PointingTask("cycle", _is_polygon, _is_same_cycle, {"area_covered": Measure(_area_covered, fails=True)}),
    "delaunay": PointingTask("set", _are_triples, _are_same_triangles, {"triangle_coverage": Measure(_triangles_covered)}),
    "tsp": PointingTask(
        "cycle-either-way",
        _is_order,
        _is_same_tour,
        {
            "tour_ratio": Measure(_tour_ratio),
            "tour_length": Measure(_tour_length, 1.0),
            "target_length": Measure(_target_length, 1.0),
        },
    ),
}
