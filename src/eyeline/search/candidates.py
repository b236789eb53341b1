"""The best continuations of each row. Knows log-probabilities and ids; no model, no beam."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eyeline.contracts import PAD
from eyeline.errors import RunError


def best_allowed(log_probs: Tensor, count: int, forbidden: Sequence[int], banned: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The `count` best ids of each row of `log_probs` [R, V] that are not `forbidden`, best first, equal ones by id.

    The rest is not renormalised: a score stays the model's own log-probability, as `score` computes it.

    Args:
        forbidden: ids that no row may have.
        banned: [R, b] on the CPU, ids that each row may not have, too; they are less than V, and PAD stands for none.

    Returns:
        values [R, C] float64 and ids [R, C] long, both on the CPU (what remains to be done is small, and float64 does not exist
        on every device); C is at least `count`, or V if that is less. What is forbidden or impossible has -inf and may stand
        anywhere in the row.

    Raises:
        RunError: the model answered with something that is not a log-probability (NaN or +inf).
    """
    if banned is not None:  # they may be any number, and are hidden in a copy
        log_probs = log_probs.scatter(-1, banned.to(log_probs.device), -torch.inf)
    if count == 1 and log_probs.is_cpu:
        likeliest = torch.from_numpy(log_probs.numpy().argmax(1))[:, None]  # a tenth of PyTorch's time; of equal ones the first
        if not bool(torch.isin(likeliest, torch.tensor(forbidden)).any()):
            values = log_probs.gather(1, likeliest).double()
            check_numbers(values)
            return values.clamp(max=0.0), likeliest
    # The allowed ones are surely among the best `count + len(forbidden)`, so `log_probs` need not be copied to be masked.
    values, ids = best(log_probs, min(log_probs.shape[-1], count + len(forbidden)))
    values, ids = values.cpu().double(), ids.cpu()
    check_numbers(values)
    hidden = torch.isin(ids, torch.tensor(forbidden))
    return values.clamp(max=0.0).masked_fill(hidden, -torch.inf), ids


def allowed(log_probs: Tensor, forbidden: Sequence[int], banned: Tensor | None = None) -> Tensor:
    """A copy of `log_probs` [R, X] with -inf for what is `forbidden`, or `banned` [R, b] of its row."""
    log_probs = log_probs.index_fill(-1, torch.tensor(forbidden, device=log_probs.device), -torch.inf)
    return log_probs if banned is None else log_probs.scatter_(-1, banned.to(log_probs.device), -torch.inf)


def with_wanted(
    values: Tensor, ids: Tensor, log_probs: Tensor, wanted: Tensor, forbidden: Sequence[int], banned: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`values` and `ids` [R, C] with those of `wanted` [R, w] behind them that are not among them: PAD is none, and what is
    forbidden stays so."""
    found = log_probs.gather(-1, wanted.to(log_probs.device)).cpu().double()
    check_numbers(found)
    out = torch.isin(wanted, torch.tensor([PAD, *forbidden]))
    out |= ((wanted[:, :, None] == ids[:, None]) & (values > -torch.inf)[:, None]).any(-1)
    if banned is not None:
        out |= (wanted[:, :, None] == banned[:, None]).any(-1)
    return torch.cat([values, found.clamp(max=0.0).masked_fill(out, -torch.inf)], 1), torch.cat([ids, wanted], 1)


def put_in_front(values: Tensor, ids: Tensor, log_probs: Tensor, only: Tensor) -> tuple[Tensor, Tensor]:
    """`values` and `ids` [R, C] in which the rows that may say one thing `only` [R], -1 for any, offer that and no other."""
    held = only >= 0
    found = log_probs.gather(-1, only.clamp(min=0).to(log_probs.device)[:, None]).cpu().double()
    check_numbers(found)
    values, ids = values.masked_fill(held[:, None], -torch.inf), ids.clone()
    values[held, 0], ids[held, 0] = found[held, 0].clamp(max=0.0), only[held]
    return values, ids


def check_numbers(log_probs: Tensor) -> None:
    """Raises RunError when a log-probability is NaN or +inf."""
    if not bool((log_probs < torch.inf).all()):
        raise RunError(
            "the model's log-probabilities are not numbers (NaN)", hint="its training diverged or its weights are damaged"
        )


LINES, WIDE = 8, 2048  # a row of so many values is looked at as a rectangle of so many lines


def best(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest values of each of `rows` [R, V], V at least that many, and their ids: best first, and equal ones by
    id, which `topk` leaves open. Of -inf any may be chosen."""
    values, ids = _topk(rows, min(count + 1, rows.shape[-1]))  # one more shows whether equal ones were left out
    border, beyond = values[:, count - 1], values[:, -1]
    values, ids = values[:, :count], ids[:, :count]
    tied = ((border == beyond) & (beyond > -torch.inf)).nonzero()[:, 0]
    if count < rows.shape[-1] and len(tied):
        ordered, order = rows[tied].sort(descending=True, stable=True)
        values, ids = values.index_copy(0, tied, ordered[:, :count]), ids.index_copy(0, tied, order[:, :count])
    return _equal_ones_by_id(values, ids)


def _topk(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk` of rows [R, V], which are laid in rectangles first: the best are in the columns whose maxima are the best. On a CPU
    that takes half the time for thousands of values, since maxima of columns are fast there."""
    rows, width = values.shape
    columns = width // LINES
    if width < WIDE or count > columns // 4 or not values.is_cpu:
        return values.topk(count)
    whole = LINES * columns
    rectangle = values[:, :whole].view(rows, LINES, columns)
    good = rectangle.amax(1).topk(count, sorted=False).indices  # [R, count]
    found = torch.cat([rectangle.gather(2, good[:, None].expand(-1, LINES, -1)).flatten(1), values[:, whole:]], 1)
    best, places = found.topk(count)
    line, column = places // count, places % count
    ids = line * columns + good.gather(1, column)
    return best, torch.where(places < LINES * count, ids, places - LINES * count + whole)


def _equal_ones_by_id(values: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    ids, order = ids.sort()
    values, order = values.gather(1, order).sort(descending=True, stable=True)
    return values, ids.gather(1, order)
