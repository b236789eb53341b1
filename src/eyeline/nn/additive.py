"""Additive scores whose memory is spent once: vᵀ tanh(q_t + k_s) for every query and key. Knows tensors; no parameters, no masks.

On the way to its T × S scores the formula goes through T × S × A numbers, and autograd would keep them all for the backward pass.
Here they stand in memory one slice at a time, and the backward pass makes them again: what is kept are queries, keys and v.

Making them twice costs less than keeping them. PyTorch's sigmoid being several times faster than its tanh on a CPU, a slice holds
tanh(x) / 2 = sigmoid(2x) − ½, which is as exact as a sum of A such terms can show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

SLICE = 2**20  # numbers in a slice: 4 MB of single precision, few enough to stay in the cache from one operation to the next
SMALL = 2**16  # numbers in all for which the plain formula is faster, and what it keeps is not worth sparing


def additive_scores(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """vᵀ tanh(q + k): [N, T, S] from query [N, T, A], keys [N, S, A] and vector [A], both sides projected already.

    Beyond `SMALL` it needs O(N (T + S) A) of memory beside its result, forwards and backwards.
    """
    if query.numel() * keys.shape[1] <= SMALL:
        return torch.tanh(query[:, :, None] + keys[:, None]) @ vector
    return _AdditiveScores.apply(query, keys, vector)  # type: ignore[no-untyped-call, no-any-return]


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(query, keys, vector)
        scores = query.new_empty(*query.shape[:2], keys.shape[1])
        twice = 2 * vector.to(_precision(query))
        for rows, looks, halves in _slices(query, keys):
            scores[rows, looks] = halves @ twice
        return scores

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """With h = tanh(q_t + k_s) / 2: ∂v = 2 Σ g h, ∂q_t = 4 v ∘ Σ_s g (¼ − h²), ∂k_s = 4 v ∘ Σ_t g (¼ − h²)."""
        query, keys, vector = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again: plainly, and with all the memory that it takes
            mixed, weight = torch.tanh(query[:, :, None] + keys[:, None]), gradient[..., None]
            slope = weight * (1 - mixed**2)
            return vector * slope.sum(2), vector * slope.sum(1), (weight * mixed).sum((0, 1, 2))
        kind = _precision(query)
        of_query, of_keys, of_vector = (torch.zeros_like(tensor, dtype=kind) for tensor in (query, keys, vector))
        quarter, four = of_query.new_full((), 0.25), 4 * vector.to(kind)
        for rows, looks, halves in _slices(query, keys):
            given = gradient[rows, looks].to(kind)  # [n, t, S]
            of_vector.addmv_(halves.flatten(0, 2).T, given.reshape(-1), alpha=2)
            torch.addcmul(quarter, halves, halves, value=-1, out=halves).mul_(given[..., None])
            torch.sum(halves, 2, out=of_query[rows, looks])
            of_keys[rows].add_(halves.sum(1))
        return of_query.mul_(four).to(query.dtype), of_keys.mul_(four).to(keys.dtype), of_vector.to(vector.dtype)


def _precision(query: Tensor) -> torch.dtype:
    return torch.promote_types(query.dtype, torch.float32)


def _slices(query: Tensor, keys: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """(rows of N, looks of T, tanh(q + k) / 2 there: [n, t, S, A], overwritten by the next slice), over all of N and T."""
    (N, T, A), S, kind = query.shape, keys.shape[1], _precision(query)
    most = SLICE if T > 1 else SLICE // 8  # large blocks, taken and given back step after step, would tear holes in the heap
    looks = max(1, min(T, most // max(1, S * A)))
    rows = max(1, min(N, most // max(1, looks * S * A)))
    buffer = torch.empty(rows * looks * S * A, dtype=kind, device=query.device)
    for row in range(0, N, rows):
        some, twice = keys[row : row + rows, None].to(kind), 2 * query[row : row + rows, :, None].to(kind)
        for look in range(0, T, looks):
            part = twice[:, look : look + looks]  # [n, t, 1, A]
            halves = buffer[: part.numel() * S].view(*part.shape[:2], S, A)
            torch.add(part, some, alpha=2, out=halves).sigmoid_().sub_(0.5)
            yield slice(row, row + rows), slice(look, look + looks), halves
