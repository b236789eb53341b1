"""Self-attention in linear time (Katharopoulos et al. 2020): exp(q·k) gives way to φ(q)·φ(k), and sums over keys are made once.

Takes the places of `SelfAttention` and `CausalSelfAttention`. Knows order only by what is added to its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu, pad

from eyeline.contracts import Rows
from eyeline.nn.positions import Unordered
from eyeline.nn.self_attention import BothWays, Causal

CHUNK = 32  # target positions whose scores are written out; between chunks only sums are handed on
LEAST = 1e-6  # a sum of φ(q)·φ(k) that is smaller counts as this: it would be a division by zero


def feature(vectors: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1 (equation 7): positive, and differentiable below zero. In single precision at least, as all sums here."""
    return elu(vectors.to(torch.promote_types(vectors.dtype, torch.float32))) + 1.0


def counted(values: Tensor, like: Tensor) -> Tensor:
    """[..., E + 1]: values with a one beside each, so that numerator and denominator are one sum; of the type of `like`."""
    return pad(values.to(like.dtype), (0, 1), value=1.0)


def divided(sums: Tensor) -> Tensor:
    """[..., E] from weighted sums of `counted` values."""
    return sums[..., :-1] / sums[..., -1:].clamp(min=LEAST)


class LinearSelfAttention(BothWays):
    """φ(qᵢ)ᵀ Σⱼ φ(kⱼ) vⱼᵀ / φ(qᵢ)ᵀ Σⱼ φ(kⱼ) (equation 5). Dropout cannot act on weights that are never made."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__(size, heads, Unordered())

    def look(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        with torch.autocast(queries.device.type, enabled=False):
            shown = feature(keys).masked_fill(mask[:, None, :, None], 0.0)
            sums = shown.transpose(2, 3) @ counted(values, shown)  # [B, H, E, E + 1]
            found = divided(feature(queries) @ sums)
        return found.to(values.dtype)

    def weights(self, inputs: Tensor, mask: Tensor) -> Tensor:
        queries, keys, _ = self.split(inputs, torch.arange(inputs.shape[1], device=inputs.device))
        return shares((feature(queries) @ feature(keys).transpose(2, 3)).masked_fill(mask[:, None, None], 0.0))


def shares(scores: Tensor) -> Tensor:
    """[..., T, S] positive scores, each row divided by its sum."""
    return scores / scores.sum(-1, keepdim=True).clamp(min=LEAST)


@dataclass(frozen=True)
class Sums(Rows):
    """All that linear attention keeps of the past, however long."""

    totals: Tensor  # [R, H, E, E + 1]: Σ φ(kⱼ) vⱼᵀ, and in the last column Σ φ(kⱼ) (equations 18 and 19)

    @property
    def length(self) -> int:
        """Nothing here is told its position, and so none is counted."""
        return 0

    @property
    def rows(self) -> int:
        return len(self.totals)


class CausalLinearSelfAttention(Causal):
    """The same sums over the past alone (equations 9 to 12). The state has one size, however long the past.

    Many positions at once are worked through in chunks: inside a chunk scores are written out below the diagonal, and what
    is before it enters as sums. Time grows with T, and no sum is kept for every position.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__(size, heads, Unordered())

    def start(self, rows: int, like: Tensor) -> Sums:
        kind = torch.promote_types(like.dtype, torch.float32)
        return Sums(like.new_zeros(rows, self.heads, self.width, self.width + 1, dtype=kind))

    def look(self, queries: Tensor, keys: Tensor, values: Tensor, past: Sums, together: int) -> tuple[Tensor, Sums]:
        with torch.autocast(queries.device.type, enabled=False):
            sums, totals = sums_before(feature(queries), feature(keys), counted(values, past.totals), past.totals)
        return divided(sums[:, :, : queries.shape[2]]).to(values.dtype), Sums(totals)

    def weights(self, inputs: Tensor) -> Tensor:
        queries, keys, _ = self.split(inputs, torch.arange(inputs.shape[1], device=inputs.device))
        return shares((feature(queries) @ feature(keys).transpose(2, 3)).tril())


def sums_before(queries: Tensor, keys: Tensor, values: Tensor, totals: Tensor) -> tuple[Tensor, Tensor]:
    """qᵢᵀ (totals + Σ_{j≤i} kⱼ vⱼᵀ) [R, H, ≥ T, V], and the totals after the last, from [R, H, T, E] and values [R, H, T, V]."""
    step = min(CHUNK, queries.shape[2])
    queries, keys, values = (
        pad(each, (0, 0, 0, -each.shape[2] % step)).view(*each.shape[:2], -1, step, each.shape[-1])
        for each in (queries, keys, values)
    )  # [R, H, n, step, ...]; what is padded adds zeros
    before = torch.cat([totals[:, :, None], keys.transpose(3, 4) @ values], 2).cumsum(2)  # [R, H, n + 1, E, V]
    inside = (queries @ keys.transpose(3, 4)).tril() @ values
    return (queries @ before[:, :, :-1] + inside).flatten(2, 3), before[:, :, -1]
