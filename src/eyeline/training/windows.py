"""Which pairs come when: windows of batches by position, and how many there will be. Knows no model."""

from __future__ import annotations

import math

import numpy as np
import torch

from eyeline.config import TrainingSettings
from eyeline.data.batches import Indices, epoch_batches, sequential_batches
from eyeline.data.corpus import Batch, Corpus
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
        self.corpus, self.settings, self.seed, self.device = corpus, settings, seed, device
        self._epoch: tuple[int, list[Indices]] | None = None

    def at(self, position: Position) -> list[Batch]:
        """The batches of the next update: `accumulate` of one epoch, fewer at its end."""
        order = self._batches(position.epoch)
        return [self._batch(rows) for rows in order[position.batch : position.batch + self.settings.accumulate]]

    def advance(self, position: Position, window: list[Batch]) -> None:
        """Moves `position` behind a window."""
        position.step += 1
        position.batch += len(window)
        position.target_tokens += sum(batch.target_tokens for batch in window)
        if position.batch >= len(self._batches(position.epoch)):
            position.epoch, position.batch = position.epoch + 1, 0

    def total_steps(self) -> int | None:
        """Updates in the whole run; None when neither steps nor epochs bound it."""
        settings = self.settings
        if settings.steps is not None or settings.epochs is None:
            return settings.steps
        # Epochs do not always have equally many batches. Only a schedule that ends must know; a forecast takes the first one's.
        epochs = range(settings.epochs) if settings.ends else [0] * settings.epochs
        return sum(math.ceil(len(self._batches(epoch)) / settings.accumulate) for epoch in epochs)

    def halves(self, batch: Batch) -> list[Batch]:
        """The two halves of a batch of at least two pairs."""
        rows = batch.rows.numpy()
        middle = (len(rows) + 1) // 2
        return [self._batch(rows[:middle]), self._batch(rows[middle:])]

    def worst(self, epoch: int) -> list[Batch]:
        """Batches that need as much memory as any: the longest pairs together, and one of an epoch's with the most tokens."""
        S, T = self.corpus.source_lengths, self.corpus.target_lengths
        longest = sequential_batches(np.maximum(S, T), self.settings.batch_tokens)[0]
        some = self._batches(epoch)[:LOOKED_AT]
        fullest = max(some, key=lambda rows: len(rows) * int(S[rows].max() + T[rows].max()))
        return [self._batch(longest), self._batch(fullest)]

    def _batches(self, epoch: int) -> list[Indices]:
        """The batches of an epoch, as indices: a pure function of seed and epoch."""
        if self._epoch is None or self._epoch[0] != epoch:
            lengths = self.corpus.source_lengths, self.corpus.target_lengths
            self._epoch = epoch, epoch_batches(*lengths, self.settings.batch_tokens, self.seed, epoch)
        return self._epoch[1]

    def _batch(self, rows: Indices) -> Batch:
        return self.corpus.batch(rows).to(self.device)
