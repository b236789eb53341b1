"""The loop: batches in, updates out, until a bound is reached. Knows no architecture and no text."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from eyeline.config import TrainingSettings
from eyeline.data.batches import epoch_batches
from eyeline.data.corpus import Batch, Corpus
from eyeline.errors import Interrupted, UserError
from eyeline.loss import negative_log_likelihood
from eyeline.training import checkpoints
from eyeline.training.checkpoints import Position
from eyeline.training.journal import Journal
from eyeline.training.reporting import Pace, Reporter
from eyeline.training.schedules import Progress, learning_rate

MOST_SKIPPED = 5  # updates in a row that may be left out for a loss or gradient that is not finite


class Diverged(UserError):
    """The loss or a gradient stopped being a finite number; the weights on the disk are from before that."""


@dataclass
class Meter:
    """Sums since the last report."""

    nll: float = 0.0
    tokens: int = 0
    began: float = 0.0

    def reset(self) -> None:
        self.nll, self.tokens, self.began = 0.0, 0, time.monotonic()


def reached(settings: TrainingSettings, position: Position, progress: Progress) -> str | None:
    """Why a run that stands at `position` is over, or None."""
    if settings.steps is not None and position.step >= settings.steps:
        return f"{settings.steps} steps"
    if settings.epochs is not None and position.epoch >= settings.epochs:
        return f"{settings.epochs} epochs"
    if settings.for_ is not None and position.seconds >= settings.for_:
        return f"{settings.for_:g} s"
    if progress.exhausted(settings.patience):
        return f"{settings.patience} validations in a row without improvement of {settings.metric}"
    return None


class Trainer:
    """One run's training, from wherever it is to its bound.

    Args:
        model: what is trained.
        corpus: training pairs.
        settings: bounds, optimiser, schedule and the rest.
        seed: with the epoch it decides the order of batches.
        directory: the run's `checkpoints/`.
        validate: takes the step, scores the model, returns the score that decides; None without validation pairs.
        keep_best: stores the weights as the run's best.
    """

    def __init__(
        self,
        model: nn.Module,
        corpus: Corpus,
        settings: TrainingSettings,
        seed: int,
        directory: Path,
        validate: Callable[[int], float] | None,
        keep_best: Callable[[int], None],
        journal: Journal,
        reporter: Reporter,
        device: torch.device,
    ) -> None:
        self.model, self.corpus, self.settings, self.seed = model, corpus, settings, seed
        self.directory, self.validate, self.keep_best = directory, validate, keep_best
        self.journal, self.reporter, self.device = journal, reporter, device
        self.optimizer = make_optimizer(model, settings)
        self.position, self.progress = Position(), Progress(settings.metric)
        self.meter = Meter()
        self._stop_signal: int | None = None
        self._skipped_in_a_row = 0
        self._epoch: tuple[int, list[Any]] | None = None

    # ---- where the run is -------------------------------------------------------------------------------------------

    def batches(self, epoch: int) -> list[Any]:
        """The batches of an epoch, as indices: a pure function of seed and epoch."""
        if self._epoch is None or self._epoch[0] != epoch:
            lengths = self.corpus.source_lengths, self.corpus.target_lengths
            self._epoch = epoch, epoch_batches(*lengths, self.settings.batch_tokens, self.seed, epoch)
        return self._epoch[1]

    def total_steps(self) -> int | None:
        """Updates in the whole run; None when only a duration bounds it."""
        if self.settings.steps is not None or self.settings.epochs is None:
            return self.settings.steps
        lengths = self.corpus.source_lengths, self.corpus.target_lengths
        sizes = (len(epoch_batches(*lengths, self.settings.batch_tokens, self.seed, e)) for e in range(self.settings.epochs))
        return sum(math.ceil(size / self.settings.accumulate) for size in sizes)

    def resume(self) -> bool:
        """Fills everything from the newest whole checkpoint; False when there is none."""
        loaded = checkpoints.load_newest(self.directory, self.model, self.optimizer, self.reporter.warn)
        if loaded is None:
            return False
        self.position, self.progress = loaded.position, loaded.progress
        return True

    # ---- the loop ---------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Trains to the bound; returns which one ended the run.

        Raises:
            Interrupted: after SIGINT or SIGTERM, with a checkpoint of this very step written.
            Diverged: when losses or gradients are not finite several times in a row.
        """
        self._total = self.total_steps()
        self.model.train()
        self.meter.reset()
        self.reporter.start()
        began = time.monotonic() - self.position.seconds  # validations and saving count too: `for` bounds what a person waits
        try:
            with self._signals():
                while (reason := self._over()) is None:
                    self._update()
                    self.position.seconds = time.monotonic() - began
                    self._after_update()
        finally:
            self.reporter.stop()
        self._finish()
        return reason

    def _over(self) -> str | None:
        return reached(self.settings, self.position, self.progress)

    def _window(self) -> list[Batch]:
        """The batches of the next update: `accumulate` of one epoch, fewer at its end."""
        order = self.batches(self.position.epoch)
        indices = order[self.position.batch : self.position.batch + self.settings.accumulate]
        return [self.corpus.batch(rows).to(self.device) for rows in indices]

    def _advance(self, window: list[Batch]) -> None:
        self.position.step += 1
        self.position.batch += len(window)
        self.position.target_tokens += sum(batch.target_tokens for batch in window)
        if self.position.batch >= len(self.batches(self.position.epoch)):
            self.position.epoch, self.position.batch = self.position.epoch + 1, 0

    def _update(self) -> None:
        """One update from one window; gradients are means over the real target tokens of the whole window."""
        window = self._window()
        tokens = sum(batch.target_tokens for batch in window)
        rate = learning_rate(self.settings, self.position.step + 1, self._total) * self.progress.factor
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        nll = 0.0
        for batch in window:
            step = self.model(batch.source, batch.inputs)
            loss = negative_log_likelihood(
                self.model.head,  # type: ignore[arg-type]
                step,
                batch.source,
                batch.outputs,
                batch.target_mask,
                self.settings.label_smoothing,
            )
            (loss.objective / tokens).backward()  # type: ignore[no-untyped-call]
            nll += float(loss.nll)
        limit = self.settings.clip_norm or math.inf
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        self._advance(window)
        if math.isfinite(nll) and math.isfinite(norm):
            self.optimizer.step()
            self._skipped_in_a_row = 0
            self.meter.nll += nll
            self.meter.tokens += tokens
        else:
            self._skip(nll, norm)

    def _skip(self, nll: float, norm: float) -> None:
        """Leaves an update out, loudly, and gives up after a few in a row."""
        self.position.skipped += 1
        self._skipped_in_a_row += 1
        what = f"loss {nll}" if not math.isfinite(nll) else f"gradient norm {norm}"
        self.reporter.warn(f"{what} at step {self.position.step}: this update is left out")
        if self._skipped_in_a_row >= MOST_SKIPPED:
            raise Diverged(
                f"{what} at step {self.position.step}, {MOST_SKIPPED} updates in a row",
                f"training.learning_rate={self.settings.learning_rate:g}",
                "lower it, or clip harder; the checkpoints are from before this",
            )

    def _after_update(self) -> None:
        """Whatever falls due after an update: a report, a validation, a checkpoint, the end."""
        step = self.position.step
        over = self._over() is not None
        if self.reporter.wants_pace() or over:
            self._report()
        checkpoint_due = step % self.settings.checkpoint_every == 0 or over
        if self.validate is not None and (step % self.settings.validate_every == 0 or over):
            self._validate(self.validate)
            checkpoint_due = True  # so that the counters of early stopping are never behind the best weights
        if checkpoint_due or self._stop_signal is not None:
            self._checkpoint()
        if self._stop_signal is not None and self._over() is None:
            raise Interrupted(f"stopped by {signal.Signals(self._stop_signal).name} at step {step}; the state is saved")

    def _validate(self, validate: Callable[[int], float]) -> None:
        self.model.eval()
        score = validate(self.position.step)
        self.model.train()
        if self.progress.update(score, self.position.step, self.settings):
            self.keep_best(self.position.step)
        self.meter.began = time.monotonic()
        self.meter.nll, self.meter.tokens = 0.0, 0

    def _checkpoint(self) -> None:
        if all(bool(parameter.isfinite().all()) for parameter in self.model.parameters()):
            keep = self.settings.keep_checkpoints
            checkpoints.save(self.directory, self.model, self.optimizer, self.position, self.progress, keep)
        else:
            self.reporter.warn(f"weights are not finite at step {self.position.step}: no checkpoint is written")

    def _finish(self) -> None:
        """Without validation pairs the last weights are the best there are."""
        if self.validate is None:
            self.keep_best(self.position.step)

    def _report(self) -> None:
        if not self.meter.tokens:
            return
        seconds = max(1e-9, time.monotonic() - self.meter.began)
        step, position = self.position.step, self.position
        per_step = position.seconds / max(1, step)
        left = (self._total - step) * per_step if self._total is not None else None
        if self.settings.for_ is not None:
            left = max(0.0, self.settings.for_ - position.seconds)
        to_validation = None
        if self.validate is not None:
            to_validation = (self.settings.validate_every - step % self.settings.validate_every) * per_step
        rate = self.optimizer.param_groups[0]["lr"]
        pace = Pace(step, self._total, self.meter.nll / self.meter.tokens, self.meter.tokens / seconds, rate, left, to_validation)
        self.reporter.pace(pace)
        self.journal.log(
            "train",
            step,
            {
                "time_s": round(position.seconds, 3),
                "epoch": position.epoch,
                "loss": pace.loss,
                "tokens_per_s": round(pace.tokens_per_s, 1),
                "lr": rate,
                "target_tokens": position.target_tokens,
            },
        )
        self.meter.reset()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGINT or SIGTERM ends the run after the current update; a second one ends it at once."""

        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop_signal is not None:
                raise KeyboardInterrupt
            self._stop_signal = number

        try:
            before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread: whoever runs us there handles signals
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015), or AdamW (Loshchilov & Hutter 2019), with decay on matrices alone."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind([group for group in groups if group["params"]], lr=settings.learning_rate, betas=settings.betas)
