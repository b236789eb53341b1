"""Self-attention over everything, to both sides in an encoder, backwards with a cache in a decoder. Knows no layers.

Two parts of one kind make a Transformer's self-attention; whatever keeps the two interfaces can stand in their place:
`SelfAttention` (mask in, vectors out) and `CausalSelfAttention` (state in, state out). Shapes: inputs [R, T, D], or [M, D] where
padding is left out, weights [R, H, T, S], cached keys and values [R, H, P, E] for P past positions; mask [R, T] True = hidden;
E = D/H.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.nn.attention import masked_softmax
from eyeline.nn.beam_cache import BeamCache
from eyeline.nn.cache import Cache
from eyeline.nn.dropout import Dropout
from eyeline.nn.multihead import glorot, head_width, heads_attend, join_heads, split_heads, visible
from eyeline.nn.positions import Order
from eyeline.nn.side_by_side import SideBySide
from eyeline.nn.unpadded import Unpadded
from eyeline.products import Linear


class Heads(nn.Module):
    """Queries, keys and values of each head by one product, and the way back.

    Args:
        order: how queries and keys are told their positions.
        dropout: on the weights, in training.
    """

    def __init__(self, size: int, heads: int, order: Order, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.width, self.order = heads, head_width(size, heads), order
        self.inward = glorot(Linear(size, 3 * size), blocks=3)
        self.outward = glorot(Linear(size, size))
        self.dropout = Dropout(dropout)

    def split(self, inputs: Tensor, places: Tensor, real: Unpadded | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [R, H, T, E] of `inputs` [R, T, D] at positions `places` [T] or [R, 1, T], or of `real` ones
        [M, D]."""
        queries, keys, values = split_heads(self.inward(inputs), self.heads, 3, real)
        return self.order.turn(queries, places), self.order.turn(keys, places), values

    def join(self, found: Tensor, real: Unpadded | None = None) -> Tensor:
        """[R, T, D], or of `real` positions [M, D], from [R, H, T, E]."""
        return self.outward(join_heads(found, real))  # type: ignore[no-any-return]

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor, bias: Tensor | None) -> Tensor:
        """[R, H, T, E]: softmax(Q Kᵀ / √E + bias) V where `seen` (broadcastable to [R, H, T, S]), of which no row is empty."""
        if bias is not None:
            seen = bias.masked_fill(~seen, -torch.inf)
        return heads_attend(queries, keys, values, seen, self.dropout)

    def distribution(self, queries: Tensor, keys: Tensor, hidden: Tensor, bias: Tensor | None) -> Tensor:
        """[R, H, T, S], the weights of `attend` written out; zero where `hidden`."""
        scores = queries @ keys.transpose(2, 3) * self.width**-0.5
        return masked_softmax(scores if bias is None else scores + bias, hidden)


class BothWays(Heads, ABC):
    """Self-attention of an encoder."""

    def forward(self, inputs: Tensor, mask: Tensor, real: Unpadded | None = None) -> Tensor:
        """[B, S, D] from `inputs` [B, S, D]; what is hidden is looked at by nobody, and what it says itself means nothing.

        Args:
            real: the positions that `mask` does not hide, where `inputs` and the result are theirs alone, [M, D].
        """
        places = torch.arange(mask.shape[1], device=inputs.device)
        return self.join(self.look(*self.split(inputs, places, real), mask), real)

    @abstractmethod
    def look(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """[B, H, S, E]: what each of the queries [B, H, S, E] finds."""

    @abstractmethod
    def weights(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """[B, H, S, S]: where each position looks. `forward` never makes them."""


class Causal(Heads, ABC):
    """Self-attention of a decoder: a position sees itself and what is before it."""

    def forward(self, inputs: Tensor, past: Any, together: int = 1, real: Unpadded | None = None) -> tuple[Tensor, Any]:
        """[R, T, D] from `inputs` [R, T, D], the T positions that follow on `past`, and the state after them.

        Args:
            together: how many rows are hypotheses of one source and lie together; it changes nothing but the time.
            real: where `inputs` and the result are [M, D], without the padding of a batch, where these stand in it.
        """
        length = inputs.shape[1] if real is None else real.length
        if isinstance(past, SideBySide):
            return self._side_by_side(inputs, past, together)
        places = torch.arange(past.length, past.length + length, device=inputs.device)
        found, after = self.look(*self.split(inputs, places, real), past, together)
        return self.join(found, real), after

    def _side_by_side(self, inputs: Tensor, past: SideBySide, together: int) -> tuple[Tensor, SideBySide]:
        """The same for rows that are at different positions: projected as one, they look each at their own past."""
        vectors = self.split(inputs, past.places(inputs.shape[1], inputs.device))
        found, after = past.each(partial(self.look, together=together), *vectors)
        return self.join(found), after

    @abstractmethod
    def start(self, rows: int, like: Tensor) -> Any:
        """The state before the first position: a value with `rows`, a `length`, `select` and `joined`, of the device and type of
        `like`."""

    @abstractmethod
    def look(self, queries: Tensor, keys: Tensor, values: Tensor, past: Any, together: int) -> tuple[Tensor, Any]:
        """[R, H, T, E] what each of the queries [R, H, T, E] finds, and the state after the last."""

    @abstractmethod
    def weights(self, inputs: Tensor) -> Tensor:
        """[R, H, T, T]: where each of the first T positions looks. `forward` never makes them."""


class SelfAttention(BothWays):
    """Every position looks at every other (Vaswani et al. 2017, section 3.2.3)."""

    def look(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(mask.shape[1], device=mask.device)
        bias = self.order.bias(places, places, queries.dtype)
        return self.attend(queries, keys, values, visible(mask)[:, None, None], bias)

    def weights(self, inputs: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        queries, keys, _ = self.split(inputs, places)
        return self.distribution(queries, keys, mask[:, None, None], self.order.bias(places, places, queries.dtype))


class CausalSelfAttention(Causal):
    """Every position looks at all before it. The state grows by one key and one value a head and position."""

    def start(self, rows: int, like: Tensor) -> Cache:
        nothing = like.new_zeros(rows, self.heads, 0, self.width)
        return Cache(nothing, nothing)

    def look(
        self, queries: Tensor, keys: Tensor, values: Tensor, past: Cache | BeamCache, together: int
    ) -> tuple[Tensor, Cache | BeamCache]:
        before, length = past.length, queries.shape[2]
        places = torch.arange(before + length, device=queries.device)  # of all keys; the last T are the queries'
        bias = self.order.bias(places[before:], places, queries.dtype)
        if together > 1 and before and length == 1 and queries.is_cpu and not torch.is_grad_enabled():
            return self._beams(queries, keys, values, past, bias, together)
        now = past.plain().followed(keys, values)
        if bias is None and (before == 0 or length == 1):  # the whole triangle, or its last row: no mask is made
            return heads_attend(queries, now.keys, now.values, None, self.dropout, causal=before == 0), now
        return self.attend(queries, now.keys, now.values, places <= places[before:, None], bias), now

    def _beams(
        self, queries: Tensor, keys: Tensor, values: Tensor, past: Cache | BeamCache, bias: Tensor | None, together: int
    ) -> tuple[Tensor, BeamCache]:
        """One position of hypotheses that lie together, whose past is not copied when they are reordered."""
        now = BeamCache.of(past, together).followed(keys, values)
        queries, keys, values, seen = now.asked(queries)
        bias = None if bias is None else bias.repeat_interleave(together, -1)
        return now.answered(self.attend(queries, keys, values, seen, bias)), now

    def weights(self, inputs: Tensor) -> Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        queries, keys, _ = self.split(inputs, places)
        return self.distribution(queries, keys, places > places[:, None], self.order.bias(places, places, queries.dtype))
