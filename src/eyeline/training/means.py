"""The mean of weights that a run has kept, as a run of its own or as a file. Knows run directories; trains and measures none."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eyeline.config import LOWER_IS_BETTER
from eyeline.errors import ConfigError, RunError
from eyeline.files import write_text
from eyeline.runs import WEIGHTS, Run, create_run, own_tensors, save_weights
from eyeline.training.averaging import mean_of_files
from eyeline.training.card import CARD
from eyeline.training.checkpoints import MODEL, list_checkpoints
from eyeline.training.snapshots import fill, list_snapshots


@dataclass(frozen=True)
class Weights:
    """Weights of one step that a run has kept."""

    step: int
    path: Path
    score: float | None  # by training.metric, where the run was validated at that step


def kept_weights(run: Run) -> list[Weights]:
    """Those of the checkpoints and of the snapshots for an average, oldest first."""
    found = scores(run)
    paths = dict(list_snapshots(run.path / "snapshots"))
    paths |= {step: path / MODEL for step, path in list_checkpoints(run.path / "checkpoints")}
    return [Weights(step, path, found.get(step)) for step, path in sorted(paths.items())]


def scores(run: Run, split: str = "valid") -> dict[int, float]:
    """What each validation found by the run's metric, or under the split `average` that of a mean, by step."""
    try:
        lines = (run.path / "metrics.jsonl").read_bytes().split(b"\n")
    except OSError:
        return {}
    found = {}
    for line in lines:
        try:
            event = json.loads(line)
            if event["split"] == split and math.isfinite(score := event[run.config.training.metric]):
                found[int(event["step"])] = float(score)
        except (ValueError, KeyError, TypeError):  # a line that was cut, or a figure that is none
            continue
    return found


def chosen(run: Run, *, last: int | None = None, best: int | None = None) -> list[Weights]:
    """The last or the best so many of the weights that a run has kept, oldest first; all of them without a number.

    Raises:
        ConfigError: there are fewer, or the run's optimiser averages by itself.
    """
    if run.config.training.optimizer == "schedule-free":
        what = "the schedule-free optimiser keeps a mean by itself, which is what model.safetensors holds"
        raise ConfigError(what, str(run.path))
    kept = kept_weights(run)
    if best is not None:
        kept = [weights for weights in kept if weights.score is not None]
    wanted, option = (last, "--last") if best is None else (best, "--best")
    if not kept or (wanted is not None and wanted > len(kept)):
        steps = ", ".join(f"{weights.step:,}" for weights in kept)
        what = f"the run has kept {len(kept)} weights" + (" that were validated" if best is not None else "")
        where = str(run.path) if wanted is None else f"{option} {wanted}"
        raise ConfigError(
            f"{what}{f': steps {steps}' if steps else ''}", where, "training.keep_checkpoints and training.average keep more"
        )
    if best is not None:
        sign = 1 if run.config.training.metric in LOWER_IS_BETTER else -1
        kept = sorted(sorted(kept, key=lambda weights: sign * (weights.score or 0.0))[:best], key=lambda weights: weights.step)
    return kept if last is None else kept[-last:]


def average(run: Run, weights: Sequence[Weights], out: Path) -> None:
    """Writes the mean of `weights`: to a new run directory `out`, or to `out` alone where it ends in .safetensors.

    Raises:
        RunError: a file is damaged or of another model, or there is something at the place of the new run.
    """
    alone = out.suffix.lower() == ".safetensors"
    if not alone and out.exists():
        raise RunError("there is something here already", str(out), "name another --out")
    mean, model = mean_of_files([one.path for one in weights]), run.build()
    given = own_tensors(model)
    if {name: value.shape for name, value in mean.items()} != {name: value.shape for name, value in given.items()}:
        raise RunError("the weights are not those of this model", str(weights[0].path))
    fill(model, mean)
    steps = [one.step for one in weights]
    save_weights(model, out if alone else out / WEIGHTS, {"step": steps[-1], "average": steps, "version": 1})
    if not alone:
        write_text(out / CARD, _card(run, out, steps))
        create_run(out, run.config, run.source, run.target)


def _card(run: Run, out: Path, steps: Sequence[int]) -> str:
    """The card of the new run, and below it that of the first: what it says of data and sizes holds here too."""
    name, origin = out.resolve().name, run.path / CARD
    said = (
        f"# {name}\n\nThe mean of the weights of {run.path.resolve().name} at steps {', '.join(f'{step:,}' for step in steps)}.\n"
    )
    if not origin.exists():
        return said
    measures = (
        f"It has not been measured: `eyeline evaluate {name} test.tsv` does. What follows is of the run that it comes from."
    )
    return f"{said}{measures}\n\n#{origin.read_text(encoding='utf-8')}"
