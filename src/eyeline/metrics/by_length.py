"""Scores of short and of long sources apart. Knows statistics and lengths given by the caller; never what a token is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from eyeline.errors import UserError
from eyeline.metrics.base import Numbers
from eyeline.metrics.scores import metric_named
from eyeline.metrics.significance import SAMPLES, bootstrap_interval


class Bucket(TypedDict):
    """Lines whose source has `min` to `max` tokens, both counted in; `low` and `high` bound the 95 % interval."""

    min: int
    max: int
    n: int
    metric: str
    score: float
    low: float
    high: float


def _round(length: float) -> int:
    """To one below 10, two below 20, five below 50, ten below 100, twenty below 200, and so on: bounds one can remember."""
    step = 1
    while length / step >= 100:
        step *= 10
    for bound, factor in ((10, 1), (20, 2), (50, 5), (100, 10)):
        if length / step < bound:
            return step * factor * round(length / step / factor)
    raise AssertionError("the loop above leaves less than 100")


def length_edges(lengths: Sequence[int], buckets: int = 5) -> list[int]:
    """Largest lengths of at most `buckets` buckets of about as many lines each; the last is the largest length there is."""
    longest = max(lengths)
    quantiles = np.quantile(np.asarray(lengths), [i / buckets for i in range(1, buckets)])
    inner = {_round(float(q)) for q in quantiles}
    return [*sorted(edge for edge in inner if min(lengths) <= edge < longest), longest]


def by_length(
    name: str,
    statistics: Numbers,
    lengths: Sequence[int],
    *,
    edges: Sequence[int] | None = None,
    seed: int = 1,
    samples: int = SAMPLES,
) -> list[Bucket]:
    """A metric over buckets of source length.

    Args:
        name: the metric.
        statistics: [n, k], one row a line, of that metric.
        lengths: n source lengths, in the unit that the caller counts in.
        edges: the largest length of each bucket; chosen from the data by default. Lines beyond the last make one more bucket.
        seed: of the resamples behind the intervals.
        samples: how many of them.

    Returns:
        The buckets that have lines, from short to long.

    Raises:
        UserError: when there are not as many lengths as lines.
    """
    if len(lengths) != len(statistics):
        raise UserError(f"{len(lengths)} source lengths for {len(statistics)} lines")
    if not len(lengths):
        raise UserError("no lines to score by length")
    metric = metric_named(name)
    sizes = np.asarray(lengths, dtype=np.int64)
    bounds = sorted(set(length_edges(lengths) if edges is None else edges))
    if bounds[-1] < sizes.max():
        bounds.append(int(sizes.max()))
    buckets: list[Bucket] = []
    shortest = min(int(sizes.min()), bounds[0])
    for longest in bounds:
        rows = statistics[(sizes >= shortest) & (sizes <= longest)]
        if len(rows):
            interval = bootstrap_interval(name, rows, seed=seed, samples=samples)
            buckets.append(
                Bucket(
                    min=shortest,
                    max=int(longest),
                    n=len(rows),
                    metric=name,
                    score=metric.aggregate(rows.sum(axis=0)),
                    low=interval.low,
                    high=interval.high,
                )
            )
        shortest = int(longest) + 1
    return buckets
