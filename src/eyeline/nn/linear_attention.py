"""Self-attention in linear time (Katharopoulos et al. 2020): exp(q·k) gives way to φ(q)·φ(k), and sums over keys are made once.

Takes the places of `SelfAttention` and `CausalSelfAttention`. Knows order only by what is added to its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu, pad

from eyeline.contracts import select
from eyeline.nn.positions import Unordered
from eyeline.nn.self_attention import BothWays, Causal

CHUNK = 32  # target positions whose scores are written out; between chunks only sums are handed on
LEAST = 1e-6  # a sum of φ(q)·φ(k) that is smaller counts as this: it would be a division by zero


def feature(vectors: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1 (equation 7): positive, and differentiable below zero."""
    return elu(vectors) + 1.0


def counted(values: Tensor) -> Tensor:
    """[..., E + 1]: values with a one beside each, so that numerator and denominator are one sum."""
    return pad(values, (0, 1), value=1.0)


def divided(sums: Tensor) -> Tensor:
    """[..., E] from weighted sums of `counted` values."""
    return sums[..., :-1] / sums[..., -1:].clamp(min=LEAST)


class LinearSelfAttention(BothWays):
    """φ(qᵢ)ᵀ Σⱼ φ(kⱼ) vⱼᵀ / φ(qᵢ)ᵀ Σⱼ φ(kⱼ) (equation 5). Dropout cannot act on weights that are never made."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__(size, heads, Unordered())

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        queries, keys, values = self.split(inputs, torch.arange(inputs.shape[1], device=inputs.device))
        shown = feature(keys).masked_fill(mask[:, None, :, None], 0.0)
        sums = shown.transpose(2, 3) @ counted(values)  # [B, H, E, E + 1]
        return self.join(divided(feature(queries) @ sums))

    def weights(self, inputs: Tensor, mask: Tensor) -> Tensor:
        queries, keys, _ = self.split(inputs, torch.arange(inputs.shape[1], device=inputs.device))
        scores = (feature(queries) @ feature(keys).transpose(2, 3)).masked_fill(mask[:, None, None], 0.0)
        return scores / scores.sum(-1, keepdim=True).clamp(min=LEAST)


@dataclass(frozen=True)
class Sums:
    """All that linear attention keeps of the past, however long."""

    totals: Tensor  # [R, H, E, E + 1]: Σ φ(kⱼ) vⱼᵀ, and in the last column Σ φ(kⱼ) (equations 18 and 19)

    def select(self, rows: Tensor) -> Sums:
        return select(self, rows)


class CausalLinearSelfAttention(Causal):
    """The same sums over the past alone (equations 9 to 12). The state has one size, however long the past.

    Many positions at once are worked through in chunks: inside a chunk scores are written out below the diagonal, and what
    is before it enters as sums. Time grows with T, and no sum is kept for every position.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__(size, heads, Unordered())

    def start(self, rows: int, like: Tensor) -> Sums:
        return Sums(like.new_zeros(rows, self.heads, self.width, self.width + 1))

    def forward(self, inputs: Tensor, past: Sums) -> tuple[Tensor, Sums]:
        length = inputs.shape[1]
        step = min(CHUNK, length)
        parts = self.split(inputs, torch.arange(length, device=inputs.device))
        made = (feature(parts[0]), feature(parts[1]), counted(parts[2]))
        queries, keys, values = (
            pad(part, (0, 0, 0, -length % step)).view(*part.shape[:2], -1, step, part.shape[-1]) for part in made
        )  # [R, H, n, step, E], values [R, H, n, step, E + 1]; what is padded adds zeros
        totals = torch.cat([past.totals[:, :, None], keys.transpose(3, 4) @ values], 2).cumsum(2)  # [R, H, n + 1, E, E + 1]
        inside = (queries @ keys.transpose(3, 4)).tril() @ values
        found = (queries @ totals[:, :, :-1] + inside).flatten(2, 3)[:, :, :length]
        return self.join(divided(found)), Sums(totals[:, :, -1])

    def weights(self, inputs: Tensor) -> Tensor:
        queries, keys, _ = self.split(inputs, torch.arange(inputs.shape[1], device=inputs.device))
        scores = (feature(queries) @ feature(keys).transpose(2, 3)).tril()
        return scores / scores.sum(-1, keepdim=True).clamp(min=LEAST)
