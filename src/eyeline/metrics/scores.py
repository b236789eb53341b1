"""The table of metrics by name, and scores of a corpus. Knows the metrics; nothing of models, files or settings."""

from __future__ import annotations

from collections.abc import Sequence

from eyeline.errors import ConfigError, nearest
from eyeline.metrics import symbols, text
from eyeline.metrics.base import Metric, Numbers, Score, check_lines

METRICS: dict[str, Metric] = {**text.METRICS, **symbols.METRICS}


def metric_named(name: str) -> Metric:
    """Raises ConfigError with the nearest valid name."""
    if name not in METRICS:
        raise ConfigError("unknown metric", f"metric={name}", nearest(name, METRICS))
    return METRICS[name]


def statistics(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> Numbers:
    """[n, k] sufficient statistics: the score of any choice of lines follows from the sum of their rows.

    Raises:
        UserError: for anything but two non-empty lists of as many strings.
    """
    metric = metric_named(name)
    check_lines(hypotheses, references)
    return metric.statistics(hypotheses, references)


def aggregate(name: str, statistics_sum: Numbers) -> float:
    """The score in percent that belongs to a sum [k] of rows of `statistics`."""
    return metric_named(name).aggregate(statistics_sum)


def score_of(name: str, rows: Numbers) -> Score:
    """The corpus score of statistics [n, k] that are there already."""
    metric = metric_named(name)
    return Score(name, metric.aggregate(rows.sum(axis=0)), metric.signature())


def corpus_score(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """One metric over a corpus, in percent, with its signature. Hypotheses and references are detokenised, one string a line.

    Raises:
        ConfigError: for an unknown name.
        UserError: for anything but two non-empty lists of as many strings.
    """
    return score_of(name, statistics(name, hypotheses, references))
