"""Training a run: from settings to a run directory with weights, figures and a model card."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import torch

from eyeline.config import Config
from eyeline.data.corpus import Corpus
from eyeline.errors import DataError, UserError
from eyeline.files import cannot_write, remove_leftovers
from eyeline.ladder import Seq2Seq
from eyeline.runs import Run, create_run, save_config, save_weights
from eyeline.training.beginning import begin, told_before
from eyeline.training.card import write_card
from eyeline.training.checkpoints import list_checkpoints
from eyeline.training.claiming import Claim
from eyeline.training.compiling import check_compiler
from eyeline.training.distributed import World, joined, own_device
from eyeline.training.finetuning import base_run
from eyeline.training.finishing import keep_mean
from eyeline.training.journal import Journal, Log, NoJournal
from eyeline.training.loop import Diverged, Trainer
from eyeline.training.objective import Objective
from eyeline.training.optimizers import freeze
from eyeline.training.precision import check_cell, chosen, warning
from eyeline.training.preparation import Prepared, prepare, settled
from eyeline.training.randomness import own_seed
from eyeline.training.reporting import Reporter, duration, silent
from eyeline.training.resuming import (
    CHECKPOINTS,
    already_over,
    bounded,
    check_same,
    stored_run,
    with_elements_of,
    with_more_steps,
)
from eyeline.training.state import Position
from eyeline.training.trackers import TensorBoard, open_trackers
from eyeline.training.updates import PairTooLarge, out_of_memory
from eyeline.training.validation import Validator
from eyeline.training.weights import gathered

__all__ = ["Diverged", "Reporter", "Trainer", "train"]


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

    Processes that `torchrun` started, or of a process group that is there, train one model together; the first of them writes.

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
    out = Path("runs", config.model.architecture) if out is None else Path(out)
    device = own_device(device)
    with joined(torch.device(device)) as world:
        told = reporter or Reporter()
        with Claim(out) as claim:
            return _train_together(world, claim, config, resume, more_steps, device, told if world.first else silent())


def _train_together(
    world: World, claim: Claim, config: Config, resume: bool, more_steps: int | None, device: str, reporter: Reporter
) -> Run:
    out = claim.directory
    if world.first:
        claim.make()
    restarted = world.has_begun(str(out.resolve()))  # by the launcher: then the run goes on, asked to or not
    stored = stored_run(out, resume or restarted)
    world.agree(str(stored is not None), "what is in the run directory", str(out))  # before anything is written
    if restarted and stored is not None:
        config = stored.config
    elif more_steps is not None:
        config = with_more_steps(config, out, stored, more_steps)
    config = settled(bounded(config))
    if stored is not None:
        config = with_elements_of(stored.config, config)
        check_same(stored.config, config)
        if more_steps is None and already_over(stored, config, reporter):
            return stored
    if config.training.compile:
        check_compiler(torch.device(device))
    precision = chosen(config.training.precision, torch.device(device))
    check_cell(getattr(config.model, "cell", None), precision, torch.device(device))
    if slow := warning(precision, torch.device(device)):
        reporter.warn(f"{slow}; training.precision=fp32 is faster")
    base = None if list_checkpoints(out / CHECKPOINTS) else base_run(config)
    for directory in (out, out / CHECKPOINTS) if world.first else ():
        remove_leftovers(directory)
    if base is not None:
        config = with_elements_of(base.config, config)
    prepared = prepare(config, stored or (base if config.training.from_vocabulary == "keep" else None))
    config = prepared.config
    reporter.note(prepared.report.render())
    corpus = prepared.train.corpus()
    Objective.of(config.training, corpus)  # raises before anything is written
    run = Run(out, config, prepared.source, prepared.target)
    vocabularies = [zlib.crc32(side.content.encode()) for side in (run.source, run.target)]
    world.agree(f"{vocabularies} {corpus.checksum()}", "the training data", "data.train")
    _train(run, claim, prepared, corpus, device, reporter, stored is not None, more_steps is not None, world)
    return run


def _train(
    run: Run,
    claim: Claim,
    prepared: Prepared,
    corpus: Corpus,
    device: str,
    reporter: Reporter,
    resume: bool,
    more: bool,
    world: World,
) -> None:
    config = run.config
    torch.manual_seed(config.seed)  # here, so that nothing before decides the first weights
    model = run.build()
    begun = [] if list_checkpoints(run.path / CHECKPOINTS) else begin(run, model, prepared, reporter)
    if not resume and world.first:
        claim.make(create=True)  # only now: a model that cannot be leaves nothing behind
        create_run(run.path, config, run.source, run.target)
    model = model.to(device)
    if frozen := freeze(model, config.training.freeze):
        reporter.note(f"{len(frozen)} weights are frozen: {' '.join(frozen)}")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    trainer = Trainer(model, corpus, config.training, config.seed, run.path / CHECKPOINTS, reporter, device, world)
    places = f"{device}, {torch.get_num_threads()} threads" + (f", {world.size} processes" if world.size > 1 else "")
    places += "" if trainer.precision == "fp32" else f", {trainer.precision}"
    reporter.note(f"{config.model.architecture}: {parameters:,} parameters on {places}")
    if world.rank:
        torch.manual_seed(own_seed(config.seed, world.rank))  # each draws its own dropout
    if resume:
        if trainer.resume():
            at = trainer.position
            reporter.note(f"going on from step {at.step} (epoch {at.epoch}, batch {at.batch})")
        if world.first:
            save_config(run.path, config)  # only now: settings that the state refuses are not written
    world.begins(str(run.path.resolve()))
    if more:
        trainer.progress.since_best = 0
    told = told_before(run.path)
    with closing(_journal(run, trainer.position.step, reporter) if world.first else NoJournal()) as journal:
        for split, values in begun:
            if (split, values) not in told:
                journal.log(split, 0, {"time_s": 0.0, **values})
        validate = None
        if prepared.valid is not None:
            where = torch.device(device)
            validate = Validator(model, prepared.valid, prepared.coder, config, journal, reporter, where, world)
        else:
            reporter.warn("no validation pairs: the last weights are kept, and nothing can stop the run early")

        def keep_best(position: Position) -> None:
            save_weights(model, run.weights, {"step": position.step, "version": 1}, write=world.first)
            if trainer.snapshots is not None:
                trainer.snapshots.keep_best(run.weights)

        with _pairs_named(prepared):
            trainer.rehearse()
            if validate is not None:
                with gathered(trainer.weights):
                    _rehearse_validation(model, validate, config)
            reason = trainer.run(journal, validate, keep_best)
        averaged = keep_mean(run, model, trainer, validate, reporter)
    progress = trainer.progress
    reporter.note(f"done after {reason}, {duration(trainer.position.seconds)} of training")
    if progress.best is not None:
        reporter.note(f"best {config.training.metric} {progress.best:.4f} at step {progress.best_step}; weights: {run.weights}")
    elif validate is not None:
        raise Diverged("no validation gave a finite number, so that no weights are the best", str(run.path), "see metrics.jsonl")
    if world.first:
        write_card(run, model, trainer.state, prepared, averaged)


def _journal(run: Run, step: int, reporter: Reporter) -> Log:
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
