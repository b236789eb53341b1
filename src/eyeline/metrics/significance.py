"""How far a score would move on another sample of lines. Knows statistics that can be summed; no text.

Resampling is by counts: a resample draws n of n lines with replacement, and its score follows from counts × statistics.
The draws depend on the seed and on n alone, so that two systems on the same lines see the same resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eyeline.errors import UserError
from eyeline.metrics.base import Numbers
from eyeline.metrics.scores import metric_named

SAMPLES = 1000
_LEVEL = (2.5, 97.5)  # percentiles of a 95 % interval
_COUNTS_AT_ONCE = 2_000_000  # draws held in memory at a time: 16 MB

Aggregate = Callable[[Numbers], float]  # the sum of some lines' statistics, [k], to their score


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Of two systems on the same lines: a's score minus b's, its 95 % interval, and the two-sided p of no difference."""

    delta: float
    low: float
    high: float
    p: float


def _resampled_sums(rows: Numbers, seed: int, samples: int) -> Iterator[Numbers]:
    """Sums [k] of `samples` resamples of rows [n, k]."""
    n = len(rows)
    generator = np.random.default_rng([seed, n])
    left = samples
    while left:
        drawn = min(left, max(1, _COUNTS_AT_ONCE // n))
        lines = generator.integers(0, n, size=(drawn, n)) + np.arange(drawn)[:, None] * n
        counts = np.bincount(lines.ravel(), minlength=drawn * n).reshape(drawn, n)
        yield from counts.astype(np.float64) @ rows
        left -= drawn


def resampled_scores(name: str, statistics: Numbers, *, seed: int = 1, samples: int = SAMPLES) -> Numbers:
    """[samples] scores in percent of bootstrap resamples of the lines that `statistics` [n, k] describe."""
    return _resampled(metric_named(name).aggregate, statistics, seed, samples)


def _resampled(aggregate: Aggregate, statistics: Numbers, seed: int, samples: int) -> Numbers:
    if not len(statistics):
        raise UserError("no lines to resample")
    return np.array([aggregate(total) for total in _resampled_sums(statistics, seed, samples)], dtype=np.float64)


def bootstrap_interval(name: str, statistics: Numbers, *, seed: int = 1, samples: int = SAMPLES) -> Interval:
    """The 95 % percentile interval of a metric, from statistics [n, k]. Efron 1979; Koehn 2004 for BLEU."""
    return interval(metric_named(name).aggregate, statistics, seed=seed, samples=samples)


def interval(aggregate: Aggregate, statistics: Numbers, *, seed: int = 1, samples: int = SAMPLES) -> Interval:
    """The same of any score that follows from a sum [k]; resamples for which it is NaN are left out."""
    scores = _resampled(aggregate, statistics, seed, samples)
    low, high = np.percentile(scores[~np.isnan(scores)], _LEVEL)
    return Interval(float(low), float(high))


def paired_bootstrap(name: str, a: Numbers, b: Numbers, *, seed: int = 1, samples: int = SAMPLES) -> Difference:
    """Compares two systems by their statistics [n, k] on the same lines.

    p is the share of resamples whose difference, moved so that its mean is zero, is at least as large as the one observed,
    with one added above and below so that it is never zero (Koehn 2004; Riezler & Maxwell 2005, section 4).

    Raises:
        UserError: when the two have not the same number of lines.
    """
    _check_paired(a, b)
    metric = metric_named(name)
    delta = metric.aggregate(a.sum(axis=0)) - metric.aggregate(b.sum(axis=0))
    deltas = resampled_scores(name, a, seed=seed, samples=samples) - resampled_scores(name, b, seed=seed, samples=samples)
    return difference(delta, deltas)


def difference(delta: float, deltas: Numbers) -> Difference:
    """The same from the observed difference and those of the resamples, [samples]: where many systems are compared two by two,
    each need be resampled but once."""
    low, high = np.percentile(deltas, _LEVEL)
    # the tolerance keeps rounding from deciding between systems that are equal
    as_large = int(np.sum(np.abs(deltas - deltas.mean()) >= abs(delta) - 1e-12))
    return Difference(delta, float(low), float(high), (as_large + 1) / (len(deltas) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for all of them being looked at (Holm 1979): of m, the k-th smallest times m - k + 1, never less than a
    smaller one's and at most 1. Where it is below 5 %, the chance of even one false discovery among all is below 5 %."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [0.0] * len(p_values)
    reached = 0.0
    for rank, place in enumerate(order):
        reached = max(reached, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = reached
    return corrected


def approximate_randomisation(name: str, a: Numbers, b: Numbers, *, seed: int = 1, samples: int = SAMPLES) -> float:
    """The two-sided p of no difference between two systems, from their statistics [n, k] on the same lines.

    If the systems were alike, each line's two outputs could as well have changed places. p is the share of such exchanges, drawn
    line by line with a chance of one half, that make a difference at least as large as the one observed, with one added above and
    below (Noreen 1989; Riezler & Maxwell 2005, section 3). Nothing is assumed of how the lines were sampled.

    Raises:
        UserError: when the two have not the same number of lines, or none.
    """
    _check_paired(a, b)
    aggregate = metric_named(name).aggregate
    both = a.sum(axis=0) + b.sum(axis=0)
    observed = abs(aggregate(a.sum(axis=0)) - aggregate(b.sum(axis=0)))
    generator = np.random.default_rng([seed, len(a), 1])
    as_large, left = 0, samples
    while left:
        drawn = min(left, max(1, _COUNTS_AT_ONCE // len(a)))
        kept = generator.integers(0, 2, size=(drawn, len(a))).astype(np.float64)
        for first in b.sum(axis=0) + kept @ (a - b):
            as_large += abs(aggregate(first) - aggregate(both - first)) >= observed - 1e-12
        left -= drawn
    return (as_large + 1) / (samples + 1)


def _check_paired(a: Numbers, b: Numbers) -> None:
    if len(a) != len(b):
        raise UserError(f"systems with {len(a)} and {len(b)} lines cannot be compared", hint="score both on the same lines")
    if not len(a):
        raise UserError("no lines to compare")
