"""Scheduled sampling: a decoder is fed some of its own symbols in training, as it will be in use. Knows batches and models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Step
from eyeline.data.corpus import Batch
from eyeline.training.recipes.slices import row_slices


@dataclass(frozen=True)
class ScheduledSampling:
    """Replaces a share of the decoder's inputs by symbols drawn from the model (Bengio et al. 2015, section 2.4).

    They are drawn for all positions at once, by a pass without gradients that is fed the gold symbols, so that every architecture
    is trained as parallel as it is (Mihaylova & Martins 2019, section 3; Duckworth et al. 2019, with one pass). Bengio et al.
    draw each after those that were drawn before it. What ends an output is never fed.

    Where outputs are distinct, as positions that may be pointed at once, a symbol that was fed before its time is impossible when
    it should be said: such positions cost nothing.

    Args:
        share: of the inputs that are replaced.
        steps: updates over which the share rises evenly from zero.
    """

    share: float
    steps: int

    def __call__(self, model: Any, batch: Batch, number: int) -> Batch:
        """The batch as update `number`, from 1, is fed it."""
        share = self.share * (min(1.0, number / self.steps) if self.steps else 1.0)
        if batch.inputs.shape[1] < 2 or not share:
            return batch
        with torch.no_grad():
            step = model(batch.source, batch.inputs)
            drawn, distinct = _draw(model.head, step, batch)
            chosen = torch.rand(drawn[:, 1:].shape, device=drawn.device) < share
            own = drawn[:, :-1]  # what is said at a position is read at the next
            chosen &= ~((own == PAD) | (own == BEGIN) | (own == END) | batch.target_mask[:, 1:])
            inputs = torch.cat([batch.inputs[:, :1], torch.where(chosen, own, batch.inputs[:, 1:])], 1)
            early = (inputs[:, None] == batch.outputs[..., None]).tril().any(-1) & distinct[:, None]  # [B, T]
        return replace(batch, inputs=inputs, target_mask=batch.target_mask | early)


def _draw(head: Any, step: Step, batch: Batch) -> tuple[Tensor, Tensor]:
    """[B, T] a symbol from the distribution at each position; [B] True where what was said cannot be said again."""
    B, T = batch.outputs.shape
    drawn, distinct = torch.empty_like(batch.outputs), torch.zeros(B, dtype=torch.bool, device=batch.outputs.device)
    for rows in row_slices(head, step, batch.source, B, T):
        index = torch.arange(rows.start, rows.stop, device=drawn.device)
        log_probs = head(step.at(rows), batch.source.select(index))  # [b, T, X]
        waits = torch.empty_like(log_probs).exponential_()  # the first of X clocks with rates p_w rings at w with probability p_w
        drawn[rows] = (log_probs.exp() / waits).argmax(-1)
        again = log_probs[:, 1:].gather(-1, batch.outputs[rows, :-1, None])[..., 0]
        distinct[rows] = (again.isneginf() & ~batch.target_mask[rows, 1:]).any(1)
    return drawn, distinct
