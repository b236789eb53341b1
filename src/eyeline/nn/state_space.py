"""Selective state spaces (Gu & Dao 2023): the layer, an encoder that scans both ways, a decoder that looks at the source.

Knows scans, norms and cross-attention; not settings. Letters: E channels inside a layer, N numbers that each channel remembers,
W positions that the convolution sees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu, softplus

from eyeline.contracts import PAD, Deferred, Rows, Source, Step
from eyeline.nn.feedforward import PreNorm
from eyeline.nn.multihead import HeadKeys, MultiHeadAttention
from eyeline.nn.scan import selective_scan
from eyeline.nn.transformer import Encoded, LayerKeys, PlacedEmbedding
from eyeline.products import Linear

LEAST_STEP, GREATEST_STEP = 0.001, 0.1  # Δ of a new layer, as in the paper (section 3.6)


@dataclass(frozen=True)
class Selected(Rows):
    """What a selective layer hands on: as much after a thousand positions as after one."""

    window: Tensor  # [R, W - 1, E] the last inputs of the convolution, the oldest first; zero where there were none
    hidden: Tensor  # [R, N, E] h, in single precision at least


class CausalConvolution(nn.Module):
    """Each channel's weighted sum over the last W positions, its own included, plus a bias (depthwise, causal)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, channels).uniform_(-(width**-0.5), width**-0.5))  # the newest is last
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, inputs: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        """outputs [R, T, E] and the window after them, from inputs [R, T, E] and the window before them [R, W - 1, E]."""
        length = inputs.shape[1]
        seen = torch.cat([window, inputs], 1)  # [R, W - 1 + T, E]
        outputs: Tensor = self.bias
        for first, weight in enumerate(self.weight):  # a sum of W products is faster on a CPU than grouped convolution
            outputs = torch.addcmul(outputs, seen[:, first : first + length], weight)
        return outputs, seen[:, length:]


class SelectiveLayer(nn.Module):
    """Mamba's block (section 3.4, figure 3): W_out (y ∘ SiLU(z)), y the selective scan of SiLU(convolution(x)), x and z two
    projections of the input, plus a skip D ∘ x past the scan.

    Δ = softplus(W_Δ (W_δ x) + b), B = W_B x and C = W_C x depend on the input, which is what makes the layer selective
    (algorithm 2); W_δ narrows to `rank` (section 3.6). A = -exp(a) is diagonal and drawn as -1, …, -N (S4D-Real), Δ such that
    softplus(b) is spread evenly by its logarithm over 0.001 … 0.1.

    Args:
        size: width D of input and output.
        channels: E, in the paper 2 D.
        state_size: N.
        convolution: W, in the paper 4.
        rank: width between x and Δ; D/16, rounded up, when None.
    """

    def __init__(self, size: int, channels: int, state_size: int = 16, convolution: int = 4, rank: int | None = None) -> None:
        super().__init__()
        self.channels, self.state_size = channels, state_size
        self.rank = math.ceil(size / 16) if rank is None else rank
        self.inward = Linear(size, 2 * channels, bias=False)  # x and z
        self.convolution = CausalConvolution(channels, convolution)
        self.selection = Linear(channels, self.rank + 2 * state_size, bias=False)  # what Δ is made of, B and C
        self.step_size = Linear(self.rank, channels)
        self.log_decay = nn.Parameter(torch.arange(1, state_size + 1).log().repeat(channels, 1))  # [E, N] log(-A)
        self.skip = nn.Parameter(torch.ones(channels))
        self.outward = Linear(channels, size, bias=False)
        self._draw()

    def _draw(self) -> None:
        for linear, blocks in ((self.inward, 2), (self.selection, 1), (self.outward, 1)):
            for block in linear.weight.detach().chunk(blocks):
                nn.init.xavier_uniform_(block)
        nn.init.uniform_(self.step_size.weight, -(self.rank**-0.5), self.rank**-0.5)
        steps = torch.empty(self.channels).uniform_(math.log(LEAST_STEP), math.log(GREATEST_STEP)).exp()
        with torch.no_grad():
            self.step_size.bias.copy_(steps + torch.log(-torch.expm1(-steps)))  # softplus of it is `steps`

    def start(self, rows: int, like: Tensor) -> Selected:
        """The state before the first position, of the device and type of `like`."""
        return Selected(
            like.new_zeros(rows, len(self.convolution.weight) - 1, self.channels),
            like.new_zeros(rows, self.state_size, self.channels, dtype=torch.promote_types(like.dtype, torch.float32)),
        )

    def forward(self, inputs: Tensor, past: Selected) -> tuple[Tensor, Selected]:
        """[R, T, D] from `inputs` [R, T, D], the T positions that follow on `past`, and the state after them."""
        signal, gate = self.inward(inputs).chunk(2, -1)  # [R, T, E] each
        signal, window = self.convolution(signal, past.window)
        signal = silu(signal)
        narrow, B, C = self.selection(signal).split([self.rank, self.state_size, self.state_size], -1)
        delta = softplus(self.step_size(narrow))  # [R, T, E]
        scanned, hidden = selective_scan(signal, delta, -self.log_decay.exp(), B, C, past.hidden)
        outputs = torch.addcmul(scanned, signal, self.skip) * silu(gate)
        return self.outward(outputs), Selected(window, hidden)


class TwoWayLayer(nn.Module):
    """x + forwards(norm x) + backwards(norm x): two selective layers with weights of their own, the second of which reads each
    source from its last symbol to its first; what they say of a position is added."""

    def __init__(self, forwards: SelectiveLayer, backwards: SelectiveLayer, around: PreNorm) -> None:
        super().__init__()
        self.forwards, self.backwards, self.around = forwards, backwards, around

    def forward(self, stream: Tensor, turned: Tensor) -> Tensor:
        """[B, S, D] from `stream` [B, S, D] and `turned` [B·S], see `turns`."""
        inputs = self.around.enter(stream)
        start = self.forwards.start(len(inputs), inputs)
        there, _ = self.forwards(inputs, start)
        back, _ = self.backwards(_turn(inputs, turned), start)
        return self.around.leave(stream, there + _turn(back, turned))


def turns(source: Source) -> Tensor:
    """[B·S], where each position of the batch laid end to end goes when every source is turned round within its own length.

    Padding stays behind, so that a scan from the last symbol to the first never passes it. Turning twice changes nothing.
    """
    batch, width = source.ids.shape
    lengths = source.lengths.to(source.ids.device)[:, None]
    places = torch.arange(width, device=source.ids.device)
    within = torch.where(places < lengths, lengths - 1 - places, places)  # [B, S]
    return (within + width * torch.arange(batch, device=source.ids.device)[:, None]).flatten()


def _turn(vectors: Tensor, turned: Tensor) -> Tensor:
    return vectors.flatten(0, 1).index_select(0, turned).view_as(vectors)


class StateSpaceEncoder(nn.Module):
    """Two-way layers over embedded symbols, normalised on top. What lies beyond a source's length reaches no other position."""

    def __init__(self, embedding: PlacedEmbedding, layers: Sequence[TwoWayLayer], norm: nn.Module) -> None:
        super().__init__()
        self.embedding, self.norm = embedding, norm
        self.layers = nn.ModuleList(layers)

    def forward(self, source: Source) -> Encoded:
        stream, turned = self.embedding(source.ids.masked_fill(source.mask, PAD)), turns(source)
        for layer in self.layers:
            stream = layer(stream, turned)
        return Encoded(self.norm(stream), source.mask)


class StateSpaceDecoderLayer(nn.Module):
    """A selective layer, then cross-attention to the source.

    Args:
        first, second: the way in and out of each.
    """

    def __init__(self, selective: SelectiveLayer, cross: MultiHeadAttention, first: PreNorm, second: PreNorm) -> None:
        super().__init__()
        self.selective, self.cross, self.first, self.second = selective, cross, first, second

    def forward(self, stream: Tensor, past: Selected, keys: HeadKeys) -> tuple[Tensor, Selected, Tensor]:
        """The stream [R, T, D], the selective layer's state after it, and what cross-attention was asked [R, T, D]."""
        added, past = self.selective(self.first.enter(stream), past)
        stream = self.first.leave(stream, added)
        query = self.second.enter(stream)
        return self.second.leave(stream, self.cross(query, keys)), past, query


@dataclass(frozen=True)
class SelectedLayers(Rows):
    """What each selective layer hands on."""

    layers: tuple[Selected, ...]


class StateSpaceDecoder(nn.Module):
    """Layers over embedded symbols and a source, normalised on top. A step costs the same wherever in the target it is.

    Args:
        layer: whose cross-attention a step shows as "source", counted from 0, or from -1 backwards.
        head: the head of that layer; the mean of all when None.
    """

    def __init__(
        self,
        embedding: PlacedEmbedding,
        layers: Sequence[StateSpaceDecoderLayer],
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
        return LayerKeys(tuple(layer.cross.remember(encoded.states, encoded.mask) for layer in self.layers))

    def start(self, memory: LayerKeys) -> SelectedLayers:
        first = memory.layers[0].keys
        return SelectedLayers(tuple(layer.selective.start(len(first), first) for layer in self.layers))

    def step(self, token: Tensor, state: SelectedLayers, memory: LayerKeys) -> tuple[Step, SelectedLayers]:
        step, state = self.advance(token[:, None], state, memory)
        return step.at((slice(None), 0)), state

    def forward(self, tokens: Tensor, memory: LayerKeys) -> Step:
        return self.advance(tokens, self.start(memory), memory)[0]

    def advance(self, tokens: Tensor, state: SelectedLayers, memory: LayerKeys) -> tuple[Step, SelectedLayers]:
        """The steps after each of `tokens` [R, T], all at once, and the state after the last."""
        stream, after, queries = self.embedding(tokens), [], []
        for layer, past, keys in zip(self.layers, state.layers, memory.layers, strict=True):
            stream, past, query = layer(stream, past, keys)
            after.append(past)
            queries.append(query)
        query, keys = queries[self.layer], memory.layers[self.layer]  # all that is held on to
        shown = Deferred({"source": lambda: self._shown(query, keys)})
        return Step(self.norm(stream), shown), SelectedLayers(tuple(after))

    def maps(self, tokens: Tensor, memory: LayerKeys) -> dict[str, Tensor]:
        """`source.L` [B, H, T, S] for each layer L from 0: where each head looks from each of `tokens` [B, T]."""
        stream, maps = self.embedding(tokens), {}
        for number, (layer, past, keys) in enumerate(zip(self.layers, self.start(memory).layers, memory.layers, strict=True)):
            stream, _, query = layer(stream, past, keys)
            maps[f"source.{number}"] = layer.cross.weights(query, keys)
        return maps

    def _shown(self, query: Tensor, keys: HeadKeys) -> Tensor:
        """[R, T, S] weights of the chosen layer and head."""
        weights: Tensor = self.layers[self.layer].cross.weights(query, keys)
        return weights.mean(1) if self.head is None else weights[:, self.head]
