"""The ladder under one budget: rungs trained side by side, measured together, reported with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyeline.compare import report
from eyeline.compare.conclusion import conclusion
from eyeline.compare.page import write_page
from eyeline.compare.plan import TOKENIZERS, by_rung, members
from eyeline.compare.preparing import points, prepared
from eyeline.compare.running import Machine, measure_speeds, run_members, write_job
from eyeline.config_compare import Comparison
from eyeline.files import write_json
from eyeline.training.claiming import Claim
from eyeline.training.reporting import Reporter

__all__ = ["Machine", "compare", "conclusion", "points", "summary"]

REPORT, PAGE = "report.json", "report.html"


def compare(
    comparison: Comparison,
    out: str | Path,
    machine: Machine,
    *,
    language: str = "en",
    seed: int = 1,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Trains, predicts and measures every rung with every seed, and writes report.json and report.html into `out`.

    What stands in `out` of the same comparison is gone on with: members that are done are kept, those that were stopped go on
    from their newest checkpoint, those that failed are tried again. More rungs and seeds may be added.

    Args:
        language: of the page: en or ko.
        seed: of the resamples behind intervals and p-values.

    Returns:
        What report.json holds.

    Raises:
        UserError: settings, pairs or the folder are to be mended, or every member failed.
        Interrupted: a signal came; all state is saved.
    """
    reporter, out = reporter or Reporter(), Path(out)
    comparison = comparison.checked()
    with Claim(out, "comparison") as place:  # two in one folder would train over each other
        place.make(create=True)
        common = prepared(comparison, out, reporter)
        everyone = members(comparison, out, common.data, common.numbers)
        for member in everyone:
            write_job(member, out / TOKENIZERS, machine)
        groups = by_rung(everyone)
        reporter.note(
            f"{len(groups)} rungs × {len(comparison.seeds)} seeds, {machine.jobs} at a time, {machine.threads} threads each"
        )
        run_members(everyone, machine, reporter)
        done = ([member for member in group if member.outputs.exists()] for group in groups.values())
        timed = [next((m for m in group if m.speed.exists()), group[0]) for group in done if group]
        measure_speeds(timed, reporter)
        found = report.build(comparison, common, groups, machine, seed)
        found["conclusion"] = {"language": language, "sentences": conclusion(found, language)}
        write_json(out / REPORT, found)
        write_page(found, out / PAGE, language)
        reporter.note(f"written: {out / REPORT}, {out / PAGE}")
    return found


def summary(found: dict[str, Any]) -> str:
    """A report as plain text: the ranking, then the conclusion."""
    metric = found["metric"]
    width = max(len(rung["name"]) for rung in found["rungs"])
    lines = [f"{'rung':{width}}  {metric:>24}  {'parameters':>11}  {'train tok/s':>11}  {'sentences/s':>11}"]
    for rung in found["rungs"]:
        score = rung["metrics"][metric]
        figure = f"{score['score']:.2f} [{score['low']:.2f}, {score['high']:.2f}]"
        speeds = (_rate(rung[name]) for name in ("train_tokens_per_s", "predict_sentences_per_s"))
        lines.append(f"{rung['name']:{width}}  {figure:>24}  {rung['parameters']:>11,}  " + "  ".join(f"{s:>11}" for s in speeds))
    lines += [f"failed: {one['rung']}, seed {one['seed']}: {one['error']}" for one in found["failed"]]
    return "\n".join([*lines, "", *found["conclusion"]["sentences"]])


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
