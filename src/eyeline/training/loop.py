"""The loop: batches in, updates out, until a bound is reached. Knows no architecture and no text."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from eyeline.config import TrainingSettings
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, Interrupted, UserError
from eyeline.training import checkpoints
from eyeline.training.averaging import averaging, judged
from eyeline.training.compiling import compile_parts
from eyeline.training.distributed import World
from eyeline.training.journal import Log
from eyeline.training.objective import Objective
from eyeline.training.optimizers import all_finite, make_optimizer
from eyeline.training.pacing import pace
from eyeline.training.precision import LossScale, chosen
from eyeline.training.reporting import Reporter
from eyeline.training.schedules import Progress, learning_rate
from eyeline.training.signals import StopSignals
from eyeline.training.snapshots import Snapshots
from eyeline.training.state import Meter, Order, Position, State, reached, share_since_warm_up
from eyeline.training.updates import Update, Updater, out_of_memory
from eyeline.training.weights import gathered, placed
from eyeline.training.windows import Windows

MOST_SKIPPED = 5  # updates in a row that may be left out for a loss or gradient that is no sound number
LOG_EVERY = 10  # updates between training events in the journal: by steps, so that a run repeated logs the same events


class Diverged(UserError):
    """Losses, gradients or weights stopped being sound numbers; what is on the disk is from before that."""


class Trainer:
    """One run's training, from wherever it is to its bound.

    Args:
        model: what is trained.
        corpus: training pairs.
        settings: bounds, optimiser, schedule and the rest.
        seed: with the epoch it decides the order of batches.
        directory: the run's `checkpoints/`.
        world: the processes that train together, each with a trainer of its own; without it this one alone.

    Raises:
        ConfigError: attention is to be guided by links that the corpus does not have.
    """

    def __init__(
        self,
        model: nn.Module,
        corpus: Corpus,
        settings: TrainingSettings,
        seed: int,
        directory: Path,
        reporter: Reporter,
        device: torch.device | str = "cpu",
        world: World | None = None,
    ) -> None:
        self.model, self.settings, self.directory, self.reporter = model, settings, directory, reporter
        self.world = world or World()
        self.weights = placed(model, self.world, torch.device(device), settings.shard)
        self.objective = Objective.of(settings, corpus)
        self.optimizer = make_optimizer(model, settings)
        if settings.compile:
            compile_parts(model)
        self.averaging = averaging(model, self.optimizer, settings)
        rule = settings.snapshots
        self.snapshots = rule and Snapshots(directory.parent / "snapshots", *rule, settings.metric, write=self.world.first)
        self.windows = Windows(corpus, settings, seed, torch.device(device), (self.world.rank, self.world.size))
        self.precision = chosen(settings.precision, self.windows.device)
        self.updater = Updater(
            model, self.objective, self.optimizer, self.windows, settings.clip_norm, self.world, self.weights, self.precision
        )
        self.state = State(Position(), Progress(settings.metric), Meter(), Order.of(corpus, settings))
        self.state.scale = LossScale.of(self.precision)
        self._shown = Meter()  # since the pace was last shown

    @property
    def position(self) -> Position:
        return self.state.position

    @property
    def progress(self) -> Progress:
        return self.state.progress

    # ---- where the run is -------------------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Fills everything from the newest whole checkpoint; False when there is none.

        Raises:
            RunError: when there are checkpoints and every one is damaged.
            ConfigError: when the run was begun with other training pairs.
        """
        warn, world = self.reporter.warn, self.world
        loaded = checkpoints.load_newest(self.directory, self.model, self.optimizer, warn, self.averaging, world)
        world.agree(str(loaded and loaded.position.step), "the newest whole checkpoint", str(self.directory))
        if loaded is None:
            return False
        before, self.state = self.state, loaded
        self.state.scale = loaded.scale.carried_to(self.precision)
        if before.order.pairs != loaded.order.pairs:
            raise ConfigError("the training pairs are not those that this run was begun with", "data.train")
        if before.order.batch_tokens != loaded.order.batch_tokens:
            if self.position.batch:
                self.reporter.warn(f"other batches with the new training.batch_tokens: epoch {self.position.epoch} begins anew")
            self.position.batch, self.state.order = 0, before.order
        if before.progress.metric != loaded.progress.metric:
            self.reporter.warn(
                f"the metric is now {self.settings.metric}: what was best by {loaded.progress.metric} is forgotten"
            )
            self.state.progress = Progress(self.settings.metric, factor=loaded.progress.factor)
            self.state.snapshots = []
        if self.snapshots is not None:
            self.state.snapshots = self.snapshots.present(self.state.snapshots, self.reporter.warn)
        if self.world.first:
            checkpoints.remove_old(self.directory, self.position.step, self.settings.keep_checkpoints)
        self._prune_snapshots()
        return True

    def rehearse(self) -> None:
        """Works through the largest batches and throws that away, so that what does not fit is known at once.

        Raises:
            PairTooLarge: the memory does not hold a single pair.
        """
        self.model.train()
        for batch in self.windows.worst(self.position.epoch):
            B, S, T = len(batch.rows), batch.source.ids.shape[1], batch.outputs.shape[1]
            parts = self.updater.rehearse(batch)
            if parts > 1:
                what = f"the memory does not hold a batch of {B} pairs of up to {S} and {T} tokens, which takes {parts} parts"
                self.reporter.warn(f"{what}; lower training.batch_tokens={self.settings.batch_tokens}")

    # ---- the loop ---------------------------------------------------------------------------------------------------

    def run(self, journal: Log, validate: Callable[[Position], float] | None, keep_best: Callable[[Position], None]) -> str:
        """Trains to the bound; returns which one ended the run.

        Args:
            validate: scores the model and returns the value of `training.metric`; None without validation pairs.
            keep_best: stores the weights as the run's best; without validation pairs the newest are.

        Raises:
            Interrupted: after SIGINT or SIGTERM, with a checkpoint of this very step written.
            Diverged: when losses or gradients are no sound numbers several times in a row, or weights are not finite.
            UserError: when the disk or the device's memory is full.
        """
        self._journal, self._validate, self._keep_best = journal, validate, keep_best
        self._total = self.windows.total_steps()
        self.model.train()
        self.reporter.start()
        began = time.monotonic() - self.position.seconds  # validations and saving count too: `for` bounds what a person waits
        try:
            with StopSignals() as signals:
                while (reason := self._over()) is None:
                    self._update()
                    self.position.seconds = self.world.of_first(time.monotonic() - began)
                    if self.position.step == max(1, self.settings.warmup_steps):
                        self.position.warm_tokens, self.position.warm_seconds = self.position.target_tokens, self.position.seconds
                    self._after_update(signals)
        except (torch.cuda.OutOfMemoryError, MemoryError, RuntimeError) as error:  # not in a batch: those are split
            if not out_of_memory(error):
                raise
            where = f"training.batch_tokens={self.settings.batch_tokens}"
            raise UserError("the memory is full", where, "lower it, and raise training.accumulate in turn") from None
        finally:
            self.windows.close()
            self.reporter.stop()
        return reason

    def _over(self) -> str | None:
        return reached(self.settings, self.position, self.progress)

    def _update(self) -> None:
        """One update from one window."""
        began = time.monotonic()
        position, settings = self.position, self.settings
        window = self.windows.at(position)
        way = share_since_warm_up(settings, position) if settings.ends and self._total is None else None
        rate = learning_rate(settings, position.step + 1, self._total, way) * self.progress.factor
        update = self.updater(window, rate, position.step + 1, self.state.scale)
        self.windows.advance(position, update.tokens)
        if update.split:
            self._tell_of_splitting(update.split)
        position.rescaled += update.rescaled
        if update.wrong:
            self._skip(update)
        if update.wrong or update.rescaled:
            return
        self.averaging.after_update()
        position.skipped_in_a_row = 0
        update.sums.seconds = time.monotonic() - began
        for meter in (self.state.meter, self._shown):
            meter.add(update.sums)

    def _tell_of_splitting(self, batches: int) -> None:
        """Counts batches that were worked through in parts; says so at the 1st, the 10th, the 100th…"""
        before, self.position.split = self.position.split, self.position.split + batches
        if len(str(before)) < len(str(self.position.split)) or not before:
            what = f"the memory was full at step {self.position.step}: the batch was split ({self.position.split} so far)"
            self.reporter.warn(f"{what}; training.batch_tokens={self.settings.batch_tokens} is too much for speed")

    def _skip(self, update: Update) -> None:
        """Leaves an update out, loudly, and gives up after a few in a row."""
        self.position.skipped += 1
        self.position.skipped_in_a_row += 1
        what, first = f"{update.wrong} at step {self.position.step}", f"; first in {update.module}" if update.module else ""
        self.reporter.warn(f"{what}: this update is left out ({self.position.skipped} so far){first}")
        if self.position.skipped_in_a_row >= MOST_SKIPPED:
            raise self._diverged(f"{what}, {MOST_SKIPPED} updates in a row{first}")

    def _diverged(self, what: str) -> Diverged:
        where = f"training.learning_rate={self.settings.learning_rate:g}"
        return Diverged(what, where, "lower it, or clip_norm; weights and checkpoints on the disk are from before this")

    # ---- what falls due after an update -----------------------------------------------------------------------------

    def _after_update(self, signals: StopSignals) -> None:
        """A report, a validation, a checkpoint, the end."""
        step, over = self.position.step, self._over() is not None
        if step % LOG_EVERY == 0:
            self._log()
            self.state.meter = Meter()
        if self.reporter.wants_pace() or over:
            self._show_pace()
        validation_due = self._validate is not None and (step % self.settings.validate_every == 0 or over)
        stop = self.world.any(signals.received is not None)  # one process that is told to is enough
        # A validation brings a checkpoint, so that the counters of early stopping are never behind the best weights.
        due = validation_due or step % self.settings.checkpoint_every == 0 or over or stop
        if not due:
            return
        if self.world.any(not all_finite(self.model, self.optimizer)):
            raise self._diverged(f"weights that are not finite at step {step}")
        if validation_due:
            self._validation()
        elif self._validate is None:
            with judged(self.averaging):
                self._keep_best(self.position)
            self._take_snapshot(0.0)
        ended = self._over() is not None
        if ended:
            self._log()  # the window goes on, should the run: a run that is taken further logs as one that never stopped
        keep = self.settings.keep_checkpoints
        checkpoints.save(self.directory, self.model, self.optimizer, self.state, keep, self.averaging, self.world)
        self._prune_snapshots()
        if not ended and self.world.any(signals.received is not None):  # and the first has written by now: nobody leaves before
            by = signals.received or "a signal to another process"
            raise Interrupted(f"stopped by {by} at step {step}; the state is saved, and --resume goes on")

    def _validation(self) -> None:
        assert self._validate is not None
        with judged(self.averaging):
            self.model.eval()
            with gathered(self.weights):
                score = self._validate(self.position)
            self.model.train()
            if not math.isfinite(score):
                self.reporter.warn(f"validation gives {score} at step {self.position.step}: no improvement")
            if self.progress.update(score, self.position.step, self.settings):
                self._keep_best(self.position)
        if math.isfinite(score):
            self._take_snapshot(score)
        self.reporter.validated(self.position.step, score)

    def _take_snapshot(self, score: float) -> None:
        if self.snapshots is not None:
            self.state.snapshots = self.snapshots.take(self.model, self.position.step, score, self.state.snapshots)

    def _prune_snapshots(self) -> None:
        if self.snapshots is not None:
            self.snapshots.prune(state.snapshots for state in checkpoints.states(self.directory))

    def _log(self) -> None:
        """An event for the updates since the last one; none when all were left out."""
        meter, position = self.state.meter, self.position
        if meter.tokens:
            values = {
                "time_s": round(position.seconds, 3),
                "epoch": position.epoch,
                "loss": meter.loss,
                **self._parts(meter),
                "tokens_per_s": round(meter.tokens_per_s, 1),
                "lr": self.optimizer.param_groups[0]["lr"],
                "target_tokens": position.target_tokens,
            }
            self._journal.log("train", position.step, values)

    def _parts(self, meter: Meter) -> dict[str, float]:
        """What is minimised beside the likelihood, a target token, without weights."""
        objective = self.objective
        parts = {
            "coverage_loss": (objective.coverage, meter.coverage),
            "alignment_loss": (objective.alignment, meter.alignment),
            "consistency_loss": (objective.consistency, meter.consistency),
            "expected_cost": (objective.risk_weight, meter.risk),
        }
        return {name: total / meter.tokens for name, (weight, total) in parts.items() if weight}

    def _show_pace(self) -> None:
        if self._shown.tokens:
            rate, validates = self.optimizer.param_groups[0]["lr"], self._validate is not None
            self.reporter.pace(pace(self.settings, self.position, self._total, self._shown, rate, validates))
            self._shown = Meter()
