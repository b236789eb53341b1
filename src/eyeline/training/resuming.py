"""Whether and how a run goes on: what is there already, what must be as it was, when it is over. Knows settings."""

from __future__ import annotations

from pathlib import Path

from eyeline.config import Config
from eyeline.errors import ConfigError, RunError
from eyeline.files import remove_leftovers
from eyeline.runs import CONFIG, Run, open_run
from eyeline.training.card import CARD
from eyeline.training.checkpoints import list_checkpoints, peek
from eyeline.training.reporting import Reporter
from eyeline.training.state import reached

CHECKPOINTS = "checkpoints"
DEFAULT_EPOCHS = 20  # where nothing bounds a run
ITS_OWN = ("source_vectors", "target_vectors", "from_", "from_vocabulary", "freeze")  # of training, what a run was begun with


def stored_run(out: Path, resume: bool) -> Run | None:
    """The run that is there already, when it is to go on."""
    if not (out / CONFIG).exists():
        if list_checkpoints(out / CHECKPOINTS):
            raise RunError(f"there are checkpoints here, but no {CONFIG}", str(out), "bring it back, or name another --out")
        return None
    if not resume:
        raise RunError("there is a run here already", str(out), "--resume goes on with it; or name another --out")
    return open_run(out)


def bounded(config: Config) -> Config:
    if config.training.bounded:
        return config
    return config.model_copy(update={"training": config.training.model_copy(update={"epochs": DEFAULT_EPOCHS})})


def with_elements_of(stored: Config, config: Config) -> Config:
    """The width of real-valued elements, which the pairs decided when the run was begun."""
    if not stored.numbers or not config.points or config.numbers:
        return config
    return config.model_copy(update={"model": config.model.model_copy(update={"element_size": stored.numbers})})


def with_more_steps(config: Config, out: Path, stored: Run | None, more: int) -> Config:
    if stored is None:
        raise ConfigError("there is no run to go on with", f"--more-steps {more}", f"with --resume, and a run in {out}")
    state = peek(out / CHECKPOINTS)
    bound = {"steps": (state[0].step if state else 0) + more, "epochs": None, "target_tokens": None, "for_": None}
    return config.model_copy(update={"training": config.training.model_copy(update=bound)})


def check_same(stored: Config, config: Config) -> None:
    """A run goes on with the model, the vocabularies and the data order that it has, and began from the vectors that it did."""
    for name in ITS_OWN:
        before, now = getattr(stored.training, name), getattr(config.training, name)
        if before != now:
            where = f"training.{name.rstrip('_')}={now}"
            raise ConfigError("a run goes on from what it was begun with", where, f"it was begun with {before}")
    optimizers = stored.training.optimizer, config.training.optimizer
    if optimizers[0] != optimizers[1] and "schedule-free" in optimizers:
        where = f"training.optimizer={config.training.optimizer}"
        raise ConfigError("a run goes on with what its optimiser remembers", where, f"it was begun with {optimizers[0]}")
    for section in ("model", "tokenizer", "data", "seed"):
        before, now = getattr(stored, section), getattr(config, section)
        if before == now:
            continue
        if section == "seed":
            raise ConfigError("a run goes on with its own seed", f"seed={now}", f"it was begun with {before}")
        for name in type(before).model_fields:
            if (section, name) == ("data", "test"):
                continue  # has no part in training
            if type(before) is not type(now) or getattr(before, name) != getattr(now, name):
                value = getattr(now, name, None)
                raise ConfigError(
                    "a run goes on with its own settings", f"{section}.{name}={value}", "train anew into another --out"
                )


def already_over(stored: Run, config: Config, reporter: Reporter) -> bool:
    """Whether the newest checkpoint has reached the bound; then nothing is read and nothing written.

    Only what a process that was killed at the very end has left goes.
    """
    state = peek(stored.path / CHECKPOINTS)
    if state is None or not stored.weights.exists() or not (stored.path / CARD).exists():
        return False  # the last of a finished run's files is its card
    reason = reached(config.training, *state)
    if reason is None:
        return False
    for directory in (stored.path, stored.path / CHECKPOINTS):
        remove_leftovers(directory)
    reporter.note(f"{stored.path} is finished at step {state[0].step} after {reason}; nothing to do (--more-steps N adds to it)")
    return True
