"""What a search has found: every trial, the best one, and how much each setting mattered; as a table, JSON and a picture."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eyeline.config import LOWER_IS_BETTER, Metric
from eyeline.errors import MissingExtra, require
from eyeline.figures.tuning import draw_tuning
from eyeline.files import beside, write_json
from eyeline.training.reporting import Reporter

PICTURE, VALUES = "tuning.png", "result.json"
SHOWN = 10  # trials in the table


@dataclass(frozen=True)
class Tried:
    """A trial that is over."""

    number: int
    score: float | None  # of one that was pruned, the last that it had; None where it never came to a validation
    pruned: bool
    settings: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """All trials by number; `importances` sum to one, and are empty where nothing can be said yet."""

    metric: Metric
    trials: Sequence[Tried]
    importances: Mapping[str, float]

    @property
    def lower(self) -> bool:
        """Whether a lower score is better."""
        return self.metric in LOWER_IS_BETTER

    @property
    def ranked(self) -> list[Tried]:
        """Those that came to their end, the best first; of equal ones the older."""
        ended = [trial for trial in self.trials if not trial.pruned and trial.score is not None]
        return sorted(ended, key=lambda trial: (trial.score or 0.0) * (1 if self.lower else -1))

    @property
    def best(self) -> Tried | None:
        """The best one; None where none came to its end."""
        return next(iter(self.ranked), None)

    def table(self) -> str:
        """The best few, and what mattered, in columns."""
        ranked = self.ranked
        rows = [["trial", self.metric, *self.importances_or_names()]]
        rows += [
            [str(trial.number), f"{trial.score:.4f}", *(shown(trial.settings[name]) for name in self.importances_or_names())]
            for trial in ranked[:SHOWN]
        ]
        if self.importances:
            rows.append(["mattered", "", *(f"{share:.0%}" for share in self.importances.values())])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        pruned = sum(trial.pruned for trial in self.trials)
        return "\n".join([*lines, f"{len(self.trials)} trials, {pruned} of them pruned"])

    def importances_or_names(self) -> list[str]:
        """The settings, what mattered most first where that is known."""
        return list(self.importances) or list(self.trials[0].settings)

    def to_dict(self) -> dict[str, Any]:
        best = self.best
        return {
            "metric": self.metric,
            "best": None if best is None else asdict(best),
            "importances": dict(self.importances),
            "trials": [asdict(trial) for trial in self.trials],
        }


def shown(value: Any) -> str:
    """A setting's value, in few characters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def result_of(searched: Any, metric: Metric) -> Result:
    """What one of Optuna's studies holds."""
    trials = []
    for trial in searched.get_trials(deepcopy=False):
        if trial.state.name not in ("COMPLETE", "PRUNED"):
            continue
        last = trial.intermediate_values[max(trial.intermediate_values)] if trial.intermediate_values else None
        pruned = trial.state.name == "PRUNED"
        trials.append(Tried(trial.number, last if pruned else trial.value, pruned, dict(trial.params)))
    return Result(metric, trials, _importances(searched))


def _importances(searched: Any) -> dict[str, float]:
    """Shares by PED-ANOVA (Watanabe et al. 2023): how much a setting decides whether a trial is among the best; largest first."""
    importance = require("optuna.importance", "tune")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of settings of which too few values were seen
        try:
            found = importance.get_param_importances(searched, evaluator=importance.PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError):  # too few trials to say anything
            return {}
    return {name: float(share) for name, share in found.items()} if sum(found.values()) > 0 else {}


def write_result(result: Result, folder: Path, reporter: Reporter) -> None:
    """Writes `result.json`, and the picture where matplotlib is installed."""
    write_json(folder / VALUES, result.to_dict())
    points = [(trial.number, trial.score, trial.pruned) for trial in result.trials if trial.score is not None]
    try:
        content = draw_tuning(points, result.importances, metric=result.metric, lower=result.lower)
    except MissingExtra as error:
        reporter.note(f"{PICTURE} is not drawn: {error}")
        return
    with beside(folder / PICTURE) as temporary:
        temporary.write_bytes(content)
