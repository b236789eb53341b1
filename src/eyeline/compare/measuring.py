"""What members predicted, measured: scores with intervals, differences, lengths, alignments. Knows outputs, metrics; no models.

The seeds of a rung are laid together: a line's statistics are summed over them, and lines are resampled whole, with all seeds of
both sides. Intervals and p-values are so of the test lines; how far the seeds lie apart stands beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from eyeline.compare.plan import Member
from eyeline.config import LOWER_IS_BETTER
from eyeline.errors import UserError
from eyeline.metrics import (
    METRICS,
    LinkCounts,
    bootstrap_interval,
    by_length,
    difference,
    holm,
    length_edges,
    length_ratio,
    repetition_rate,
    resampled_scores,
    score_of,
    statistics,
)
from eyeline.metrics.base import Numbers
from eyeline.metrics.significance import interval

_LEVEL = (2.5, 97.5)
TEXT = ("exact_match", "symbol_error_rate", "wer", "cer", "bleu", "chrf")  # TER is left out: minutes on long outputs that fail
POINTS = ("exact_match", "symbol_error_rate")


@dataclass
class Measured:
    """A rung's members that are done, and what their outputs say."""

    name: str
    members: list[Member]
    outputs: list[dict[str, Any]]  # as the members left them, in the order of the seeds
    rows: dict[str, list[Numbers]] = field(default_factory=dict)  # of each metric, [n, k] a seed

    @property
    def seeds(self) -> list[int]:
        return [member.seed for member in self.members]

    def together(self, metric: str, seeds: Sequence[int] | None = None) -> Numbers:
        """[n, k]: the statistics of every line, summed over `seeds` (default: all)."""
        chosen = self.seeds if seeds is None else seeds
        rows = [rows for seed, rows in zip(self.seeds, self.rows[metric], strict=True) if seed in chosen]
        total: Numbers = np.sum(rows, axis=0)
        return total


def read_outputs(groups: Mapping[str, Sequence[Member]]) -> list[Measured]:
    """The rungs of which at least one member is done."""
    found = []
    for name, group in groups.items():
        done = [member for member in group if member.outputs.exists()]
        if done:
            found.append(Measured(name, done, [json.loads(member.outputs.read_text(encoding="utf-8")) for member in done]))
    references = [one["references"] for rung in found for one in rung.outputs]
    if any(lines != references[0] for lines in references):
        raise UserError("the test pairs are not the same for all members", hint="name another --out")
    return found


def metric_names(chosen: str, points: bool, symbols: bool) -> list[str]:
    """Which scores, the one that ranks first: what weights were chosen by, or what suits the target."""
    first = chosen if chosen in METRICS else "exact_match" if symbols or points else "bleu"
    return [first, *(name for name in (POINTS if points else TEXT) if name != first)]


def fill(rungs: Sequence[Measured], names: Sequence[str]) -> None:
    """Computes every line's statistics."""
    for rung in rungs:
        for name in names:
            rung.rows[name] = [statistics(name, one["outputs"], one["references"]) for one in rung.outputs]


def scores(rung: Measured, names: Sequence[str], seed: int) -> dict[str, Any]:
    """Each metric with its interval, signature, and the value of each seed."""
    found = {}
    for name in names:
        rows = rung.together(name)
        score, around = score_of(name, rows), bootstrap_interval(name, rows, seed=seed)
        each = [score_of(name, own).score for own in rung.rows[name]]
        found[name] = {
            "score": score.score,
            "low": around.low,
            "high": around.high,
            "signature": score.signature,
            "seeds": dict(zip(map(str, rung.seeds), each, strict=True)),
        }
    return found


def differences(rungs: Sequence[Measured], names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Every two rungs by every metric, over the seeds that both have, p corrected among all pairs of a metric."""
    found = []
    for name in names:
        resampled: dict[tuple[str, tuple[int, ...]], Numbers] = {}  # each rung is resampled once
        entries: list[dict[str, Any]] = []
        for a, b in combinations(rungs, 2):
            seeds = tuple(one for one in a.seeds if one in b.seeds)
            if not seeds:
                continue
            for rung in (a, b):
                if (rung.name, seeds) not in resampled:
                    resampled[rung.name, seeds] = resampled_scores(name, rung.together(name, seeds), seed=seed)
            between = difference(_delta(a, b, name, seeds), resampled[a.name, seeds] - resampled[b.name, seeds])
            entries.append(
                {
                    "a": a.name,
                    "b": b.name,
                    "metric": name,
                    "delta": between.delta,
                    "low": between.low,
                    "high": between.high,
                    "p": between.p,
                    "seeds": {str(one): _delta(a, b, name, [one]) for one in seeds},
                }
            )
        corrected = holm([entry["p"] for entry in entries])
        found += [{**entry, "p_holm": p} for entry, p in zip(entries, corrected, strict=True)]
    return found


def _delta(a: Measured, b: Measured, name: str, seeds: Sequence[int]) -> float:
    return score_of(name, a.together(name, seeds)).score - score_of(name, b.together(name, seeds)).score


def edges(lengths: Sequence[int], wanted: Sequence[int] | None, trained_to: int) -> list[int]:
    """The largest source length of each bucket, the same for all rungs; where training ends, a bucket ends too."""
    if wanted is not None:
        return list(wanted)
    chosen = length_edges(lengths)
    return sorted({*chosen, trained_to}) if min(lengths) <= trained_to < max(lengths) else chosen


def lengthwise(rung: Measured, metric: str, bounds: Sequence[int], trained_to: int, seed: int) -> list[dict[str, Any]]:
    """Quality by source length; `trained` says whether sources of training were as long."""
    buckets = by_length(metric, rung.together(metric), rung.outputs[0]["lengths"], edges=bounds, seed=seed)
    return [{**bucket, "trained": bucket["max"] <= trained_to} for bucket in buckets]


def fall(rung: Measured, metric: str, buckets: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any] | None:
    """How much worse the longest sources come out than the shortest, with its interval; None where there is one bucket.

    Lines of the two are different ones, and so resampled apart.
    """
    if len(buckets) < 2:
        return None
    rows, lengths = rung.together(metric), np.asarray(rung.outputs[0]["lengths"])
    sign = -1 if metric in LOWER_IS_BETTER else 1
    short, long = (rows[(lengths >= one["min"]) & (lengths <= one["max"])] for one in (buckets[0], buckets[-1]))
    many = resampled_scores(metric, short, seed=seed) - resampled_scores(metric, long, seed=seed + 1)
    low, high = np.percentile(sign * many, _LEVEL)
    delta = sign * (buckets[0]["score"] - buckets[-1]["score"])
    return {"from": buckets[0]["max"], "to": buckets[-1]["max"], "delta": delta, "low": float(low), "high": float(high)}


def alignment(rung: Measured, seed: int) -> dict[str, Any] | None:
    """Alignment error rate, precision, recall and F1 over all seeds; None where nothing was measured."""
    counted = [one["alignment"] for one in rung.outputs]
    if any(one is None for one in counted):
        return None
    rows = np.sum([np.asarray(one["counts"], dtype=np.float64) for one in counted], axis=0)

    def of(total: Numbers) -> LinkCounts:
        return LinkCounts(*(round(count) for count in total.tolist()))

    pooled = of(rows.sum(axis=0)).scores()
    around = interval(lambda total: of(total).scores().aer, rows, seed=seed)
    each = [of(np.asarray(one["counts"]).sum(axis=0)).scores().aer for one in counted]
    return {
        "aer": pooled.aer,
        "low": around.low,
        "high": around.high,
        "precision": pooled.precision,
        "recall": pooled.recall,
        "f1": pooled.f1,
        "unit": counted[0]["unit"],
        "seeds": dict(zip(map(str, rung.seeds), each, strict=True)),
    }


def habits(rung: Measured) -> dict[str, float]:
    """What outputs as a whole are like: means over the seeds."""
    lines = [(one["outputs"], one["references"]) for one in rung.outputs]
    return {
        "repetition_rate": float(np.mean([repetition_rate(*pair) for pair in lines])),
        "length_ratio": float(np.mean([length_ratio(*pair) for pair in lines])),
        "unfinished_rate": float(np.mean([one["unfinished"] / len(one["outputs"]) for one in rung.outputs])),
    }


def examples(rungs: Sequence[Measured], most: int = 8) -> list[dict[str, Any]]:
    """Test lines on which the rungs differ, each rung with its first seed: those that split them most evenly into right and
    wrong first, of short and of long sources, and of the remaining ones those with the most different outputs."""
    first = [rung.outputs[0] for rung in rungs]
    if len(first) < 2:
        return []
    lines = []
    for place, reference in enumerate(first[0]["references"]):
        said = [one["outputs"][place] for one in first]
        right = sum(output == reference for output in said)
        if len(set(said)) > 1:
            lines.append((-min(right, len(said) - right), -len(set(said)), first[0]["lengths"][place], place))
    best = sorted(lines)[: 20 * most]
    by_size = sorted(best, key=lambda line: (line[2], line[3]))
    chosen = by_size[:: max(1, len(by_size) // most)][:most]
    return [
        {
            "source": first[0]["sources"][place],
            "reference": first[0]["references"][place],
            "outputs": {rung.name: one["outputs"][place] for rung, one in zip(rungs, first, strict=True)},
        }
        for *_, place in chosen
    ]
