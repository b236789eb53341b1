"""What a report allows to be said, in plain words: nothing that its intervals do not support. Knows reports and words.

Facts are found first, without words; `words` has a sentence for each kind of fact in each language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyeline.compare.words import joined, sentences

LEVEL = 0.05  # of p after Holm's correction
HOLDS = 5.0  # points: a rung whose quality falls by no more, its whole interval included, is said to hold
APART = 10.0  # percent by which measured speeds must differ to be told apart: they were measured once


@dataclass(frozen=True)
class Fact:
    """A kind of sentence, and what stands in its gaps."""

    kind: str
    gaps: Mapping[str, str]


def conclusion(report: Mapping[str, Any], language: str) -> list[str]:
    """The sentences, the most important first."""
    words = sentences(language)
    return [words[fact.kind].format_map(fact.gaps) for fact in facts(report, language)]


def facts(report: Mapping[str, Any], language: str) -> list[Fact]:
    """What holds, in the order in which it is told."""
    found = [*_best(report, language), *_seeds(report, language), *_lengths(report, language)]
    return [*found, *_alignment(report, language), *_costs(report, language), *_limits(report, language)]


def ahead(report: Mapping[str, Any], a: str, b: str) -> int:
    """1 where rung a is better than b by the first metric, -1 where it is worse, 0 where that is not shown."""
    entry, sign = between(report, a, b)
    if entry is None or entry["p_holm"] >= LEVEL or entry["low"] <= 0 <= entry["high"]:
        return 0
    return sign * (1 if (entry["delta"] > 0) != report["lower_is_better"] else -1)


def between(report: Mapping[str, Any], a: str, b: str) -> tuple[Mapping[str, Any] | None, int]:
    """The difference of two rungs by the first metric, and -1 where it is stored the other way round."""
    for entry in report["differences"]:
        if entry["metric"] == report["metric"] and {entry["a"], entry["b"]} == {a, b}:
            return entry, 1 if entry["a"] == a else -1
    return None, 1


def _figure(entry: Mapping[str, Any], metric: str) -> str:
    score = entry["metrics"][metric]
    return f"{score['score']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"


def _best(report: Mapping[str, Any], language: str) -> list[Fact]:
    rungs, metric = report["rungs"], report["metric"]
    names = [rung["name"] for rung in rungs]
    top = names[0]
    gaps = {"best": top, "metric": metric, "figure": _figure(rungs[0], metric)}
    if len(names) == 1:
        return [Fact("alone", gaps)]
    worse = [name for name in names[1:] if ahead(report, top, name) > 0]
    level = [name for name in names[1:] if name not in worse]
    gaps |= {"level": joined(level, language), "worse": joined(worse, language)}
    if not level:
        return [Fact("best", gaps)]
    if not worse:
        return [Fact("undecided", gaps)]
    return [Fact("highest", gaps), Fact("shown_worse", gaps)]


def _seeds(report: Mapping[str, Any], language: str) -> list[Fact]:
    if len(report["seeds"]) < 2:
        return [Fact("one_seed", {})]
    metric = report["metric"]
    turned = []
    for entry in report["differences"]:
        if entry["metric"] == metric and ahead(report, entry["a"], entry["b"]):
            signs = {value > 0 for value in entry["seeds"].values() if value}
            if len(signs) > 1:
                turned.append(f"{entry['a']} – {entry['b']}")
    spreads = {
        rung["name"]: max(values) - min(values)
        for rung in report["rungs"]
        if len(values := list(rung["metrics"][metric]["seeds"].values())) > 1
    }
    found = []
    if spreads:
        widest = max(spreads, key=lambda name: spreads[name])
        found.append(Fact("spread", {"rung": widest, "spread": f"{spreads[widest]:.1f}", "n": str(len(report["seeds"]))}))
    if turned:
        found.append(Fact("turned", {"pairs": joined(turned, language)}))
    return found


def _lengths(report: Mapping[str, Any], language: str) -> list[Fact]:
    falling, holding, unclear = [], [], []
    for rung in report["rungs"]:
        fall = rung["fall"]
        if fall is None:
            continue
        shown = f"{rung['name']} ({fall['delta']:.1f} [{fall['low']:.1f}, {fall['high']:.1f}])"
        if fall["low"] > 0:
            falling.append((fall["delta"], shown))
        elif fall["high"] <= HOLDS:
            holding.append(shown)
        else:
            unclear.append(shown)
    one = next((rung["fall"] for rung in report["rungs"] if rung["fall"]), None)
    if one is None:
        return []
    gaps = {"from": str(one["from"]), "to": str(one["to"]), "metric": report["metric"]}
    found = []
    if falling:
        found.append(Fact("falls", {**gaps, "rungs": joined([shown for _, shown in sorted(falling, reverse=True)], language)}))
    if holding:
        found.append(Fact("holds", {**gaps, "rungs": joined(holding, language), "most": f"{HOLDS:g}"}))
    if unclear:
        found.append(Fact("fall_unclear", {**gaps, "rungs": joined(unclear, language)}))
    return [*found, *_beyond(report, language)]


def _beyond(report: Mapping[str, Any], language: str) -> list[Fact]:
    """What the longest sources, longer than any of training, come out as."""
    last = [(rung, rung["by_length"][-1]) for rung in report["rungs"] if rung["by_length"]]
    if not last or last[0][1]["trained"]:
        return []
    sign = -1 if report["lower_is_better"] else 1
    ordered = sorted(last, key=lambda one: -sign * one[1]["score"])
    shown = [f"{rung['name']} {b['score']:.1f} [{b['low']:.1f}, {b['high']:.1f}]" for rung, b in ordered]
    bucket = last[0][1]
    gaps = {
        "min": str(bucket["min"]),
        "max": str(bucket["max"]),
        "trained": f"{report['data']['train_source_tokens']['max']:.0f}",
        "metric": report["metric"],
        "rungs": joined(shown, language),
    }
    return [Fact("beyond", gaps)]


def _alignment(report: Mapping[str, Any], language: str) -> list[Fact]:
    measured = sorted(
        ((rung["alignment"], rung["name"]) for rung in report["rungs"] if rung["alignment"]), key=lambda one: one[0]["aer"]
    )
    if not measured:
        return []
    shown = [f"{name} {one['aer']:.1f} [{one['low']:.1f}, {one['high']:.1f}]" for one, name in measured]
    return [Fact("alignment", {"rungs": joined(shown, language)})]


def _costs(report: Mapping[str, Any], language: str) -> list[Fact]:
    """Of the best and those not shown to be worse, which is fastest and which smallest."""
    names = [rung["name"] for rung in report["rungs"]]
    level = [rung for rung in report["rungs"] if rung["name"] == names[0] or ahead(report, names[0], rung["name"]) <= 0]
    if len(level) < 2:
        return []
    found = []
    timed = sorted((r for r in level if r["predict_sentences_per_s"]), key=lambda r: -float(r["predict_sentences_per_s"]))
    if len(timed) > 1:
        first, second = timed[0]["predict_sentences_per_s"], timed[1]["predict_sentences_per_s"]
        if first > second * (1 + APART / 100):
            found.append(Fact("fastest", {"rung": timed[0]["name"], "rate": f"{first:,.0f}"}))
    small = min(level, key=lambda rung: int(rung["parameters"]))
    found.append(Fact("smallest", {"rung": small["name"], "parameters": f"{small['parameters']:,}"}))
    return found


def _limits(report: Mapping[str, Any], language: str) -> list[Fact]:
    found = []
    better: Sequence[str] = [rung["name"] for rung in report["rungs"] if any(one["still_better"] for one in rung["curves"])]
    if better:
        found.append(Fact("unripe", {"rungs": joined(better, language)}))
    if report["failed"]:
        shown = [f"{one['rung']} ({one['seed']})" for one in report["failed"]]
        found.append(Fact("failed", {"members": joined(shown, language)}))
    return [*found, Fact("scope", {"n": f"{report['data']['pairs']['test']:,}"})]
