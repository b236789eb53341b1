"""Keys and values of the positions so far, as a value that grows without being copied. Knows tensors only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eyeline.nn.side_by_side import Apart

SPARE = 16  # positions that fit behind those there are, when room is made


class Room:
    """Memory for keys and values of more positions than there are, shared by all caches that stand in it.

    What one cache holds never changes: a position is written once, by whoever comes first. Who comes later from the same
    position has to move.
    """

    def __init__(self, keys: Tensor, values: Tensor, taken: int) -> None:
        self.keys, self.values = keys, values  # [C, R, H, E]: positions first, so that one more lies behind the others
        self.taken = taken  # positions that have been written

    def cache(self, length: int) -> Cache:
        """The first `length` positions."""
        keys, values = (part[:length].permute(1, 2, 0, 3) for part in (self.keys, self.values))
        return Cache(keys, values, self)


@dataclass(frozen=True)
class Cache(Apart):
    """Keys and values of all positions so far."""

    keys: Tensor  # [R, H, P, E]
    values: Tensor  # [R, H, P, E]
    room: Room | None = None  # in which they are the first P positions

    @property
    def length(self) -> int:
        """P, the positions so far."""
        return self.keys.shape[2]

    @property
    def rows(self) -> int:
        return len(self.keys)

    def plain(self) -> Cache:
        return self

    def select(self, rows: Tensor) -> Cache:
        """Rows reordered, repeated or dropped, with room for more."""
        length = self.keys.shape[2]
        if torch.is_grad_enabled() or not length:
            return Cache(self.keys.index_select(0, rows), self.values.index_select(0, rows))
        room = _room(self.keys, len(rows), length)
        for part, whole in ((self.keys, room.keys), (self.values, room.values)):
            torch.index_select(part.permute(2, 0, 1, 3), 1, rows, out=whole[:length])
        return room.cache(length)

    def followed(self, keys: Tensor, values: Tensor) -> Cache:
        """With those of further positions [R, H, T, E] behind them."""
        length, more = self.keys.shape[2], keys.shape[2]
        if not length:
            return Cache(keys, values)
        if torch.is_grad_enabled():
            return Cache(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))
        room = self.room
        if room is None or room.taken != length or length + more > len(room.keys):
            room = _room(self.keys, len(keys), length + more)
            for part, whole in ((self.keys, room.keys), (self.values, room.values)):
                whole[:length] = part.permute(2, 0, 1, 3)
        for part, whole in ((keys, room.keys), (values, room.values)):
            whole[length : length + more] = part.permute(2, 0, 1, 3)
        room.taken = length + more
        return room.cache(length + more)


def _room(like: Tensor, rows: int, length: int) -> Room:
    """Room for `length` positions, which are about to be written, and some more."""
    _, heads, _, width = like.shape
    keys, values = (like.new_empty(length + SPARE, rows, heads, width) for _ in range(2))
    return Room(keys, values, length)
