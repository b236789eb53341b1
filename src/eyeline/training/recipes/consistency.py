"""R-Drop: two passes with different dropout should say the same (Liang et al. 2021). Knows heads, steps and masks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eyeline.contracts import Source, Step
from eyeline.data.corpus import Batch
from eyeline.training.recipes.slices import row_slices


def twice(batch: Batch) -> Batch:
    """A batch of 2B rows: the B pairs, and behind them the same again."""
    rows = torch.arange(len(batch.rows), device=batch.inputs.device).repeat(2)
    return replace(
        batch,
        source=batch.source.select(rows),
        inputs=batch.inputs[rows],
        outputs=batch.outputs[rows],
        target_mask=batch.target_mask[rows],
        rows=batch.rows.repeat(2),
        target_tokens=2 * batch.target_tokens,
        links=None if batch.links is None else batch.links[rows],
    )


def divergence(head: Any, step: Step, source: Source, target_mask: Tensor) -> Tensor:
    """Σ over real positions of ½ (KL(p‖q) + KL(q‖p)) = ½ Σ_w (p_w - q_w)(log p_w - log q_w): Liang et al. 2021, equation 2.

    `step`, `source` and `target_mask` have 2B rows, as `twice` makes them; p is said in the first B, q in the others. A symbol
    that is impossible in either is left out. Log-probabilities are made again in the backward pass.

    Returns:
        [] summed over the real target positions of B pairs.
    """
    B, T = target_mask.shape[0] // 2, target_mask.shape[1]
    total = step.features.new_zeros(())
    for rows in row_slices(head, step, source, B, T):
        total = total + checkpoint(_part, head, step, source, target_mask, rows, use_reentrant=False)
    return total


def _part(head: Any, step: Step, source: Source, target_mask: Tensor, rows: slice) -> Tensor:
    B = target_mask.shape[0] // 2
    below = source.select(torch.arange(rows.start, rows.stop, device=source.ids.device))
    first, second = head(step.at(rows), below), head(step.at(slice(B + rows.start, B + rows.stop)), below)  # [b, T, X]
    left_out = first.isneginf() | second.isneginf() | target_mask[rows, :, None]
    p, q = first.masked_fill(left_out, 0.0), second.masked_fill(left_out, 0.0)
    result: Tensor = ((p.exp() - q.exp()) * (p - q)).sum() / 2
    return result
