"""Recurrence: stacks of cells, the encoder, and the bridge from its last states to the decoder's first. Knows no attention.

A recurrent state is one tensor [R, L, P, D]: rows, layers, planes (an LSTM has two, h and c; the others one, h), width.

Cells are PyTorch's. Its GRU applies the reset gate after the product, r ∘ (U h); Cho et al. 2014, equation 8, before: U (r ∘ h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from eyeline.contracts import PAD, Source
from eyeline.nn.cells import Cell, by_hand, plain
from eyeline.nn.dropout import Dropout
from eyeline.nn.recurrence import Places, read_layer
from eyeline.products import Linear


def _planes(cell: nn.RNNBase) -> int:
    return 2 if isinstance(cell, nn.LSTM) else 1


def prepare_cell(cell: nn.RNNBase) -> nn.RNNBase:
    """Orthogonal recurrent weights, Glorot input weights, zero biases, an LSTM's forget gate at one (Jozefowicz et al. 2015)."""
    for name, parameter in cell.named_parameters():
        if name.startswith("weight_hh"):
            for block in torch.split(parameter.detach(), cell.hidden_size):
                nn.init.orthogonal_(block)
        elif name.startswith("weight_ih"):
            for block in torch.split(parameter.detach(), cell.hidden_size):
                nn.init.xavier_uniform_(block)
        else:
            nn.init.zeros_(parameter)
            if isinstance(cell, nn.LSTM) and name.startswith("bias_ih"):
                nn.init.ones_(parameter.detach()[cell.hidden_size : 2 * cell.hidden_size])
    return cell


def _bare(state: Tensor, cell: nn.RNNBase) -> Tensor | tuple[Tensor, Tensor]:
    """[R, P, D] to what PyTorch's cell wants."""
    planes = state.transpose(0, 1).contiguous()  # [P, R, D]
    return (planes[0:1], planes[1:2]) if _planes(cell) == 2 else planes


class Stack(nn.Module):
    """L one-layer, one-directional recurrent modules on top of each other, run over any number of positions.

    Args:
        layers: batch-first `nn.RNN`, `nn.LSTM` or `nn.GRU`, all of one kind and width.
        dropout: between layers.
    """

    def __init__(self, layers: Sequence[nn.RNNBase], dropout: float = 0.0) -> None:
        super().__init__()
        assert all(cell.num_layers == 1 and cell.batch_first and not cell.bidirectional for cell in layers)
        self.layers = nn.ModuleList(prepare_cell(cell) for cell in layers)
        self.dropout = Dropout(dropout)
        self.size, self.depth, self.planes = layers[0].hidden_size, len(layers), _planes(layers[0])

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """outputs [R, T, D] and the state after them [R, L, P, D], from inputs [R, T, I] and the state before them."""
        after = []
        for number, cell in enumerate(self.layers):
            inputs, last = cell(self.dropout(inputs) if number else inputs, _bare(state[:, number], cell))  # type: ignore[arg-type]
            after.append(torch.cat(last if self.planes == 2 else (last,)))  # [P, R, D]
        return inputs, torch.stack(after).permute(2, 0, 1, 3)


@dataclass(frozen=True)
class Encoding:
    """What a recurrent encoder makes of a batch of sources."""

    states: Tensor  # [B, S, D]; D counts both directions
    final: Tensor  # [B, L, P, D]; for each layer the forward state after the last symbol beside the backward state at the first
    mask: Tensor  # [B, S], True = hidden


def _at_least_one(source: Source) -> Tensor:
    """[B] lengths: an empty source is read as one zero vector, and stays wholly hidden."""
    return source.lengths.clamp(min=1)


class RecurrentLayers(nn.Module):
    """Recurrent layers over the elements of a source. What lies beyond a source's length is never read.

    Args:
        embedding: makes the vectors that the encoders built on this read.
        layers: batch-first, one-layer `nn.RNN`, `nn.LSTM` or `nn.GRU`; bidirectional ones feed both directions to the next.
        dropout: between layers and on the top states.
    """

    def __init__(self, embedding: nn.Module, layers: Sequence[nn.RNNBase], dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(prepare_cell(cell) for cell in layers)
        self.dropout = Dropout(dropout)
        self.size = layers[0].hidden_size * (2 if layers[0].bidirectional else 1)
        self.depth, self.planes = len(layers), _planes(layers[0])

    def read(self, inputs: Tensor, source: Source) -> Encoding:
        """What the layers make of `inputs` [B, S, E], zero where hidden."""
        cells = [by_hand(layer) for layer in self.layers]  # type: ignore[arg-type]
        pays = torch.is_grad_enabled() or self.planes == 2  # without a gradient packed sequences are the faster for other cells
        if pays and inputs.is_cpu and plain(inputs) and None not in cells:
            return self._padded(inputs, source, cells)
        return self._packed(inputs, source)

    def _padded(self, inputs: Tensor, source: Source, cells: Sequence[Cell | None]) -> Encoding:
        """Over rows as they are padded."""
        stream, final = inputs.transpose(0, 1).contiguous(), []  # [S, B, E]
        places = Places.of(_at_least_one(source).to(inputs.device), len(stream))
        for number, (layer, cell) in enumerate(zip(self.layers, cells, strict=True)):
            assert cell is not None
            stream, last = read_layer(cell, layer, self.dropout(stream) if number else stream, places)  # type: ignore[arg-type]
            final.append(last)
        return Encoding(self.dropout(stream).transpose(0, 1), torch.stack(final, 1), source.mask)

    def _packed(self, inputs: Tensor, source: Source) -> Encoding:
        """As packed sequences."""
        lengths, final = _at_least_one(source).cpu(), []
        for number, cell in enumerate(self.layers):
            packed = pack_padded_sequence(
                self.dropout(inputs) if number else inputs, lengths, batch_first=True, enforce_sorted=False
            )
            outputs, last = cell(packed)
            inputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.ids.shape[1])
            planes = torch.stack(last if self.planes == 2 else (last,))  # [P, directions, B, D/directions]
            final.append(planes.permute(2, 0, 1, 3).flatten(2))  # [B, P, D]: of one example, forward beside backward
        return Encoding(self.dropout(inputs), torch.stack(final, 1), source.mask)


class RecurrentEncoder(RecurrentLayers):
    """Recurrent layers over embedded symbols: `embedding` makes ids [B, S] into vectors [B, S, E]."""

    def forward(self, source: Source) -> Encoding:
        return self.read(self.embedding(source.ids.masked_fill(source.mask, PAD)), source)


class Reversed(nn.Module):
    """Reads each source backwards within its own length (Sutskever et al. 2014, 3.3); states come back in source order."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.size, self.depth, self.planes = encoder.size, encoder.depth, encoder.planes

    def forward(self, source: Source) -> Encoding:
        lengths = source.lengths.to(source.ids.device)[:, None]
        position = torch.arange(source.ids.shape[1], device=source.ids.device)[None]
        order = torch.where(position < lengths, lengths - 1 - position, position)  # [B, S], its own inverse
        encoding: Encoding = self.encoder(Source(source.ids.gather(1, order), source.lengths))
        states = encoding.states.gather(1, order[..., None].expand_as(encoding.states))
        return Encoding(states, encoding.final, encoding.mask)


class CopyBridge(nn.Module):
    """The encoder's last states become the decoder's first as they are (Sutskever et al. 2014): same depth, planes and width."""

    def forward(self, final: Tensor) -> Tensor:
        """[B, L, P, D] from [B, L, P, D]."""
        return final


class DenseBridge(nn.Module):
    """Layer l of the decoder starts from layer l of the encoder through a layer of its own: tanh for h, linear for an LSTM's c.

    Bahdanau et al. 2015, A.2.2, start from the backward state alone, s₀ = tanh(W h₁); here W sees both directions. When the
    depths differ, layers are paired from the top, and decoder layers left over share the encoder's lowest.
    """

    def __init__(self, encoder_depth: int, encoder_size: int, decoder_depth: int, decoder_size: int, planes: int) -> None:
        super().__init__()
        self.pairs = [max(0, layer + encoder_depth - decoder_depth) for layer in range(decoder_depth)]
        self.maps = nn.ModuleList(
            nn.ModuleList(Linear(encoder_size, decoder_size) for _ in range(planes)) for _ in range(decoder_depth)
        )

    def forward(self, final: Tensor) -> Tensor:
        """[B, L', P, D'] from [B, L, P, D]."""
        layers = []
        for below, maps in zip(self.pairs, self.maps, strict=True):
            assert isinstance(maps, nn.ModuleList)
            planes = [dense(final[:, below, plane]) for plane, dense in enumerate(maps)]
            layers.append(torch.stack([planes[0].tanh(), *planes[1:]], 1))
        return torch.stack(layers, 1)
