"""report.html: one file that needs nothing else. Knows reports, words, charts and the page's template; measures nothing.

Text reaches the page through the template, which escapes it, or through a chart, which escapes its own. The page has no script
and fetches nothing, and its own policy forbids both.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from eyeline.compare.charts import Point, ScoreRow, Series, bar_chart, key, line_chart, score_chart
from eyeline.compare.conclusion import LEVEL, between
from eyeline.compare.heat_maps import heat_map, strongest
from eyeline.compare.scales import figure
from eyeline.compare.words import labels
from eyeline.figures.labels import visible
from eyeline.files import write_text

Report = Mapping[str, Any]
Table = dict[str, Any]  # name, heads, rows of text, and how many of its first columns are text
COSTS = ("train_tokens_per_s", "predict_sentences_per_s", "peak_memory_mb", "parameters")


def write_page(report: Report, path: Path, language: str) -> None:
    """Writes the page, whole or not at all."""
    write_text(path, page(report, language))


def page(report: Report, language: str) -> str:
    """The page of a report that has its conclusion."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_resource("page.html")).render(_context(report, language))


def _resource(name: str) -> str:
    return (importlib.resources.files("eyeline.compare") / name).read_text(encoding="utf-8")


def _context(report: Report, language: str) -> dict[str, Any]:
    words, rungs = labels(language), report["rungs"]
    return {
        "language": language,
        "words": words,
        "style": Markup(_resource("page.css")),
        "metric": report["metric"],
        "arrow": "↓" if report["lower_is_better"] else "↑",
        "subtitle": " · ".join(f"{name}: {value}" for name, value in _about(report, words)[:3]),
        "conclusion": report["conclusion"]["sentences"],
        "rungs": [{"name": rung["name"], "key": Markup(key(style))} for style, rung in enumerate(rungs)],
        "ranking": _ranking(report, words),
        "grid": _grid(report),
        "length": _length(report, words),
        "curves": _curves(report, words),
        "curve_table": _curve_table(report, words),
        "costs": [_cost(report, name, words[name]) for name in COSTS if any(rung[name] for rung in rungs)],
        "cost_table": _cost_table(report, words),
        "alignment": _alignment(report, words),
        "habits": _habits(report, words),
        "pictures": [_picture(picture, words) for picture in report["pictures"]],
        "examples": report["examples"],
        "failed": report["failed"],
        "about": _about(report, words),
    }


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> Table:
    return {"name": name, "heads": list(heads), "rows": [list(row) for row in rows], "texts": texts}


def _interval(entry: Mapping[str, Any], digits: int = 1) -> str:
    return f"[{figure(entry['low'], digits)}, {figure(entry['high'], digits)}]"


def _ranking(report: Report, words: Mapping[str, str]) -> dict[str, Any]:
    metric, rows, cells = report["metric"], [], []
    for style, rung in enumerate(report["rungs"]):
        score = rung["metrics"][metric]
        rows.append(ScoreRow(rung["name"], style, score["score"], score["low"], score["high"], list(score["seeds"].values())))
    for rung in report["rungs"]:
        for name, score in rung["metrics"].items():
            each = ", ".join(f"{seed}: {figure(value)}" for seed, value in score["seeds"].items())
            cells.append([rung["name"], name, figure(score["score"]), _interval(score), each])
    heads = (words["rung"], words["metric"], words["score"], words["interval"], words["seeds"])
    chart = score_chart(rows, f"{words['ranking']}: {metric}", metric)
    return {"chart": Markup(chart), "table": _table(words["ranking"], heads, cells, 2)}


def _grid(report: Report) -> dict[str, Any] | None:
    """Row minus column for every two rungs, by the metric that ranks."""
    names = [rung["name"] for rung in report["rungs"]]
    if len(names) < 2:
        return None
    return {"names": names[1:], "rows": [{"name": a, "cells": [_cell(report, a, b) for b in names[1:]]} for a in names[:-1]]}


def _cell(report: Report, a: str, b: str) -> dict[str, Any]:
    entry, sign = between(report, a, b) if a != b else (None, 1)
    names = [rung["name"] for rung in report["rungs"]]
    if entry is None or names.index(a) > names.index(b):
        return {"delta": "", "interval": "", "p": "", "holds": False}
    low, high = sorted((sign * entry["low"], sign * entry["high"]))
    return {
        "delta": f"{sign * entry['delta']:+.1f}",
        "interval": _interval({"low": low, "high": high}),
        "p": f"{entry['p_holm']:.3f}",
        "holds": entry["p_holm"] < LEVEL and not low <= 0 <= high,
    }


def _length(report: Report, words: Mapping[str, str]) -> dict[str, Any]:
    series, cells = [], []
    for style, rung in enumerate(report["rungs"]):
        points = [Point((one["min"] + one["max"]) / 2, one["score"], one["low"], one["high"]) for one in rung["by_length"]]
        series.append(Series(rung["name"], style, points))
        for one in rung["by_length"]:
            trained = words["yes"] if one["trained"] else words["no"]
            cells.append(
                [rung["name"], f"{one['min']}–{one['max']}", f"{one['n']:,}", figure(one["score"]), _interval(one), trained]
            )
    edges = sorted({one["max"] for rung in report["rungs"] for one in rung["by_length"]})
    longest = report["data"]["train_source_tokens"]["max"]
    chart = line_chart(
        series,
        f"{words['length']}: {report['metric']}",
        words["source_tokens"],
        percent=True,
        x_ticks=edges,
        shaded_to=min(longest, edges[-1]),
        shade_label=words["trained"],
    )
    heads = (words["rung"], words["source_tokens"], words["pairs"], report["metric"], words["interval"], words["trained"])
    return {"chart": Markup(chart), "table": _table(words["length"], heads, cells, 2)}


def _curves(report: Report, words: Mapping[str, str]) -> list[dict[str, Any]]:
    found = []
    for axis, title in (("target_tokens", words["against_tokens"]), ("time_s", words["against_time"])):
        series = []
        for style, rung in enumerate(report["rungs"]):
            for curve in rung["curves"]:
                points = [Point(p[axis], p["score"]) for p in curve["points"] if p[axis] is not None and p["score"] is not None]
                series.append(Series(rung["name"], style, points, marked=len(points) <= 12))
        if any(one.points for one in series):
            percent = report["rungs"][0]["curves"][0]["metric"] != "loss"
            chart = line_chart(series, f"{words['curves']}: {title}", words[axis], percent=percent)
            found.append({"title": f"{title} ({report['rungs'][0]['curves'][0]['metric']})", "chart": Markup(chart)})
    return found


def _curve_table(report: Report, words: Mapping[str, str]) -> Table:
    cells = [
        [
            rung["name"],
            str(curve["seed"]),
            f"{point['step']:,}",
            figure(point["target_tokens"], 0),
            figure(point["time_s"]),
            figure(point["score"], 2),
        ]
        for rung in report["rungs"]
        for curve in rung["curves"]
        for point in curve["points"]
    ]
    heads = [words[name] for name in ("rung", "seed", "step", "target_tokens", "time_s", "score")]
    return _table(words["curves"], heads, cells)


def _cost(report: Report, name: str, title: str) -> dict[str, Any]:
    rows = [(rung["name"], style, rung[name]) for style, rung in enumerate(report["rungs"])]
    return {"title": title, "chart": Markup(bar_chart(rows, title, title))}


def _cost_table(report: Report, words: Mapping[str, str]) -> Table:
    columns = (
        "parameters",
        "learning_rate",
        "train_tokens_per_s",
        "predict_sentences_per_s",
        "peak_memory_mb",
        "train_time_s",
        "steps",
    )
    digits = {"learning_rate": 4, "predict_sentences_per_s": 1}
    rows = [[rung["name"], *(figure(rung[name], digits.get(name, 0)) for name in columns)] for rung in report["rungs"]]
    return _table(words["cost"], [words["rung"], *(words[name] for name in columns)], rows)


def _alignment(report: Report, words: Mapping[str, str]) -> dict[str, Any] | None:
    measured = [(style, rung["name"], rung["alignment"]) for style, rung in enumerate(report["rungs"]) if rung["alignment"]]
    if not measured:
        return None
    measured.sort(key=lambda one: one[2]["aer"])
    rows = [ScoreRow(name, style, a["aer"], a["low"], a["high"], list(a["seeds"].values())) for style, name, a in measured]
    cells = [
        [name, *(figure(a[k]) for k in ("aer",)), _interval(a), *(figure(a[k]) for k in ("precision", "recall", "f1"))]
        for _, name, a in measured
    ]
    unit = words[f"unit_{measured[0][2]['unit']}"]
    heads = (words["rung"], "AER", words["interval"], words["precision"], words["recall"], "F1")
    chart = score_chart(rows, words["alignment"], f"AER ↓, {unit}")
    return {"chart": Markup(chart), "table": _table(words["alignment"], heads, cells)}


def _habits(report: Report, words: Mapping[str, str]) -> Table:
    rows = [
        [
            rung["name"],
            figure(100 * rung["repetition_rate"], 2),
            figure(100 * rung["unfinished_rate"], 2),
            figure(rung["length_ratio"], 3),
            figure(rung["loss"], 3),
        ]
        for rung in report["rungs"]
    ]
    heads = [words[name] for name in ("rung", "repetition_rate", "unfinished_rate", "length_ratio", "loss")]
    return _table(words["habits"], heads, rows)


def _picture(picture: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    maps, columns = [], {}
    for name, one in picture["rungs"].items():
        title = f"{words['pictures']}: {name}"
        chart = None if one is None else Markup(heat_map(one["source_tokens"], one["target_tokens"], one["weights"], title))
        maps.append({"name": name, "chart": chart})
        if one is not None:
            columns[name] = one
    seen = next(iter(columns.values()))
    rows = [
        [visible(token), *(strongest(one["source_tokens"], one["weights"][place]) for one in columns.values())]
        for place, token in enumerate(seen["target_tokens"])
    ]
    table = _table(words["pictures"], [words["reference"], *columns], rows, len(columns) + 1)
    return {"source": picture["source"], "reference": picture["reference"], "maps": maps, "table": table}


def _about(report: Report, words: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values, the three that say most first."""
    ((bound, amount),) = report["budget"].items()
    unit = {"steps": words["steps_unit"], "target_tokens": words["target_tokens"], "for": words["for"]}[bound]
    data = report["data"]
    pairs, left_out = data["pairs"], data["left_out_by_length"]
    found = [
        (words["budget"], f"{amount:,} {unit}" if isinstance(amount, int) else f"{amount} {unit}"),
        (words["seeds"], ", ".join(map(str, report["seeds"]))),
        (words["test"], f"{pairs['test']:,}"),
        (words["train"], f"{pairs['train']:,} ({', '.join(map(str, data['train']))})"),
        (words["valid"], f"{pairs.get('valid', 0):,} ({', '.join(data['valid'])})"),
        (words["test"], ", ".join(data["test"])),
        (words["longest"], f"{data['train_source_tokens']['max']:,.0f} {words['source_tokens']}"),
    ]
    if data["train_max_length"] is not None:
        found.append(
            ("train_max_length", f"{data['train_max_length']} ({', '.join(f'{k}: -{v:,}' for k, v in left_out.items())})")
        )
    machine, search = report["machine"], report["search"]
    vocabulary = {side: f"{data['tokenizer'][side]}, {data['vocabulary'][side]:,}" for side in ("source", "target")}
    found += [
        (words["tokenizer"], "; ".join(f"{side}: {value}" for side, value in vocabulary.items())),
        (
            words["search"],
            ", ".join(f"{name}={value}" for name, value in search.items() if name in ("beam_size", "length_penalty")),
        ),
        (words["machine"], ", ".join(f"{name} {value}" for name, value in machine.items())),
        (words["signature"], report["rungs"][0]["metrics"][report["metric"]]["signature"]),
        ("eyeline", report["eyeline"]),
    ]
    return found
