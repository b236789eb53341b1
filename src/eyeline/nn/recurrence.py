"""A recurrent layer over whole sources, one way or both. Knows cells and lengths; no attention.

PyTorch reads rows of uneven length as packed ones, and its gradient then takes a tensor of the whole batch a position. Here rows
are read as they are padded: what stands behind a source cannot reach it, be it read forwards or, turned round within its own
length, backwards.

For padded rows PyTorch has a fast LSTM. It does not tell c where a source ends, so that its padding holds c as it is: an input of
its own opens the forget gate there and shuts the input gate. For the other cells the loop is here, with hand-written derivatives:
both ways at once, the product of the inputs one for all positions, and so are those of the gradients.

Shapes: S positions first, B sources, I width of the input, Z ways, D width of the cell, P planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from eyeline.nn.cells import Cell

HOLD = 50.0  # σ(50) is 1 and σ(-50) is 2e-22, far above the numbers with which processors are slow
LANES = 16  # inputs of which one is used: rows of an even width are the faster


@dataclass(frozen=True)
class Places:
    """Where positions of [S · B] lie, S first."""

    turned: Tensor  # [S · B] of what is read at each when a source is turned round within its length; its own inverse
    hidden: Tensor  # [M] behind the ends of the sources
    last: Tensor  # [B] of each source's last position

    @classmethod
    def of(cls, lengths: Tensor, positions: int) -> Places:
        """From `lengths` [B], each at least 1."""
        rows, position = (
            torch.arange(len(lengths), device=lengths.device),
            torch.arange(positions, device=lengths.device)[:, None],
        )
        turned = torch.where(position < lengths, lengths - 1 - position, position)  # [S, B]
        hidden = (position >= lengths).flatten().nonzero().squeeze(1)
        return cls((turned * len(rows) + rows).flatten(), hidden, (lengths - 1) * len(rows) + rows)


def read_layer(cell: Cell, layer: nn.RNNBase, inputs: Tensor, places: Places) -> tuple[Tensor, Tensor]:
    """States [S, B, Z·D], zero where hidden, and the last state of each way [B, P, Z·D], from `inputs` [S, B, I]."""
    ways = ("", "_reverse") if layer.bidirectional else ("",)
    if isinstance(layer, nn.LSTM):
        return _read_lstm(layer, ways, inputs, places)
    arranged = [cell.arrange(layer, way) for way in ways]
    inward, recurrent, bias = (
        torch.stack([getattr(each, name) for each in arranged]) for name in ("inward", "recurrent", "bias")
    )
    rests = [each.rest for each in arranged if each.rest is not None]
    rest = torch.stack(rests) if rests else None
    return _Read.apply(cell, places, inputs, inward, recurrent, bias, rest)  # type: ignore[no-untyped-call, no-any-return]


def _read_lstm(layer: nn.LSTM, ways: tuple[str, ...], inputs: Tensor, places: Places) -> tuple[Tensor, Tensor]:
    """By PyTorch's LSTM over padded rows, whose `inputs` are zero where hidden."""
    (S, B, _), D = inputs.shape, layer.hidden_size
    padding, holding = inputs.new_zeros(S * B, LANES), inputs.new_zeros(4 * D, LANES)
    padding[places.hidden, 0] = 1.0
    holding[:D, 0], holding[D : 2 * D, 0] = -HOLD, HOLD  # PyTorch has the gates as i, f, g, o
    stream, nothing = torch.cat([inputs.flatten(0, 1), padding], 1), inputs.new_zeros(1, B, D)
    states, last = [], []
    for way, read in zip(ways, _ways(stream, len(ways), places), strict=True):
        of_input, *others = (layer.get_parameter(f"{name}_l0{way}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        weights = [torch.cat([of_input, holding], 1), *others]
        read = read.view(S, B, -1)
        said, _, cell = torch.lstm(read, (nothing, nothing), weights, True, 1, 0.0, torch.is_grad_enabled(), False, False)
        said = said.flatten(0, 1)
        last.append(torch.stack([said.index_select(0, places.last), cell[0]], 1))  # [B, P, D]
        states.append(said.index_select(0, places.turned) if way else said)
    return torch.cat(states, 1).index_fill(0, places.hidden, 0.0).view(S, B, -1), torch.cat(last, 2)


class _Read(torch.autograd.Function):
    """The state before the first position is zero."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        places: Places,
        inputs: Tensor,  # [S, B, I]
        inward: Tensor,  # [Z, G·D, I]
        recurrent: Tensor,  # [Z, G·D, D]
        bias: Tensor,  # [Z, G·D]
        rest: Tensor | None,  # [Z, D]
    ) -> tuple[Tensor, Tensor]:
        (S, B, _), (Z, _, D) = inputs.shape, recurrent.shape
        gates, states = inputs.new_empty(Z, S, B, cell.blocks * D), inputs.new_empty(S, cell.planes, Z, B, D)
        if rest is not None:
            gates[..., cell.inward(D).stop :] = rest[:, None, None]
        for way, read in enumerate(_ways(inputs.flatten(0, 1), Z, places)):
            torch.addmm(bias[way], read, inward[way].t(), out=gates[way].flatten(0, 1)[:, cell.inward(D)])
        before, columns = states.new_zeros(states.shape[1:]), cell.recurrent(D)
        for here, after in zip(gates.unbind(1), states, strict=True):
            here[..., columns].baddbmm_(before[0], recurrent.transpose(1, 2))
            cell.forward(here, before, after)
            before = after
        outputs = inputs.new_empty(S * B, Z, D)
        outputs.view(S, B, Z, D).copy_(states[:, 0].transpose(1, 2))
        if Z > 1:
            outputs[:, 1] = outputs[:, 1].index_select(0, places.turned)
        outputs.index_fill_(0, places.hidden, 0.0)
        last = states.permute(0, 3, 1, 2, 4).flatten(0, 1).index_select(0, places.last)  # [B, P, Z, D]
        ctx.cell, ctx.places, ctx.has_rest = cell, places, rest is not None
        ctx.save_for_backward(inputs, inward, recurrent, gates, states)
        ctx.set_materialize_grads(False)
        return outputs.view(S, B, Z * D), last.flatten(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor | None, of_last: Tensor | None) -> tuple[Tensor | None, ...]:
        cell, places = ctx.cell, ctx.places
        inputs, inward, recurrent, gates, states = ctx.saved_tensors
        (S, _, Z, B, D), products = states.shape, torch.empty_like(gates)
        slopes = _slopes(of_outputs, of_last, states, places)
        slope, nothing = torch.zeros_like(states[0]), torch.zeros_like(states[0])
        for t in reversed(range(S)):
            slope += slopes[t]
            here = products[:, t]
            cell.backward(gates[:, t], states[t - 1] if t else nothing, states[t], slope, here)
            slope[0].baddbmm_(here[..., cell.recurrent(D)], recurrent)
        of_inputs = torch.zeros_like(inputs).flatten(0, 1)
        of_inward, of_recurrent = torch.empty_like(inward), torch.empty_like(recurrent)
        for way, read in enumerate(_ways(inputs.flatten(0, 1), Z, places)):
            within, around = (products[way].flatten(0, 1)[:, part] for part in (cell.inward(D), cell.recurrent(D)))
            back = within @ inward[way]
            of_inputs += back.index_select(0, places.turned) if way else back
            torch.mm(within.t(), read, out=of_inward[way])
            torch.mm(around[B:].t(), states[:-1, 0, way].reshape(-1, D), out=of_recurrent[way])
        sums = products.sum((1, 2))  # [Z, G·D]
        of_rest = sums[:, cell.inward(D).stop :] if ctx.has_rest else None
        return None, None, of_inputs.view_as(inputs), of_inward, of_recurrent, sums[:, cell.inward(D)], of_rest


def _ways(inputs: Tensor, ways: int, places: Places) -> list[Tensor]:
    """[S · B, I] as each way reads them."""
    return [inputs, inputs.index_select(0, places.turned)][:ways]


def _slopes(of_outputs: Tensor | None, of_last: Tensor | None, states: Tensor, places: Places) -> Tensor:
    """The gradient of all states [S, P, Z, B, D], from that of what was answered."""
    S, P, Z, B, D = states.shape
    slopes = states.new_zeros(S * B, P, Z, D)
    if of_outputs is not None:
        given = of_outputs.reshape(S * B, Z, D).index_fill(0, places.hidden, 0.0)
        slopes[:, 0, 0] = given[:, 0]
        if Z > 1:
            slopes[:, 0, 1] = given[:, 1].index_select(0, places.turned)
    if of_last is not None:
        slopes.index_add_(0, places.last, of_last.view(B, P, Z, D))
    return slopes.view(S, B, P, Z, D).permute(0, 2, 3, 1, 4)
