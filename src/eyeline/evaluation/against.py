"""Two systems on the same pairs: by how much one is better, and whether that could be chance. Knows runs and files of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyeline.errors import DataError, UserError
from eyeline.evaluation.pairs import source_lines
from eyeline.evaluation.quality import Measured, Watch, scored_by
from eyeline.metrics import approximate_randomisation, paired_bootstrap, score_of, statistics
from eyeline.predictor import Predictor, SearchOptions, load
from eyeline.text.lines import read_lines, require_line
from eyeline.text.records import Pair


def other_outputs(
    path: str, predictor: Predictor, pairs: Sequence[Pair], options: SearchOptions, watch: Watch | None = None
) -> list[str]:
    """What another system says of the pairs, as `predictor`'s outputs are judged: a run predicts, a file has a line for each.

    Raises:
        RunError: the run cannot be used.
        DataError: the file cannot be read, or has another number of lines.
    """
    if Path(path).is_dir():
        other = load(path, predictor.device)
        coming = other.stream(source_lines(other, _checked(other, pairs)), options)
        return [other.coder.judged(prediction.text) for prediction in (watch(coming) if watch else coming)]
    outputs = [predictor.coder.judged(require_line(line, path, "").text) for line in read_lines(path)]
    if len(outputs) != len(pairs):
        raise DataError(f"{len(outputs)} outputs for {len(pairs)} pairs", path, hint="one line for each pair, in order")
    return outputs


def _checked(other: Predictor, pairs: Sequence[Pair]) -> Sequence[Pair]:
    if other.run.source.features and not any(pair.features for pair in pairs):
        hint = "name their column: --columns source,target,features"
        raise UserError("the other run reads features, and the pairs have none", str(other.run.path), hint)
    return pairs


def compare_outputs(measured: Measured, outputs: Sequence[str], name: str, seed: int = 1) -> dict[str, Any]:
    """What `evaluate --json` says under `against`: for each metric the other system's score, the difference (this one's minus the
    other's) with its 95 % interval from a paired bootstrap, and two p of no difference."""
    metrics: dict[str, Any] = {}
    for metric in measured.result["metrics"]:
        ours, theirs = (statistics(metric, said, measured.references) for said in (measured.outputs, list(outputs)))
        difference = paired_bootstrap(metric, ours, theirs, seed=seed)
        metrics[metric] = {
            "score": score_of(metric, theirs).score,
            "delta": difference.delta,
            "low": difference.low,
            "high": difference.high,
            "p": difference.p,
            "p_randomisation": approximate_randomisation(metric, ours, theirs, seed=seed),
        }
    same = sum(a == b for a, b in zip(measured.outputs, outputs, strict=True))
    return {"name": name, "same_outputs": same, "metrics": metrics, "lines": _right_alone(measured, outputs)}


def _right_alone(measured: Measured, outputs: Sequence[str]) -> dict[str, int]:
    """How many outputs only one of the two has right."""
    ours, theirs = ([a == b for a, b in zip(said, measured.references, strict=True)] for said in (measured.outputs, outputs))
    return {
        "right_only_here": sum(a and not b for a, b in zip(ours, theirs, strict=True)),
        "right_only_there": sum(b and not a for a, b in zip(ours, theirs, strict=True)),
    }


def render(result: dict[str, Any]) -> str:
    """The comparison as plain text."""
    lines = [f"against {result['name']}: {result['same_outputs']:,} outputs are the same"]
    lines.append(f"  {'':18}{'other':>8}{'this − other':>14}  {'95 % interval':<18}{'p, bootstrap':>13}{'p, exchange':>13}")
    for name, found in result["metrics"].items():
        bounds = f"[{found['low']:+.2f}, {found['high']:+.2f}]"
        shown = f"{found['score']:8.2f}{found['delta']:+14.2f}  {bounds:<18}{found['p']:13.4f}{found['p_randomisation']:13.4f}"
        lines.append(f"  {name:18}{shown}  {scored_by(name, found['delta'], found['p'])}".rstrip())
    apart = result["lines"]
    lines.append(f"  right here alone: {apart['right_only_here']:,}; right there alone: {apart['right_only_there']:,}")
    return "\n".join(lines)
