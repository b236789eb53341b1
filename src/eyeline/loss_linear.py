"""Likelihood under an output layer: log softmax(W f + b) in slices, the gradient made on the way forward. Knows tensors only.

Log-probabilities of a batch are the largest thing in training a small model. Here a slice of them is made, read while it is in
the cache, turned into its own gradient and multiplied into those of features and weights; nothing of it is kept or made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from eyeline.products import product, usual

LANES = 16  # slices are of multiples of this, both ways: a product into rows of an odd width takes a third longer on a CPU
LEAST_SHARE = 1e-30  # of smaller probabilities single precision has no exact logarithm


def linear_loss(
    weight: Tensor, bias: Tensor, features: Tensor, outputs: Tensor, target_mask: Tensor, label_smoothing: float, slice_size: int
) -> tuple[Tensor, Tensor]:
    """The objective and, without a gradient, the plain negative log-likelihood, summed over real positions.

    Args:
        weight: [V, D].
        bias: [V], finite.
        features: [B, T, D].
        outputs: [B, T] gold ids.
        target_mask: [B, T], True = hidden.
        slice_size: log-probabilities that stand in memory at a time.
    """
    places = (~target_mask).flatten().nonzero().squeeze(1)  # of the real positions, among all
    gold, rows = outputs.flatten()[places], max(1, slice_size // max(1, len(weight)))
    rows -= rows % LANES if rows > LANES else 0
    plan = _Plan(places, gold[:, None], label_smoothing, rows, torch.is_grad_enabled())
    return _LinearLoss.apply(plan, features.flatten(0, 1), weight, bias)  # type: ignore[no-untyped-call, no-any-return]


@dataclass(frozen=True)
class _Plan:
    places: Tensor  # [M] of the real positions
    gold: Tensor  # [M, 1]
    smoothing: float
    rows: int  # of the slices
    learning: bool


class _LinearLoss(torch.autograd.Function):
    """With p = softmax(W f + b), the gradient of W f + b is p - (1 - ε) on the gold symbol - ε / V on all: known once p is.

    The last is the same for all positions, and so taken from the sums at the end.
    """

    @staticmethod
    def forward(ctx: Any, plan: _Plan, features: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        V, thin, nll, uniform = len(weight), plan.smoothing / len(weight), features.new_zeros(()), features.new_zeros(())
        even, offset = pad(weight, (0, 0, 0, -V % LANES)), pad(bias, (0, -V % LANES), value=-torch.inf)
        of_features, of_weight, of_bias, mean = (torch.zeros_like(each) for each in (features, even, offset, weight[0]))
        if plan.smoothing:
            mean = weight.mean(0)
        by_onednn = usual(features, weight)
        for start in range(0, len(plan.places), plan.rows):
            chosen, gold = (each[start : start + plan.rows] for each in (plan.places, plan.gold))
            read = features.index_select(0, chosen)  # [m, D]
            full = by_onednn and len(read) == plan.rows  # of one number of rows: a kernel for each more would be kept
            logits = product(read, even, offset) if full else torch.addmm(offset, read, even.t())  # [m, V and what cannot be]
            of_gold = logits.gather(1, gold).squeeze(1)  # [m]
            shares = torch.softmax(logits, -1, out=logits)  # in their place: two slices would not stay in the cache
            cost = _cost(shares, gold, lambda rows, read=read: torch.addmm(offset, read[rows], even.t()))  # type: ignore[misc]
            nll += cost.sum()
            if plan.smoothing:  # Σ_v -log p(v) / V is log Σ exp less the mean of the logits
                uniform += (cost + of_gold - read @ mean - bias.mean()).sum()
            if plan.learning:
                shares.scatter_add_(1, gold, shares.new_full(gold.shape, plan.smoothing - 1.0))
                of_features.index_copy_(0, chosen, (shares @ even).sub_(mean, alpha=plan.smoothing))
                of_weight.addmm_(shares.t(), read)
                of_bias.addmv_(shares.t(), shares.new_ones(len(shares)))  # a sum, which takes half as long again
        if plan.learning and plan.smoothing:
            of_weight -= thin * features.index_select(0, plan.places).sum(0)
            of_bias -= thin * len(plan.places)
        ctx.save_for_backward(of_features, of_weight[:V], of_bias[:V])
        ctx.mark_non_differentiable(nll)
        objective = (1 - plan.smoothing) * nll + plan.smoothing * uniform if plan.smoothing else nll.clone()
        return objective, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(each * gradient for each in ctx.saved_tensors)


def _cost(shares: Tensor, gold: Tensor, logits_of: Callable[[Tensor], Tensor]) -> Tensor:
    """[m] -log of the `shares` [m, V] at the symbols `gold` [m, 1]; `logits_of` makes those of a few rows again."""
    share = shares.gather(1, gold).squeeze(1)
    cost, rare = -share.log(), share < LEAST_SHARE
    if bool(rare.any()):
        logits = logits_of(rare)
        cost[rare] = logits.logsumexp(1) - logits.gather(1, gold[rare]).squeeze(1)
    return cost
