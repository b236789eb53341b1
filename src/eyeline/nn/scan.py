"""The recurrence h_t = a_t h_{t-1} + b_t over all positions at once, and the selective scan made of it. Knows no layers.

Shapes: B batch, T positions, E channels, N numbers that each channel remembers. Time is dimension 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = {"cpu": 1 << 19}  # numbers of [b, t, N, E] that stand in memory at a time: 2 MB in fp32, of which a cache holds a few
LARGE_TILE = 1 << 26  # on any other device, where many small calls would cost more than memory does
LEAST_CHUNK = 64  # positions between two states that are kept for the backward pass, or more where they fit into a tile
NARROW = 4096  # numbers a position up to which, on a CPU, a loop over positions costs more than it saves


def recur(decay: Tensor, states: Tensor) -> None:
    """In place, h_t ← h_t + a_t h_{t-1} for t = 1 … T-1, of `decay` a and `states` h [B, T, …]; a_0 is not read."""
    if _one_by_one(states):
        _in_turn(decay.unbind(1)[1:], states.unbind(1))
    else:
        _in_pairs(decay[:, 1:], states)


def recur_backwards(decay: Tensor, states: Tensor) -> None:
    """In place, g_t ← g_t + a_{t+1} g_{t+1} for t = T-2 … 0: what `recur` does to gradients."""
    if _one_by_one(states):
        _in_turn(decay.unbind(1)[:0:-1], states.unbind(1)[::-1])
    else:
        turned = states.flip(1)
        _in_pairs(decay[:, 1:].flip(1), turned)
        states.copy_(turned.flip(1))


def _one_by_one(states: Tensor) -> bool:
    """Whether positions are taken in turn: on a CPU that is least work, unless each has too few numbers to be worth a call."""
    return states.device.type == "cpu" and states[:, 0].numel() > NARROW


def _in_turn(links: Sequence[Tensor], states: Sequence[Tensor]) -> None:
    for link, before, now in zip(links, states[:-1], states[1:], strict=True):
        now.addcmul_(link, before)


def _in_pairs(links: Tensor, states: Tensor) -> None:
    """An associative scan, of 2T operations in 2 log₂ T rounds (Blelloch 1990, section 1.4): `links` [B, T-1, …] lead from
    each state to the next.

    Neighbours are joined into steps of two, (a, b) then (a', b') being (a' a, a' b + b'); the scan of those gives every second
    state, and each of these the one after it. Decays are multiplied and never divided by, so that products may underflow.
    """
    length = states.shape[1]
    if length < 2:
        return
    pairs = length // 2
    odd = states[:, 1::2]
    odd.addcmul_(links[:, ::2], states[:, : 2 * pairs : 2])
    _in_pairs(links[:, 1::2][:, : pairs - 1] * links[:, 2::2], odd)
    states[:, 2::2].addcmul_(links[:, 1::2], states[:, 1 : length - 1 : 2])


class _Tile:
    """Room for some rows and positions of decays and states, used again and again: fresh memory costs more than the sums."""

    def __init__(self, like: Tensor, rate: Tensor, rows: int, length: int) -> None:
        self.decays, self.states, self.spare = (like.new_empty(rows * length * rate.numel()) for _ in range(3))
        self.rate = rate

    def fill(self, delta: Tensor, driven: Tensor, B: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
        """Decays 2^(Δ·rate) and states, [b, t, N, E] each."""
        shape = (*delta.shape[:2], *self.rate.shape)
        decays, states = (_view(memory, shape) for memory in (self.decays, self.states))
        torch.mul(delta[:, :, None], self.rate, out=decays).exp2_()
        torch.mul(driven[:, :, None], B[..., None], out=states)
        states[:, 0].addcmul_(decays[:, 0], initial)
        recur(decays, states)
        return decays, states


def _view(memory: Tensor, shape: tuple[int, ...]) -> Tensor:
    return memory[: math.prod(shape)].view(shape)


def _tiles(delta: Tensor, rate: Tensor) -> tuple[list[slice], list[slice]]:
    """The rows and the positions of each tile."""
    batch, length = delta.shape[:2]
    room = TILE.get(delta.device.type, LARGE_TILE) // rate.numel()  # rows times positions
    chunk = max(1, min(length, max(LEAST_CHUNK, room // max(1, batch))))
    rows = max(1, room // chunk)
    return (
        [slice(start, min(start + rows, batch)) for start in range(0, batch, rows)],
        [slice(start, min(start + chunk, length)) for start in range(0, length, chunk)],
    )


def _matched(weights: Tensor, of: Tensor) -> Tensor:
    """[b, t, E]: Σ_n weights[…, n] of[…, n, :]."""
    return (weights[:, :, None] @ of)[:, :, 0]


def _matched_channels(weights: Tensor, of: Tensor) -> Tensor:
    """[b, t, N]: Σ_e weights[…, e] of[…, e]."""
    return (weights[:, :, None] @ of.transpose(2, 3))[:, :, 0]


class _SelectiveScan(torch.autograd.Function):
    """See `selective_scan`. Decays and states [B, T, N, E] never stand in memory whole: forward and backward work through tiles
    of rows and positions, and the backward pass makes those of a tile again from the state before it."""

    @staticmethod
    def forward(ctx: Any, delta: Tensor, driven: Tensor, rate: Tensor, B: Tensor, C: Tensor, initial: Tensor) -> Any:
        rows, chunks = _tiles(delta, rate)
        outputs, starts = torch.empty_like(delta), [initial]
        tile = _Tile(delta, rate, _longest(rows), _longest(chunks))
        for chunk in chunks:
            last = torch.empty_like(initial)
            for row in rows:
                at = row, chunk
                _, states = tile.fill(delta[at], driven[at], B[at], starts[-1][row])
                outputs[at] = _matched(C[at], states)
                last[row] = states[:, -1]
            starts.append(last)
        ctx.save_for_backward(delta, driven, rate, B, C, *starts[:-1])
        return outputs, starts[-1] if chunks else initial.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor, after: Tensor) -> Any:
        delta, driven, rate, B, C, *starts = ctx.saved_tensors
        rows, chunks = _tiles(delta, rate)
        tile = _Tile(delta, rate, _longest(rows), _longest(chunks))
        of_delta, of_driven, of_B, of_C = (torch.empty_like(each) for each in (delta, driven, B, C))
        of_rate = torch.zeros_like(rate)
        of_state = after.clone()  # the gradient of the state that a chunk hands on
        for chunk, start in zip(reversed(chunks), reversed(starts), strict=True):
            for row in rows:
                at = row, chunk
                decays, states = tile.fill(delta[at], driven[at], B[at], start[row])
                of_C[at] = _matched_channels(above[at], states)
                gradients = _view(tile.spare, states.shape)
                torch.mul(C[at][..., None], above[at][:, :, None], out=gradients)
                gradients[:, -1] += of_state[row]
                recur_backwards(decays, gradients)
                of_driven[at] = _matched(B[at], gradients)
                of_B[at] = _matched_channels(driven[at], gradients)
                of_exponent = decays.mul_(gradients)  # [b, t, N, E], but for h_{t-1} and ln 2
                of_state[row] = of_exponent[:, 0]
                of_exponent[:, 0] *= start[row]
                of_exponent[:, 1:] *= states[:, :-1]
                of_delta[at] = torch.mul(of_exponent, rate, out=states).sum(2)
                of_rate += torch.mul(of_exponent, delta[at][:, :, None], out=states).sum((0, 1))
        return of_delta.mul_(math.log(2)), of_driven, of_rate.mul_(math.log(2)), of_B, of_C, of_state


def _longest(slices: list[slice]) -> int:
    return max((each.stop - each.start for each in slices), default=0)


def selective_scan(inputs: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """The selective state space model of Gu & Dao 2023, algorithm 2, for all positions at once.

        h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x_t,    y_t = C_t h_t    (their equation 2, for each channel)

    A is discretised by the zero-order hold (equation 4) exactly; B by Δ B, its first order, as the authors' released code does,
    where equation 4 has (Δ A)⁻¹ (exp(Δ A) - 1) Δ B.

    Memory does not grow with T · N · E: states are made tile by tile, and again in the backward pass. First derivatives only.
    Everything is summed in single precision at least, since decays lie close to 1.

    Args:
        inputs: x [B, T, E].
        delta: Δ [B, T, E], positive.
        A: [E, N], negative: what is remembered fades.
        B, C: [B, T, N].
        initial: h before the first position [B, N, E].

    Returns:
        outputs y [B, T, E], of the type of `inputs`, and the state after the last position [B, N, E].
    """
    kind = torch.promote_types(inputs.dtype, torch.float32)
    with torch.autocast(inputs.device.type, enabled=False):
        delta, A, B, C, initial = (each.to(kind) for each in (delta, A, B, C, initial))
        rate = (A / math.log(2)).T.contiguous()  # exp(Δ A) = 2^(Δ A / ln 2), which processors do in a third of the time
        outputs, last = _SelectiveScan.apply(delta, delta * inputs.to(kind), rate, B, C, initial)  # type: ignore[no-untyped-call]
    return outputs.to(inputs.dtype), last
