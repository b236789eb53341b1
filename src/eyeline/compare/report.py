"""report.json: everything that the page and the conclusion are made from. Knows members and measures; draws nothing."""

from __future__ import annotations

import json
import platform
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from eyeline import __version__
from eyeline.compare import measuring
from eyeline.compare.measuring import Measured
from eyeline.compare.plan import Member
from eyeline.compare.preparing import Common
from eyeline.compare.running import Machine, events, failure_of
from eyeline.config import LOWER_IS_BETTER
from eyeline.config_compare import Comparison
from eyeline.errors import UserError


def build(
    comparison: Comparison, common: Common, groups: Mapping[str, Sequence[Member]], machine: Machine, seed: int
) -> dict[str, Any]:
    """The report, the best rung first.

    Args:
        groups: the members of each rung.
        seed: of the resamples.

    Raises:
        UserError: no member is done.
    """
    rungs = measuring.read_outputs(groups)
    failed = [_failure(member) for group in groups.values() for member in group if not member.outputs.exists()]
    if not rungs:
        raise UserError("every member failed", failed[0]["rung"] if failed else "", failed[0]["error"] if failed else "")
    config = rungs[0].members[0].config
    symbols = common.kind["target"] in ("character", "whitespace-symbols")
    names = measuring.metric_names(config.training.metric, config.points, symbols)
    measuring.fill(rungs, names)
    trained_to = int(common.source_tokens["max"])
    lengths = rungs[0].outputs[0]["lengths"]
    bounds = measuring.edges(lengths, comparison.test_lengths, trained_to)
    entries = [_entry(rung, names, bounds, trained_to, seed) for rung in rungs]
    sign = 1 if names[0] in LOWER_IS_BETTER else -1
    entries.sort(key=lambda entry: sign * entry["metrics"][names[0]]["score"])
    order = [entry["name"] for entry in entries]
    rungs.sort(key=lambda rung: order.index(rung.name))
    assert comparison.budget is not None
    return {
        "version": 1,
        "eyeline": __version__,
        "budget": comparison.budget.given(),
        "seeds": comparison.seeds,
        "metric": names[0],
        "lower_is_better": names[0] in LOWER_IS_BETTER,
        "data": {
            "train": comparison.data.train or [corpus.pairs for corpus in comparison.data.corpora],
            "valid": comparison.data.valid,
            "test": comparison.data.test,
            "pairs": {**common.pairs, "test": len(lengths)},
            "left_out_by_length": common.left_out,
            "train_source_tokens": common.source_tokens,
            "test_source_tokens": {"median": statistics.median(lengths), "max": max(lengths)},
            "train_max_length": comparison.train_max_length,
            "vocabulary": common.vocabulary,
            "tokenizer": common.kind,
            "unknown_source_rate": rungs[0].outputs[0]["unknown_source_rate"],
        },
        "search": config.search.model_dump(mode="json"),
        "machine": {
            "device": machine.device,
            "threads": machine.threads,
            "jobs": machine.jobs,
            "processor": platform.processor() or platform.machine(),
            "torch": torch.__version__,
        },
        "rungs": entries,
        "failed": failed,
        "differences": measuring.differences(rungs, names, seed),
        "examples": measuring.examples(rungs),
        "pictures": _pictures(rungs),
    }


def _failure(member: Member) -> dict[str, Any]:
    return {"rung": member.rung.name, "seed": member.seed, "error": failure_of(member) or "it was not run to its end"}


def _entry(rung: Measured, names: Sequence[str], bounds: Sequence[int], trained_to: int, seed: int) -> dict[str, Any]:
    """All that is known of a rung."""
    buckets = measuring.lengthwise(rung, names[0], bounds, trained_to, seed)
    training = [one["training"] for one in rung.outputs]
    speed: dict[str, Any] = next((json.loads(m.speed.read_text(encoding="utf-8")) for m in rung.members if m.speed.exists()), {})
    model = rung.members[0].config
    return {
        "name": rung.name,
        "architecture": model.model.architecture,
        "parameters": rung.outputs[0]["parameters"],
        "train_tokens_per_s": speed.get("train_tokens_per_s"),
        "peak_memory_mb": speed.get("peak_memory_mb"),
        "train_time_s": statistics.mean(one["seconds"] for one in training),
        "metrics": measuring.scores(rung, names, seed),
        "by_length": buckets,
        "predict_sentences_per_s": speed.get("predict_sentences_per_s"),
        "speed_threads": speed.get("threads"),
        "seeds": rung.seeds,
        "steps": statistics.mean(one["steps"] for one in training),
        "train_target_tokens": statistics.mean(one["target_tokens"] for one in training),
        "loss": statistics.mean(one["loss"] for one in rung.outputs),
        "fall": measuring.fall(rung, names[0], buckets, seed),
        "alignment": measuring.alignment(rung, seed),
        **measuring.habits(rung),
        "curves": [curve(member) for member in rung.members],
        "model": model.model.model_dump(mode="json"),
        "learning_rate": model.training.learning_rate,
    }


def curve(member: Member) -> dict[str, Any]:
    """What each validation said, against steps, target tokens and seconds of training; and whether the budget ended before the
    rung had learnt what it can."""
    logged = events(member)
    metric = member.config.training.metric
    seen = [(event["step"], event["target_tokens"]) for event in logged if event.get("split") == "train"]
    steps = [step for step, _ in seen]
    points = []
    for event in logged:
        if event.get("split") != "valid" or event.get(metric) is None:
            continue
        place = min(bisect_left(steps, event["step"]), len(steps) - 1)
        tokens = seen[place][1] if seen else None
        points.append({"step": event["step"], "target_tokens": tokens, "time_s": event.get("time_s"), "score": event[metric]})
    scores = [point["score"] if metric in LOWER_IS_BETTER else -point["score"] for point in points]
    return {"seed": member.seed, "metric": metric, "points": points, "still_better": still_better(scores)}


def still_better(scores: Sequence[float]) -> bool:
    """Whether the best of some validations, lower being better, is among the last fifth of them, and not reached before."""
    last = max(1, len(scores) // 5)
    return len(scores) > last and min(scores[-last:]) < min(scores[:-last])


def _pictures(rungs: Sequence[Measured]) -> list[dict[str, Any]]:
    """A few test pairs, and where each rung looks in them: those of its first seed; null where it looks nowhere."""
    first = {rung.name: rung.outputs[0] for rung in rungs}
    places = sorted({picture["place"] for one in first.values() for picture in one["pictures"]})
    found = []
    for place in places:
        rows = {
            name: next((picture for picture in one["pictures"] if picture["place"] == place), None) for name, one in first.items()
        }
        any_of_them = next(iter(first.values()))
        found.append(
            {
                "source": any_of_them["sources"][place],
                "reference": any_of_them["references"][place],
                "rungs": {
                    name: None if row is None else {key: row[key] for key in ("source_tokens", "target_tokens", "weights")}
                    for name, row in rows.items()
                },
            }
        )
    return found
