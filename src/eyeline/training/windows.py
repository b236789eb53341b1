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

    A window has `accumulate` batches for each process that trains, and each takes its share: every N-th of N processes.

    Args:
        corpus: training pairs.
        settings: the budget of a batch, the batches of a window, and the bounds.
        seed: with the epoch it decides the order.
        device: where batches go.
        share: (rank, processes).
    """

    def __init__(
        self, corpus: Corpus, settings: TrainingSettings, seed: int, device: torch.device, share: tuple[int, int] = (0, 1)
    ) -> None:
        self.corpus, self.settings, self.device = corpus, settings, device
        self._most = settings.accumulate * share[1]  # batches of a window
        self._loader = Loader(corpus, settings.batch_tokens, seed, settings.workers, share)

    def at(self, position: Position) -> list[Batch]:
        """This process's batches of the next update: `accumulate` of one epoch, fewer at its end, where it may have none."""
        made = self._loader.window(position.epoch, position.batch, self._most)
        return [batch.to(self.device) for batch in made]

    def advance(self, position: Position, tokens: int) -> None:
        """Moves `position` behind a window, which had so many real target tokens in all."""
        position.step += 1
        position.batch += self._most
        position.target_tokens += tokens
        if not self._plan.has(position.epoch, position.batch):
            position.epoch, position.batch = position.epoch + 1, 0

    def total_steps(self) -> int | None:
        """Updates in the whole run; None when neither steps nor epochs bound it."""
        settings = self.settings
        if settings.steps is not None or settings.epochs is None:
            return settings.steps
        # Epochs do not always have equally many batches. Only a schedule that ends must know; a forecast takes the first one's.
        epochs = range(settings.epochs) if settings.ends else [0] * settings.epochs
        return sum(math.ceil(self._plan.count(epoch) / self._most) for epoch in epochs)

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
