"""A search over settings: trials that are ordinary runs, the next ones drawn where the last did well. Needs Optuna.

DIR/study.yaml     the config and its ranges
    study.db       every trial, as Optuna keeps it (SQLite)
    runs/trial-N/  the best trial's run
    best.yaml      its config
    result.json    every trial, and how much each setting mattered
    tuning.png     the same as a picture
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.config import LOWER_IS_BETTER, Config
from eyeline.config_tuning import ChoiceSettings, Space, is_whole, with_values
from eyeline.config_yaml import dump_yaml, read_yaml
from eyeline.errors import ConfigError, RunError, UserError, require
from eyeline.files import write_text
from eyeline.training import Diverged, train
from eyeline.training.means import scores
from eyeline.training.reporting import Pace, Reporter
from eyeline.tuning.result import VALUES, Result, result_of, shown, write_result

STUDY, DATABASE, BEST, RUNS = "study.yaml", "study.db", "best.yaml", "runs"
DEFAULT_TRIALS = 30
BEFORE_PRUNING = 5  # trials that come to their end before any is compared with the median of the others


class Pruned(Exception):
    """A trial is worse than the median of those before it, at the same step."""


@dataclass(frozen=True)
class Study:
    """What is searched: a config's plain values without what is searched over, and that."""

    path: Path
    values: dict[str, Any]
    space: Space

    @property
    def config(self) -> Config:
        """With the first value of every range."""
        return self.settings({name: where.values()[0] for name, where in self.space.tune.items()})

    def settings(self, drawn: dict[str, Any]) -> Config:
        """The config of a trial. Raises ConfigError for values that contradict each other."""
        return Config.from_dict(with_values(self.values, drawn))

    def run(self, trial: int) -> Path:
        return self.path / RUNS / f"trial-{trial}"


def tune(
    values: dict[str, Any],
    space: Space,
    out: str | Path,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    resume: bool = False,
    prune: bool = True,
    keep_runs: bool = False,
    device: str = "cpu",
    reporter: Reporter | None = None,
) -> Result:
    """Searches for the settings with the best validation, and leaves them in `out`/best.yaml.

    Trial n is a function of the seed, n and what the trials before have given, so that a study that was stopped goes on as it
    would have. A trial that was stopped goes on from its newest checkpoint. One whose settings contradict each other, or whose
    losses or memory run away, counts as a bad one.

    Args:
        values: the settings that stay, plain; `space`: those that do not.
        trials: how many the study has in the end; default: 30, or without end where `seconds` bounds it.
        seconds: no trial but the first begins when this session is older.
        resume: go on with the study in `out`.
        prune: end trials that are worse than the median of those before, at the same step.
        keep_runs: keep all of the runs and not the best alone.

    Raises:
        MissingExtra: without Optuna.
        UserError: something in the settings, the data or the directory is to be mended, or no trial gave a figure.
        Interrupted: a signal ended it; the state is saved.
    """
    optuna = require("optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    reporter, study = reporter or Reporter(), Study(Path(out), values, space)
    if not study.config.data.valid:
        raise ConfigError("trials are compared by validations, and there are no pairs for it", "data.valid=[]")
    _begin(study, resume)
    most = DEFAULT_TRIALS if trials is None and seconds is None else trials
    ends = None if seconds is None else time.monotonic() + seconds
    with _opened(study, optuna, prune) as searched:
        done = 0
        for trial in _trials(study, searched, optuna, most, ends):
            done += 1
            _try(study, searched, trial, optuna, device, reporter)
            if not keep_runs:
                _keep_the_best(study, searched)
        result = result_of(searched, study.config.training.metric)
    best = result.best
    if best is None:
        raise UserError("no trial came to its end with a figure", str(out), "see what it warned of, and narrow the ranges")
    if not done and (study.path / BEST).exists() and (study.path / VALUES).exists():
        reporter.note(f"{out} has {len(result.trials)} trials; nothing to do (--trials N goes further)")
        return result
    write_text(study.path / BEST, study.settings(best.settings).to_yaml())
    write_result(result, study.path, reporter)
    return result


def _begin(study: Study, resume: bool) -> None:
    """Writes what is searched, or compares it with what the study was begun with."""
    path, now = study.path / STUDY, {**study.values, **study.space.to_dict()}
    if not path.exists():
        if study.path.exists() and (not study.path.is_dir() or any(study.path.iterdir())):
            raise RunError("there is something here already, and it is no study", str(study.path), "name another --out")
        write_text(path, dump_yaml(now))
        return
    if not resume:
        raise RunError("there is a study here already", str(study.path), "--resume goes on with it; or name another --out")
    before = read_yaml(path)
    if before != now:
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        raise ConfigError("a study goes on with its own settings and ranges", f"{path}: {names[0]}", "or name another --out")


@contextmanager
def _opened(study: Study, optuna: Any, prune: bool) -> Iterator[Any]:
    """Optuna's study in the directory."""
    direction = "minimize" if study.config.training.metric in LOWER_IS_BETTER else "maximize"
    pruner = optuna.pruners.MedianPruner(n_startup_trials=BEFORE_PRUNING) if prune else optuna.pruners.NopPruner()
    storage = optuna.storages.RDBStorage(f"sqlite:///{(study.path / DATABASE).resolve()}")
    try:
        yield optuna.create_study(storage=storage, study_name="eyeline", direction=direction, pruner=pruner, load_if_exists=True)
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _trials(study: Study, searched: Any, optuna: Any, most: int | None, ends: float | None) -> Iterator[Any]:
    """One that was stopped first, then new ones, until the bound."""
    running = optuna.trial.TrialState.RUNNING
    for left in searched.get_trials(deepcopy=False, states=(running,)):
        if left.params.keys() == study.space.tune.keys():
            yield optuna.trial.Trial(searched, left._trial_id)
        else:  # killed while its settings were being drawn
            searched.tell(left.number, state=optuna.trial.TrialState.FAIL)
    distributions = {name: _distribution(study, name, optuna) for name in study.space.tune}
    while True:
        given = searched.get_trials(deepcopy=False)
        counted = [trial for trial in given if trial.state != optuna.trial.TrialState.FAIL]
        late = ends is not None and time.monotonic() >= ends and counted
        if late or (most is not None and len(counted) >= most):
            return
        searched.sampler = optuna.samplers.TPESampler(seed=(study.config.seed * 1_000_003 + len(counted)) % 2**32)
        yield searched.ask(distributions)


def _distribution(study: Study, name: str, optuna: Any) -> Any:
    where, kinds = study.space.tune[name], optuna.distributions
    if isinstance(where, ChoiceSettings):
        return kinds.CategoricalDistribution(where.choices)
    if is_whole(study.values, study.space, name):
        return kinds.IntDistribution(int(where.from_), int(where.to), log=where.log, step=int(where.step or 1))
    return kinds.FloatDistribution(float(where.from_), float(where.to), log=where.log, step=where.step)


def _try(study: Study, searched: Any, trial: Any, optuna: Any, device: str, reporter: Reporter) -> None:
    """Trains a trial's run and tells the study what it gave."""
    number, pruned = trial.number, optuna.trial.TrialState.PRUNED
    said = "  ".join(f"{name}={shown(value)}" for name, value in trial.params.items())
    try:
        config = study.settings(trial.params)
        run = train(config, study.run(number), resume=True, device=device, reporter=Watcher(trial, reporter))
        found = [score for split in ("valid", "average") for score in scores(run, split).values()]
        score = min(found) if config.training.metric in LOWER_IS_BETTER else max(found)
    except Pruned:
        searched.tell(trial, state=pruned)
        reporter.note(f"trial {number}: pruned, worse than the median so far  {said}")
        return
    except UserError as error:
        if not _its_own_fault(error):
            raise
        searched.tell(trial, state=pruned)
        reporter.warn(f"trial {number}: {error}  {said}")
        return
    searched.tell(trial, score)
    best = " (the best so far)" if searched.best_trial.number == number else ""
    reporter.note(f"trial {number}: {config.training.metric} {score:.4f}{best}  {said}")


def _its_own_fault(error: UserError) -> bool:
    """Whether the settings that were drawn are to blame: they contradict each other, diverge, or are too large for the memory."""
    return isinstance(error, ConfigError | Diverged) or (type(error) is UserError and not isinstance(error.__cause__, OSError))


def _keep_the_best(study: Study, searched: Any) -> None:
    """Removes the runs of all trials that are over but of the best."""
    finished = [trial for trial in searched.get_trials(deepcopy=False) if trial.state.is_finished()]
    complete = any(trial.state.name == "COMPLETE" for trial in finished)
    best = searched.best_trial.number if complete else None
    for trial in finished:
        if trial.number != best:
            shutil.rmtree(study.run(trial.number), ignore_errors=True)


class Watcher(Reporter):
    """What a trial says: its pace and its warnings, and with `-v` all of it. Ends the trial when it is to be pruned."""

    def __init__(self, trial: Any, reporter: Reporter) -> None:
        super().__init__(reporter.verbosity, reporter.console)
        self._trial, self._pacing = trial, False

    def note(self, text: str) -> None:
        if self.verbosity >= 1 or self._pacing:
            super().note(f"trial {self._trial.number}: {text}")

    def warn(self, text: str) -> None:
        super().warn(f"trial {self._trial.number}: {text}")

    def pace(self, pace: Pace) -> None:
        self._pacing = True
        super().pace(pace)
        self._pacing = False

    def validated(self, step: int, score: float) -> None:
        """Raises Pruned."""
        told = self._trial.storage.get_trial(self._trial._trial_id).intermediate_values
        if step not in told:  # as it is when a trial goes on from before a validation that was told already
            self._trial.report(score, step)
        if self._trial.should_prune():
            raise Pruned


__all__ = ["Result", "Study", "tune"]
