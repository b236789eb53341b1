"""Attention: scores, their distribution over what is not hidden, the weighted sum. Knows scores and masks; not decoders.

Shapes: query [R, T, Dq], states [N, S, Dk], mask [N, S] (True = hidden), context [R, T, Dk], weights [R, T, S]; the K = R/N
rows of one source lie together. A query that may look at nothing gets zero weights, a zero context and finite gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import torch
from torch import Tensor, nn

from eyeline.contracts import Along, Rows
from eyeline.nn.scores import (
    AdditiveScore,
    ConcatScore,
    DotScore,
    Form,
    GeneralScore,
    ProjectedDotScore,
    ScaledDotScore,
    Score,
)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last dimension where `mask` (broadcastable, True = hidden) is not; hidden places get exactly zero.

    A row with everything hidden gets zeros and not NaN: softmax runs over finite numbers, and the zeros are put in after it.
    """
    if mask is None:
        return scores.softmax(-1)
    scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1).masked_fill(mask, 0.0)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √d) V: Vaswani et al. 2017, equation 1, with its weights.

    Args:
        query: [B, T, D].
        key: [B, S, D].
        value: [B, S, Dv].
        mask: [B, S], [B, T, S] or None; True = hidden.

    Returns:
        output [B, T, Dv] and weights [B, T, S].
    """
    if mask is not None and mask.dim() == 2:
        mask = mask[:, None]
    if mask is not None:
        everywhere = mask.all(1)[..., None]  # what no query may see must not leak in as 0 × NaN
        key, value = key.masked_fill(everywhere, 0.0), value.masked_fill(everywhere, 0.0)
    weights = masked_softmax(query @ key.transpose(1, 2) / math.sqrt(query.shape[-1]), mask)
    return weights @ value, weights


@dataclass(frozen=True)
class Keys(Rows):
    """What attention needs of a source, computed once."""

    projected: Annotated[Tensor, Along(1)]  # [N, S, A]
    values: Annotated[Tensor, Along(1)]  # [N, S, Dk], zero where hidden
    mask: Annotated[Tensor, Along(1, beyond=True)]  # [N, S], True = hidden


class Looking(Protocol):
    """What decoders ask of attention; see `Attention` for what each answers."""

    @property
    def form(self) -> Form | None: ...

    def remember(self, states: Tensor, mask: Tensor) -> Any: ...

    def start(self, keys: Any) -> Any: ...

    def attend(self, query: Tensor, keys: Any, looked: Any) -> tuple[Tensor, Tensor, Any]: ...


class Attention(nn.Module):
    """A score function made into attention.

    Decoders call `attend`, which hands on whatever must be remembered from look to look: nothing here, where each look is apart.
    """

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    @property
    def form(self) -> Form | None:
        """How it scores, where each look is apart and at all of its source: nothing but the score tells it from others."""
        return self.score.form

    def remember(self, states: Tensor, mask: Tensor) -> Keys:
        """Projects the keys of a batch of sources, once. What is hidden is zeroed, so that not even NaN there can leak."""
        values = states.masked_fill(mask[..., None], 0.0)
        return Keys(self.score.project(values), values, mask)

    def start(self, keys: Keys) -> Any:
        """What is remembered before the first look, one row a source: a value with `select`, or None."""
        return None

    def attend(self, query: Tensor, keys: Keys, looked: Any) -> tuple[Tensor, Tensor, Any]:
        """context [R, T, Dk], weights [R, T, S] and what is remembered after these T looks, one after the other."""
        return *self.look(query, keys), None

    def look(self, query: Tensor, keys: Keys) -> tuple[Tensor, Tensor]:
        """context [R, T, Dk] and weights [R, T, S] of `query` [R, T, Dq]; rows of one source share its keys."""
        rows, length = query.shape[:2]
        folded = query.reshape(keys.mask.shape[0], -1, query.shape[-1])  # [N, K·T, Dq]
        weights = masked_softmax(self.score(folded, keys.projected), keys.mask[:, None])  # [N, K·T, S]
        context = weights @ keys.values  # [N, K·T, Dk]
        return context.view(rows, length, -1), weights.view(rows, length, -1)

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Context and weights, [B, Dk] and [B, S] for one query a source [B, Dq], or [B, T, Dk] and [B, T, S] for [B, T, Dq]."""
        if mask is None:
            mask = torch.zeros(keys.shape[:2], dtype=torch.bool, device=keys.device)
        context, weights = self.look(query if query.dim() == 3 else query[:, None], self.remember(keys, mask))
        return (context, weights) if query.dim() == 3 else (context[:, 0], weights[:, 0])


class AdditiveAttention(Attention):
    """Attention with the additive score (Bahdanau et al. 2015); `size` defaults to the query's width."""

    def __init__(self, query_size: int, key_size: int, size: int | None = None) -> None:
        super().__init__(AdditiveScore(query_size, key_size, size or query_size))


class ConcatAttention(Attention):
    """Attention with the concat score (Luong et al. 2015); `size` defaults to the query's width."""

    def __init__(self, query_size: int, key_size: int, size: int | None = None) -> None:
        super().__init__(ConcatScore(query_size, key_size, size or query_size))


class DotAttention(Attention):
    """Attention with the dot score (Luong et al. 2015); both widths must be equal."""

    def __init__(self, query_size: int, key_size: int | None = None) -> None:
        super().__init__(DotScore(query_size, query_size if key_size is None else key_size))


class GeneralAttention(Attention):
    """Attention with the general score (Luong et al. 2015)."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(GeneralScore(query_size, key_size))


class ScaledDotAttention(Attention):
    """Attention with the scaled dot score (Vaswani et al. 2017); both widths must be equal."""

    def __init__(self, query_size: int, key_size: int | None = None) -> None:
        super().__init__(ScaledDotScore(query_size, query_size if key_size is None else key_size))


class ProjectedDotAttention(Attention):
    """Attention with the general score in two factors and scaled; `rank` defaults to the query's width."""

    def __init__(self, query_size: int, key_size: int, rank: int | None = None) -> None:
        super().__init__(ProjectedDotScore(query_size, key_size, rank or query_size))
