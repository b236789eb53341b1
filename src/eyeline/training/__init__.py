"""Training a run: from settings to a run directory with weights, figures and a model card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import torch

from eyeline.config import Config
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, DataError, RunError, UserError
from eyeline.files import cannot_write, remove_leftovers
from eyeline.ladder import Seq2Seq
from eyeline.runs import CONFIG, Run, create_run, open_run, save_config, save_weights
from eyeline.training.card import CARD, write_card
from eyeline.training.checkpoints import list_checkpoints, peek
from eyeline.training.journal import Journal
from eyeline.training.loop import Diverged, Trainer
from eyeline.training.objective import Objective
from eyeline.training.preparation import Prepared, prepare
from eyeline.training.reporting import Reporter, duration
from eyeline.training.starting import SPLIT, covered_before, start_from_vectors
from eyeline.training.state import Position, reached
from eyeline.training.trackers import TensorBoard, open_trackers
from eyeline.training.updates import PairTooLarge, out_of_memory
from eyeline.training.validation import Validator

__all__ = ["Diverged", "Reporter", "Trainer", "train"]

CHECKPOINTS = "checkpoints"
DEFAULT_EPOCHS = 20  # where nothing bounds a run


def train(
    config: Config,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    more_steps: int | None = None,
    device: str = "cpu",
    reporter: Reporter | None = None,
) -> Run:
    """Trains what `config` describes and writes the run directory `out`.

    Args:
        out: default: `runs/ARCHITECTURE`.
        resume: go on from the newest checkpoint of `out`, to the bound that `config` sets; start when there is none.
        more_steps: with `resume`, the bound is the steps made so far and so many more; early stopping counts anew.

    Returns:
        The run, ready for `eyeline.load(out)`.

    Raises:
        UserError: something in the settings, the data or the directory is to be mended.
        Interrupted: a signal ended it; the state is saved.
    """
    reporter = reporter or Reporter()
    out = Path("runs", config.model.architecture) if out is None else Path(out)
    stored = _stored(out, resume)
    if more_steps is not None:
        config = _with_more_steps(config, out, stored, more_steps)
    config = _bounded(config)
    if stored is not None:
        config = _with_elements_of(stored.config, config)
        _check_same(stored.config, config)
        if more_steps is None and _already_over(stored, config, reporter):
            return stored
    for directory in (out, out / CHECKPOINTS):
        remove_leftovers(directory)
    prepared = prepare(config, stored)
    config = prepared.config
    reporter.note(prepared.report.render())
    corpus = prepared.train.corpus()
    Objective.of(config.training, corpus)  # raises before anything is written
    run = Run(out, config, prepared.source, prepared.target)
    _train(run, prepared, corpus, device, reporter, stored is not None, more_steps is not None)
    return run


def _train(run: Run, prepared: Prepared, corpus: Corpus, device: str, reporter: Reporter, resume: bool, more: bool) -> None:
    config = run.config
    torch.manual_seed(config.seed)  # here, so that nothing before decides the first weights
    model = run.build()
    started = [] if list_checkpoints(run.path / CHECKPOINTS) else start_from_vectors(config, model, run.source, run.target)
    for covered in started:
        (reporter.note if covered.covered else reporter.warn)(f"{covered.side} vectors: {covered}")
    if not resume:
        create_run(run.path, config, run.source, run.target)  # only now: a model that cannot be leaves nothing behind
    model = model.to(device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    reporter.note(f"{config.model.architecture}: {parameters:,} parameters on {device}, {torch.get_num_threads()} threads")
    trainer = Trainer(model, corpus, config.training, config.seed, run.path / CHECKPOINTS, reporter, device)
    if resume:
        if trainer.resume():
            at = trainer.position
            reporter.note(f"going on from step {at.step} (epoch {at.epoch}, batch {at.batch})")
        save_config(run.path, config)  # only now: settings that the state refuses are not written
    if more:
        trainer.progress.since_best = 0
    told = covered_before(run.path)
    with closing(_journal(run, trainer.position.step, reporter)) as journal:
        for covered in started:
            if covered not in told:
                journal.log(SPLIT, 0, {"time_s": 0.0, **asdict(covered)})
        validate = None
        if prepared.valid is not None:
            validate = Validator(model, prepared.valid, prepared.coder, config, journal, reporter, torch.device(device))
        else:
            reporter.warn("no validation pairs: the last weights are kept, and nothing can stop the run early")

        def keep_best(position: Position) -> None:
            save_weights(model, run.weights, {"step": position.step, "version": 1})

        with _pairs_named(prepared):
            trainer.rehearse()
            if validate is not None:
                _rehearse_validation(model, validate, config)
            reason = trainer.run(journal, validate, keep_best)
    progress = trainer.progress
    reporter.note(f"done after {reason}, {duration(trainer.position.seconds)} of training")
    if progress.best is not None:
        reporter.note(f"best {config.training.metric} {progress.best:.4f} at step {progress.best_step}; weights: {run.weights}")
    elif validate is not None:
        raise Diverged("no validation gave a finite number, so that no weights are the best", str(run.path), "see metrics.jsonl")
    write_card(run, model, trainer.position, progress, prepared)


def _journal(run: Run, step: int, reporter: Reporter) -> Journal:
    try:
        trackers = open_trackers(run.config.training.trackers, run.path, step, run.config.to_dict(), reporter.warn)
    except OSError as error:
        raise cannot_write(error, run.path) from error
    if not any(isinstance(tracker, TensorBoard) for tracker in trackers):
        reporter.note("TensorBoard is not installed, so its files are not written: pip install 'eyeline[plots]'")
    return Journal(run.path, step, trackers)


@contextmanager
def _pairs_named(prepared: Prepared) -> Iterator[None]:
    """A pair that the memory does not hold is named by its file and line."""
    try:
        yield
    except PairTooLarge as error:
        pair = prepared.train.pairs[error.row]
        raise DataError(error.what, pair.path, pair.line, error.hint) from None


def _rehearse_validation(model: Seq2Seq, validate: Validator, config: Config) -> None:
    """What would end a run at its first validation ends it now. Raises UserError."""
    model.eval()
    try:
        validate.rehearse()
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        what = "the memory does not hold the largest batch of the validation pairs"
        where = f"training.batch_tokens={config.training.batch_tokens}, search.batch_tokens={config.search.batch_tokens}"
        raise UserError(what, where, "lower them") from None


def _stored(out: Path, resume: bool) -> Run | None:
    """The run that is there already, when it is to go on."""
    if not (out / CONFIG).exists():
        if out.exists() and not out.is_dir():
            raise RunError("a file is in the way", str(out), "name another --out")
        if list_checkpoints(out / CHECKPOINTS):
            raise RunError(f"there are checkpoints here, but no {CONFIG}", str(out), "bring it back, or name another --out")
        return None
    if not resume:
        raise RunError("there is a run here already", str(out), "--resume goes on with it; or name another --out")
    return open_run(out)


def _bounded(config: Config) -> Config:
    if config.training.bounded:
        return config
    return config.model_copy(update={"training": config.training.model_copy(update={"epochs": DEFAULT_EPOCHS})})


def _with_elements_of(stored: Config, config: Config) -> Config:
    """The width of real-valued elements, which the pairs decided when the run was begun."""
    if not stored.numbers or not config.points or config.numbers:
        return config
    return config.model_copy(update={"model": config.model.model_copy(update={"element_size": stored.numbers})})


def _with_more_steps(config: Config, out: Path, stored: Run | None, more: int) -> Config:
    if stored is None:
        raise ConfigError("there is no run to go on with", f"--more-steps {more}", f"with --resume, and a run in {out}")
    state = peek(out / CHECKPOINTS)
    bound = {"steps": (state[0].step if state else 0) + more, "epochs": None, "target_tokens": None, "for_": None}
    return config.model_copy(update={"training": config.training.model_copy(update=bound)})


def _check_same(stored: Config, config: Config) -> None:
    """A run goes on with the model, the vocabularies and the data order that it has, and began from the vectors that it did."""
    for name in ("source_vectors", "target_vectors"):
        before, now = getattr(stored.training, name), getattr(config.training, name)
        if before != now:
            raise ConfigError("a run goes on with its own word vectors", f"training.{name}={now}", f"it was begun with {before}")
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


def _already_over(stored: Run, config: Config, reporter: Reporter) -> bool:
    """Whether the newest checkpoint has reached the bound; then nothing is read and nothing written."""
    state = peek(stored.path / CHECKPOINTS)
    if state is None or not stored.weights.exists() or not (stored.path / CARD).exists():
        return False  # the last of a finished run's files is its card
    reason = reached(config.training, *state)
    if reason is None:
        return False
    reporter.note(f"{stored.path} is finished at step {state[0].step} after {reason}; nothing to do (--more-steps N adds to it)")
    return True
