"""A padded batch without its padding: what stands in none of its sequences is not multiplied. Knows masks; not layers.

Shapes: a grid is [R, T, …] with padding in it, packed is [M, …], the M real positions of it one after another. Heads are made of
packed vectors by the very copy that lays each out in one piece for attention, so that leaving padding out costs no copy more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eyeline.products import BLOCK, MANY


@dataclass(frozen=True)
class _Moves:
    """Which row of one layout each row of the other is."""

    to_grid: Tensor  # for each row of the grid the packed one; any where hidden
    to_packed: Tensor  # for each packed row that of the grid; any where there is none
    hidden: Tensor  # rows of the grid that are padding
    spare: Tensor  # packed rows that are none of the grid's


class Unpadded:
    """Where the real positions of a batch are. Many are filled up to a multiple of `BLOCK` with a few rows of zeros, since every
    new number of rows is a kernel that the library makes and keeps.

    Args:
        mask: [R, T], True = hidden.
    """

    def __init__(self, mask: Tensor) -> None:
        self.rows, self.length = mask.shape
        self._hidden = mask.flatten().nonzero().squeeze(1)  # among the R·T positions, as the next
        self._real = (~mask).flatten().nonzero().squeeze(1)
        real = len(self._real)
        self._packed = real if real < MANY else -(-real // BLOCK) * BLOCK  # M
        self._known: dict[tuple[int, int], _Moves] = {}

    @classmethod
    def of(cls, mask: Tensor) -> Unpadded | None:
        """None where it does not pay: nothing is real, or nothing hidden in a small batch; on another device, which would be
        waited for; and when compiled."""
        if torch.compiler.is_compiling() or not mask.is_cpu:
            return None
        hidden = int(mask.sum())
        return cls(mask) if hidden < mask.numel() and (hidden or mask.numel() >= MANY) else None

    def pack(self, grid: Tensor) -> Tensor:
        """[M, D] from [R, T, D]."""
        return self._to_packed(grid.flatten(0, 1), self._moves(1, 1))

    def spread(self, packed: Tensor) -> Tensor:
        """[R, T, D] from [M, D], zero where hidden."""
        return self._to_grid(packed, self._moves(1, 1)).view(self.rows, self.length, -1)

    def split_heads(self, packed: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
        """`parts` times [R, H, T, E], zero where hidden, from [M, parts·H·E]."""
        width = packed.shape[1] // (parts * heads)
        laid = self._to_grid(packed.reshape(-1, width), self._moves(parts, heads))
        return laid.view(parts, self.rows, heads, self.length, width).unbind(0)

    def join_heads(self, vectors: Tensor) -> Tensor:
        """[M, H·E] from [R, H, T, E]; what is hidden is left out, and gets a gradient of zero."""
        heads, width = vectors.shape[1], vectors.shape[3]
        return self._to_packed(vectors.reshape(-1, width), self._moves(1, heads)).view(-1, heads * width)

    @staticmethod
    def _to_grid(rows: Tensor, moves: _Moves) -> Tensor:
        return _Moved.apply(rows, moves.to_grid, moves.hidden, moves.to_packed, moves.spare)  # type: ignore[no-untyped-call, no-any-return]

    @staticmethod
    def _to_packed(rows: Tensor, moves: _Moves) -> Tensor:
        return _Moved.apply(rows, moves.to_packed, moves.spare, moves.to_grid, moves.hidden)  # type: ignore[no-untyped-call, no-any-return]

    def _moves(self, parts: int, heads: int) -> _Moves:
        """Of rows of one head each, which lie by part, row, head and position in a grid, by position, part and head packed."""
        if (parts, heads) not in self._known:
            part, head, real = torch.arange(parts)[:, None], torch.arange(heads), len(self._real)
            nearest = self._real.new_zeros(self.rows * self.length)
            nearest[self._real] = torch.arange(real)
            to_grid = (nearest.view(self.rows, 1, -1) * parts + part[..., None, None]) * heads + head[:, None]
            of_real, hidden = (
                ((part * self.rows + at // self.length) * heads + head) * self.length + at % self.length
                for at in (self._real[:, None, None], self._hidden[:, None, None])
            )
            filled = of_real.new_zeros(self._packed, parts, heads)
            filled[:real] = of_real
            spare = torch.arange(real * parts * heads, filled.numel())
            self._known[parts, heads] = _Moves(to_grid.flatten(), filled.flatten(), hidden.flatten(), spare)
        return self._known[parts, heads]


def pack(grid: Tensor, real: Unpadded | None) -> Tensor:
    """The `real` positions of `grid` [R, T, D] alone, [M, D]; None: all of it, as it is."""
    return grid if real is None else real.pack(grid)


def spread(packed: Tensor, real: Unpadded | None) -> Tensor:
    """What `pack` was given."""
    return packed if real is None else real.spread(packed)


class _Moved(torch.autograd.Function):
    """`rows` [A, E] at `there` [B], zero at `absent` of these. A row comes from one row at most, so that its gradient is read
    like the row itself, at `back` [A], zero at `missing` of these; nothing is summed."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, absent: Tensor, back: Tensor, missing: Tensor) -> Tensor:
        ctx.save_for_backward(back, missing)
        return _taken(rows, there, absent)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        return _taken(gradient, *ctx.saved_tensors), None, None, None, None


def _taken(rows: Tensor, there: Tensor, absent: Tensor) -> Tensor:
    taken = rows.index_select(0, there)
    return taken.index_fill_(0, absent, 0.0) if len(absent) else taken
