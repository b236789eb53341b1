"""The best continuations of each row. Knows log-probabilities and ids; no model, no beam."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eyeline.errors import RunError


def best_allowed(
    log_probs: Tensor, count: int, forbidden: Sequence[int], repeating: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The `count` best ids of each row of `log_probs` [R, V] that are not `forbidden`, best first, equal ones by id.

    The rest is not renormalised: a score stays the model's own log-probability, as `score` computes it.

    Args:
        forbidden: ids that no row may have.
        repeating: [R, …] on the CPU, ids that each row may not have, too; they are less than V, and PAD stands for none.

    Returns:
        values [R, C] float64 and ids [R, C] long, both on the CPU (what remains to be done is small, and float64 does not exist
        on every device); C is `count + len(forbidden)` or V if that is less. What is forbidden or impossible has -inf and may
        stand anywhere in the row.

    Raises:
        RunError: the model answered with something that is not a log-probability (NaN or +inf).
    """
    if repeating is not None:  # they may be any number, and are hidden in a copy
        log_probs = log_probs.scatter(-1, repeating.to(log_probs.device), -torch.inf)
    # The allowed ones are surely among the best `count + len(forbidden)`, so `log_probs` need not be copied to be masked.
    values, ids = _top(log_probs, min(log_probs.shape[-1], count + len(forbidden)))
    values, ids = values.cpu().double(), ids.cpu()
    check_numbers(values)
    values, ids = _equal_ones_by_id(values, ids)
    hidden = torch.isin(ids, torch.tensor(forbidden))
    return values.clamp(max=0.0).masked_fill(hidden, -torch.inf), ids


def check_numbers(log_probs: Tensor) -> None:
    """Raises RunError when a log-probability is NaN or +inf."""
    if not bool((log_probs < torch.inf).all()):
        raise RunError(
            "the model's log-probabilities are not numbers (NaN)", hint="its training diverged or its weights are damaged"
        )


def _top(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk`, with the choice among equal values at its border made by id, which `topk` leaves open."""
    values, ids = log_probs.topk(min(count + 1, log_probs.shape[-1]))  # one more shows whether equal ones were left out
    border, beyond = values[:, count - 1], values[:, -1]
    values, ids = values[:, :count], ids[:, :count]
    tied = ((border == beyond) & (beyond > -torch.inf)).nonzero()[:, 0]
    if count < log_probs.shape[-1] and len(tied):
        ordered, order = log_probs[tied].sort(descending=True, stable=True)
        values, ids = values.index_copy(0, tied, ordered[:, :count]), ids.index_copy(0, tied, order[:, :count])
    return values, ids


def _equal_ones_by_id(values: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    ids, order = ids.sort()
    values, order = values.gather(1, order).sort(descending=True, stable=True)
    return values, ids.gather(1, order)
