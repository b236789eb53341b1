"""Multi-head attention from rows of queries to sources: Vaswani et al. 2017, section 3.2. Knows heads and masks; not layers.

Shapes: query [R, T, D], states [N, S, Dk], mask [N, S] (True = hidden), output [R, T, D], weights [R, H, T, S]; E = D/H is the
width of a head. The K = R/N rows of one source lie together: they are K·T queries of it, and its keys are never repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from eyeline.contracts import Along, Rows
from eyeline.errors import ConfigError
from eyeline.nn.attention import masked_softmax
from eyeline.nn.dropout import Dropout
from eyeline.nn.unpadded import Unpadded
from eyeline.products import Linear


def split_heads(vectors: Tensor, heads: int, parts: int = 1, real: Unpadded | None = None) -> tuple[Tensor, ...]:
    """`parts` times [R, H, T, E] from [R, T, parts·H·E], or from [M, parts·H·E] of `real` positions alone."""
    if real is not None:
        return real.split_heads(vectors, parts, heads)
    return tuple(part.view(*part.shape[:-1], heads, -1).transpose(1, 2) for part in vectors.chunk(parts, -1))


def join_heads(vectors: Tensor, real: Unpadded | None = None) -> Tensor:
    """[R, T, H·E], or [M, H·E] of `real` positions alone, from [R, H, T, E]."""
    return vectors.transpose(1, 2).flatten(2) if real is None else real.join_heads(vectors)


def head_width(size: int, heads: int) -> int:
    """E, what each of `heads` heads has of `size`.

    Raises:
        ConfigError: when it is no whole number.
    """
    if size % heads:
        raise ConfigError(
            f"{heads} heads cannot share a width of {size}",
            f"model.heads={heads}",
            f"make model.size a multiple of the heads, such as {heads * max(1, round(size / heads))}",
        )
    return size // heads


def glorot(linear: nn.Linear, blocks: int = 1) -> nn.Linear:
    """Glorot uniform weights and zero biases; each of `blocks` maps that are stacked in one is drawn as if it stood alone."""
    for block in linear.weight.detach().chunk(blocks):
        nn.init.xavier_uniform_(block)
    nn.init.zeros_(linear.bias)
    return linear


def visible(mask: Tensor) -> Tensor:
    """Where attention may look, True = seen, from `mask` [..., S]: a row with everything hidden sees all of it, so that softmax
    runs over finite numbers. What such a row finds there must be zeros, or be looked at by nobody."""
    return ~mask | mask.all(-1, keepdim=True)


def added(seen: Tensor, kind: torch.dtype) -> Tensor:
    """`seen` (True = seen) as a number of type `kind` that is added to scores: 0, or -inf where nothing may be looked at."""
    return torch.zeros_like(seen, dtype=kind).masked_fill_(~seen, -torch.inf)


def heads_attend(
    queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor | None, dropout: Dropout, causal: bool = False
) -> Tensor:
    """[R, H, T, E]: dropout(softmax(Q Kᵀ / √E + bias)) V.

    PyTorch's own has no fast way with dropout on a CPU, and draws its mask an element at a time: there it is written out.

    Args:
        seen: broadcastable to [R, H, T, S]; True where attention may look, or a number that is added to the scores; None: all.
        causal: without `seen`, each of T queries sees its own and the keys before it.
    """
    drops = dropout.training and dropout.p > 0
    if not (drops and queries.is_cpu):
        rate = dropout.p if drops else 0.0
        return scaled_dot_product_attention(queries, keys, values, attn_mask=seen, is_causal=causal, dropout_p=rate)
    if causal:
        seen = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool, device=queries.device).tril()
    scores = _scores(queries, keys, seen)
    return dropout(scores.softmax(-1)) @ values  # type: ignore[no-any-return]


def _scores(queries: Tensor, keys: Tensor, seen: Tensor | None) -> Tensor:
    """[R, H, T, S]: Q Kᵀ / √E + bias, added by the product itself: a mask is no pass more over the scores or their gradients."""
    if seen is None:
        return queries * queries.shape[-1] ** -0.5 @ keys.transpose(2, 3)  # type: ignore[no-any-return]
    if seen.dtype == torch.bool:
        seen = added(seen, queries.dtype)
    rows, heads, length, width = queries.shape
    bias = seen.expand(rows, heads, *seen.shape[-2:]).flatten(0, 1)
    found = torch.baddbmm(bias, queries.flatten(0, 1), keys.flatten(0, 1).transpose(1, 2), alpha=width**-0.5)
    return found.view(rows, heads, length, -1)


@dataclass(frozen=True)
class HeadKeys(Rows):
    """What the heads need of a source, computed once."""

    keys: Annotated[Tensor, Along(2)]  # [N, H, S, E]
    values: Annotated[Tensor, Along(2)]  # [N, H, S, E], zero where hidden
    mask: Annotated[Tensor, Along(1, beyond=True)]  # [N, S], True = hidden

    @cached_property
    def seen(self) -> Tensor | None:
        """[N, 1, 1, S] where to look, as `heads_attend` wants it; None: everywhere. The steps of a source share it.

        In prediction on a CPU it is a number that is added: PyTorch makes one of a mask at each call.
        """
        seen = visible(self.mask)[:, None, None]
        if not self.mask.is_cpu or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return seen
        return None if bool(seen.all()) else added(seen, self.keys.dtype)


class MultiHeadAttention(nn.Module):
    """Concat(head₁ … head_H) W_O + b, headᵢ = softmax(Qᵢ Kᵢᵀ / √E) Vᵢ (section 3.2.2), with a bias in each map, as in PyTorch.

    An empty source answers with the bias alone, and with weights of zero.

    Args:
        size: width D of queries and output.
        key_size: width Dk of the states; `size` when None.
        dropout: on the weights, in training.
    """

    def __init__(self, size: int, heads: int, key_size: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.width = heads, head_width(size, heads)
        self.query = glorot(Linear(size, size))
        self.keys_and_values = glorot(Linear(size if key_size is None else key_size, 2 * size), blocks=2)
        self.output = glorot(Linear(size, size))
        self.dropout = Dropout(dropout)

    def remember(self, states: Tensor, mask: Tensor, real: Unpadded | None = None) -> HeadKeys:
        """Projects keys and values of a batch of sources, once. What is hidden is zeroed, so that not even NaN there can leak.

        Args:
            real: the positions that `mask` does not hide, where `states` are of these alone, [M, Dk].
        """
        hidden = mask[..., None]
        if real is None:
            projected = self.keys_and_values(states.masked_fill(hidden, 0.0)).masked_fill(hidden, 0.0)  # the bias, too
        else:
            projected = self.keys_and_values(states)
        keys, values = split_heads(projected, self.heads, 2, real)
        return HeadKeys(keys, values, mask)

    def forward(self, query: Tensor, keys: HeadKeys, real: Unpadded | None = None) -> Tensor:
        """[R, T, D] from `query` [R, T, D]: what each of its positions finds in its source.

        Args:
            real: where `query` and the result are [M, D], of one row a source and without padding, where these stand.
        """
        found = heads_attend(self._queries(query, keys, real), keys.keys, keys.values, keys.seen, self.dropout)  # [N, H, K·T, E]
        return self.output(join_heads(found, real).view(query.shape))  # type: ignore[no-any-return]

    def weights(self, query: Tensor, keys: HeadKeys) -> Tensor:
        """[R, H, T, S]: where each head looks from each position of `query` [R, T, D]. `forward` never makes them."""
        scores = self._queries(query, keys) @ keys.keys.transpose(2, 3) * self.width**-0.5
        weights = masked_softmax(scores, keys.mask[:, None, None])  # [N, H, K·T, S]
        sources, heads, _, columns = weights.shape
        return weights.view(sources, heads, -1, query.shape[1], columns).transpose(1, 2).flatten(0, 1)

    def _queries(self, query: Tensor, keys: HeadKeys, real: Unpadded | None = None) -> Tensor:
        """[N, H, K·T, E]: all queries of one source side by side."""
        projected = self.query(query)
        if real is None:
            projected = projected.view(keys.mask.shape[0], -1, self.heads * self.width)
        (queries,) = split_heads(projected, self.heads, real=real)
        return queries
