"""Which pairs come when: windows of batches by position, and how many there will be. Knows no model."""

from __future__ import annotations

import math
from itertools import takewhile

import torch

from eyeline.config import TrainingSettings
from eyeline.data.corpus import Batch, Corpus
from eyeline.data.loader import Loader
from eyeline.data.plan import Plan
from eyeline.data.rows import Indices
from eyeline.training.state import Position

LOOKED_AT = 1000  # batches among which one with the most tokens is looked for


class Windows:
    """The windows of a run: the batches of each update. A position alone decides what comes next, whatever was asked before.

    Args:
        corpus: training pairs.
        settings: the budget of a batch, the batches of a window, and the bounds.
        seed: with the epoch it decides the order.
        device: where batches go.
    """

    def __init__(self, corpus: Corpus, settings: TrainingSettings, seed: int, device: torch.device) -> None:
        self.corpus, self.settings, self.device = corpus, settings, device
        self._loader = Loader(corpus, settings.batch_tokens, seed, settings.workers)

    def at(self, position: Position) -> list[Batch]:
        """The batches of the next update: `accumulate` of one epoch, fewer at its end."""
        made = self._loader.window(position.epoch, position.batch, self.settings.accumulate)
        return [batch.to(self.device) for batch in made]

    def advance(self, position: Position, window: list[Batch]) -> None:
        """Moves `position` behind a window."""
        position.step += 1
        position.batch += len(window)
        position.target_tokens += sum(batch.target_tokens for batch in window)
        if not self._plan.has(position.epoch, position.batch):
            position.epoch, position.batch = position.epoch + 1, 0

    def total_steps(self) -> int | None:
        """Updates in the whole run; None when neither steps nor epochs bound it."""
        settings = self.settings
        if settings.steps is not None or settings.epochs is None:
            return settings.steps
        # Epochs do not always have equally many batches. Only a schedule that ends must know; a forecast takes the first one's.
        epochs = range(settings.epochs) if settings.ends else [0] * settings.epochs
        return sum(math.ceil(self._plan.count(epoch) / settings.accumulate) for epoch in epochs)

    def halves(self, batch: Batch) -> list[Batch]:
        """The two halves of a batch of at least two pairs."""
        rows = batch.rows.numpy()
        middle = (len(rows) + 1) // 2
        return [self._batch(rows[:middle], batch.epoch), self._batch(rows[middle:], batch.epoch)]

    def worst(self, epoch: int) -> list[Batch]:
        """Batches that need as much memory as any: the longest pairs together, and one of an epoch's with the most tokens."""
        plan = self._plan
        some = [plan.rows(epoch, number) for number in takewhile(lambda number: plan.has(epoch, number), range(LOOKED_AT))]
        fullest = max(some, key=lambda rows: len(rows) * sum(int(lengths.max()) for lengths in self.corpus.lengths_of(rows)))
        return [self._batch(plan.longest(), epoch), self._batch(fullest, epoch)]

    def close(self) -> None:
        """Ends the threads that make batches ahead."""
        self._loader.close()

    @property
    def _plan(self) -> Plan:
        return self._loader.plan

    def _batch(self, rows: Indices, epoch: int | None) -> Batch:
        return self.corpus.batch(rows, epoch).to(self.device)
