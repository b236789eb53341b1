"""The Transformer: layers of self-attention, cross-attention and feed-forward parts (Vaswani et al. 2017, section 3).

Knows how its parts are put together and what is handed on; not what kind they are. States and memories are values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.contracts import PAD, Deferred, Rows, Source, Step
from eyeline.nn.dropout import Dropout
from eyeline.nn.embedding import Embedding, ExtendedEmbedding
from eyeline.nn.feedforward import Residual
from eyeline.nn.multihead import HeadKeys, MultiHeadAttention
from eyeline.nn.positions import Positions, Start
from eyeline.nn.self_attention import BothWays, Causal
from eyeline.nn.unpadded import Unpadded, pack, spread


class PlacedEmbedding(nn.Module):
    """Symbols and their places: dropout(E[id] √D + position) (sections 3.4 and 5.4)."""

    def __init__(self, embedding: Embedding | ExtendedEmbedding, positions: Positions, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.positions = embedding, positions
        self.dropout = Dropout(dropout)
        self.scale = embedding.size**0.5

    def forward(self, ids: Tensor, start: Start = 0, mask: Tensor | None = None) -> Tensor:
        """[R, T, D] from ids [R, T], the first of which stands at position `start`; `mask` [R, T] True = hidden."""
        return self.dropout(self.positions(self.embedding(ids) * self.scale, start, mask))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward part.

    Args:
        first, second: the way in and out of each.
    """

    def __init__(self, attention: BothWays, feedforward: nn.Module, first: Residual, second: Residual) -> None:
        super().__init__()
        self.attention, self.feedforward, self.first, self.second = attention, feedforward, first, second

    def forward(self, stream: Tensor, mask: Tensor, real: Unpadded | None = None) -> Tensor:
        """[B, S, D] from [B, S, D], or [M, D] from [M, D] of the `real` positions alone."""
        stream = self.first.leave(stream, self.attention(self.first.enter(stream), mask, real))
        return self.second.leave(stream, self.feedforward(self.second.enter(stream)))

    def weights(self, stream: Tensor, mask: Tensor) -> Tensor:
        """[B, H, S, S]: where the layer looks when `stream` comes in."""
        return self.attention.weights(self.first.enter(stream), mask)


@dataclass(frozen=True)
class Encoded:
    """What an encoder without recurrence makes of a batch of sources."""

    states: Tensor  # [B, S, D]
    mask: Tensor  # [B, S], True = hidden
    real: Unpadded | None = None  # the other positions, where these alone were worked on


class TransformerEncoder(nn.Module):
    """Layers over embedded symbols.

    Args:
        norm: over the states on top; the identity where layers normalise their own sums.
    """

    def __init__(self, embedding: PlacedEmbedding, layers: Sequence[EncoderLayer], norm: nn.Module) -> None:
        super().__init__()
        self.embedding, self.norm = embedding, norm
        self.layers: Any = nn.ModuleList(layers)

    def forward(self, source: Source) -> Encoded:
        stream, mask = self._read(source), source.mask
        real = Unpadded.of(mask) if self.training else None
        stream = pack(stream, real)
        for layer in self.layers:
            stream = layer(stream, mask, real)
        return Encoded(spread(self.norm(stream), real), mask, real)

    def maps(self, source: Source) -> dict[str, Tensor]:
        """`encoder.L` [B, H, S, S] for each layer L from 0: where each head looks."""
        stream, maps = self._read(source), {}
        for number, layer in enumerate(self.layers):
            maps[f"encoder.{number}"] = layer.weights(stream, source.mask)
            stream = layer(stream, source.mask)
        return maps

    def _read(self, source: Source) -> Tensor:
        return self.embedding(source.ids.masked_fill(source.mask, PAD), 0, source.mask)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Self-attention backwards, cross-attention to the source, then a feed-forward part.

    Args:
        first, second, third: the way in and out of each.
    """

    def __init__(
        self,
        attention: Causal,
        cross: MultiHeadAttention,
        feedforward: nn.Module,
        first: Residual,
        second: Residual,
        third: Residual,
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feedforward = attention, cross, feedforward
        self.first, self.second, self.third = first, second, third

    def forward(self, stream: Tensor, past: Any, keys: HeadKeys, real: Unpadded | None = None) -> tuple[Tensor, Any, Tensor]:
        """The stream [R, T, D], the self-attention's state after it, and what cross-attention was asked [R, T, D]; with `real`
        positions alone, of one row a source, [M, D] from [M, D]."""
        together = len(stream) // len(keys.mask) if real is None else 1
        added, past = self.attention(self.first.enter(stream), past, together, real)
        stream = self.first.leave(stream, added)
        query = self.second.enter(stream)
        stream = self.second.leave(stream, self.cross(query, keys, real))
        return self.third.leave(stream, self.feedforward(self.third.enter(stream))), past, query

    def weights(self, stream: Tensor) -> Tensor:
        """[B, H, T, T]: where self-attention looks when `stream` comes in."""
        return self.attention.weights(self.first.enter(stream))


@dataclass(frozen=True)
class LayerStates(Rows):
    """What self-attention of each layer hands on."""

    layers: tuple[Any, ...]
    position: Start  # of the next symbol

    def joined(self, others: Sequence[LayerStates], width: int) -> LayerStates:
        states = (self, *others)
        layers = zip(*(state.layers for state in states), strict=True)
        positions = torch.cat([torch.as_tensor(state.position).expand(state.layers[0].rows) for state in states])
        return LayerStates(tuple(first.joined(rest, width) for first, *rest in layers), positions)


@dataclass(frozen=True)
class LayerKeys(Rows):
    """A source as the keys and values of each layer's cross-attention."""

    layers: tuple[HeadKeys, ...]

    @property
    def mask(self) -> Tensor:
        return self.layers[0].mask


class TransformerDecoder(nn.Module):
    """Layers over embedded symbols and a source.

    Args:
        norm: over the features on top; the identity where layers normalise their own sums.
        layer: whose cross-attention a step shows as "source", counted from 0, or from -1 backwards.
        head: the head of that layer; the mean of all when None.
    """

    def __init__(
        self,
        embedding: PlacedEmbedding,
        layers: Sequence[DecoderLayer],
        norm: nn.Module,
        layer: int = -1,
        head: int | None = None,
    ) -> None:
        super().__init__()
        self.embedding, self.norm = embedding, norm
        self.layers: Any = nn.ModuleList(layers)
        self.layer, self.head = range(len(layers))[layer], head

    def remember(self, encoded: Encoded) -> LayerKeys:
        """Keys and values of every layer, once a source."""
        states = pack(encoded.states, encoded.real)
        return LayerKeys(tuple(layer.cross.remember(states, encoded.mask, encoded.real) for layer in self.layers))

    def start(self, memory: LayerKeys) -> LayerStates:
        first = memory.layers[0].keys
        return LayerStates(tuple(layer.attention.start(len(first), first) for layer in self.layers), 0)

    def step(self, token: Tensor, state: LayerStates, memory: LayerKeys) -> tuple[Step, LayerStates]:
        step, state = self.advance(token[:, None], state, memory)
        return step.at((slice(None), 0)), state

    def forward(self, tokens: Tensor, memory: LayerKeys) -> Step:
        return self.advance(tokens, self.start(memory), memory)[0]

    def advance(self, tokens: Tensor, state: LayerStates, memory: LayerKeys) -> tuple[Step, LayerStates]:
        """The steps after each of `tokens` [R, T], all at once, and the state after the last."""
        return self.through(self.embedding(tokens, state.position), state, memory, self.real(tokens, memory))

    def real(self, tokens: Tensor, memory: LayerKeys) -> Unpadded | None:
        """Where in training the real ones of `tokens` [R, T] are: what follows the last that is not PAD is padding."""
        if not self.training or len(tokens) != len(memory.mask):
            return None
        places = torch.arange(tokens.shape[1], device=tokens.device)
        last = torch.where(tokens == PAD, 0, places).amax(1, keepdim=True)
        return Unpadded.of(places > last)

    def through(
        self, stream: Tensor, state: LayerStates, memory: LayerKeys, real: Unpadded | None = None
    ) -> tuple[Step, LayerStates]:
        """The same from embedded tokens [R, T, D]; where only some are `real`, what is said at the others means nothing."""
        after, queries, length = [], [], stream.shape[1]
        stream = pack(stream, real)
        for layer, past, keys in zip(self.layers, state.layers, memory.layers, strict=True):
            stream, past, query = layer(stream, past, keys, real)
            after.append(past)
            queries.append(query)
        query, keys = queries[self.layer], memory.layers[self.layer]  # all that is held on to
        shown = Deferred({"source": lambda: self._shown(spread(query, real), keys)})
        return Step(spread(self.norm(stream), real), shown), LayerStates(tuple(after), state.position + length)

    def maps(self, tokens: Tensor, memory: LayerKeys) -> dict[str, Tensor]:
        """For each layer L from 0, where each head looks from each of `tokens` [B, T]: `target.L` [B, H, T, T] at the target
        itself, `source.L` [B, H, T, S] at the source."""
        stream, maps = self.embedding(tokens), {}
        for number, (layer, past, keys) in enumerate(zip(self.layers, self.start(memory).layers, memory.layers, strict=True)):
            maps[f"target.{number}"] = layer.weights(stream)
            stream, _, query = layer(stream, past, keys)
            maps[f"source.{number}"] = layer.cross.weights(query, keys)
        return maps

    def _shown(self, query: Tensor, keys: HeadKeys) -> Tensor:
        """[R, T, S] weights of the chosen layer and head."""
        weights: Tensor = self.layers[self.layer].cross.weights(query, keys)
        return weights.mean(1) if self.head is None else weights[:, self.head]
