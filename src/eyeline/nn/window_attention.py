"""Self-attention over a sliding window (Beltagy et al. 2020, section 3.1): time and memory grow with S × W instead of S × S.

Takes the places of `SelfAttention` and `CausalSelfAttention`. Queries are worked through in blocks of W, and each block looks at
the keys that any of its queries may see.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from eyeline.contracts import Rows
from eyeline.nn.positions import Order
from eyeline.nn.self_attention import BothWays, Causal, Heads
from eyeline.nn.side_by_side import Apart


def blocks(vectors: Tensor, size: int, step: int) -> Tensor:
    """[R·n, H, size, E]: every `step`-th window of `size` positions of [R, H, P, E], P = (n - 1)·step + size."""
    return vectors.unfold(2, size, step).permute(0, 2, 1, 4, 3).flatten(0, 1)


def look_around(heads: Heads, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor, before: int, after: int) -> Tensor:
    """[R, H, T, E]: query i of `queries` [R, H, T, E] looks at i … i + before + after of `keys` and `values`
    [R, H, before + T + after, E], where not `hidden` [R, before + T + after]. Key `before` + i stands where query i does.
    """
    rows, _, length, _ = queries.shape
    step = min(max(1, before), length)
    count = -(-length // step)
    missing, reach = count * step - length, before + after
    keys, values = (blocks(pad(each, (0, 0, 0, missing)), step + reach, step) for each in (keys, values))
    hidden = pad(hidden, (0, missing), value=True).unfold(1, step + reach, step).flatten(0, 1)  # [R·n, step + reach]
    slots = torch.arange(step + reach, device=queries.device)
    ahead = slots - slots[:step, None]  # [step, step + reach] how far a slot is from the first that its query may see
    seen = ((ahead >= 0) & (ahead <= reach) & ~hidden[:, None])[:, None]  # [R·n, 1, step, step + reach]
    seen = seen | ~seen.any(-1, keepdim=True)  # a query that may see nothing is itself hidden: let it see anything finite
    queries = blocks(pad(queries, (0, 0, 0, missing)), step, step)
    found = heads.attend(queries, keys, values, seen, heads.order.bias(slots[:step] + before, slots, queries.dtype))
    return found.view(rows, count, heads.heads, step, -1).transpose(1, 2).flatten(2, 3)[:, :, :length]


class WindowSelfAttention(BothWays):
    """A position looks at `window` positions to either side, and at itself."""

    def __init__(self, size: int, heads: int, order: Order, window: int, dropout: float = 0.0) -> None:
        super().__init__(size, heads, order, dropout)
        self.window = window

    def look(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        sides = (self.window, self.window)
        keys, values = (pad(each, (0, 0, *sides)) for each in (keys, values))
        return look_around(self, queries, keys, values, pad(mask, sides, value=True), *sides)

    def weights(self, inputs: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        queries, keys, _ = self.split(inputs, places)
        hidden = mask[:, None, None] | ((places - places[:, None]).abs() > self.window)
        return self.distribution(queries, keys, hidden, self.order.bias(places, places, queries.dtype))


@dataclass(frozen=True)
class WindowCache(Apart, Rows):
    """Keys and values of the last positions, at most as many as a window reaches back."""

    keys: Tensor  # [R, H, P, E]
    values: Tensor  # [R, H, P, E]
    length: int  # positions so far, those that are seen no more included

    @property
    def rows(self) -> int:
        return len(self.keys)


class CausalWindowSelfAttention(Causal):
    """A position looks at itself and the `window` positions before it. The state stops growing when the window is full."""

    def __init__(self, size: int, heads: int, order: Order, window: int, dropout: float = 0.0) -> None:
        super().__init__(size, heads, order, dropout)
        self.window = window

    def start(self, rows: int, like: Tensor) -> WindowCache:
        nothing = like.new_zeros(rows, self.heads, 0, self.width)
        return WindowCache(nothing, nothing, 0)

    def look(self, queries: Tensor, keys: Tensor, values: Tensor, past: WindowCache, together: int) -> tuple[Tensor, WindowCache]:
        rows, _, length, _ = queries.shape
        keys, values = torch.cat([past.keys, keys], 2), torch.cat([past.values, values], 2)
        now = WindowCache(keys[:, :, -self.window :], values[:, :, -self.window :], past.length + length)
        missing = self.window - past.keys.shape[2]  # so many places of the first window are before the beginning
        hidden = torch.arange(self.window + length, device=queries.device).expand(rows, -1) < missing
        keys, values = (pad(each, (0, 0, missing, 0)) for each in (keys, values))
        return look_around(self, queries, keys, values, hidden, self.window, 0), now

    def weights(self, inputs: Tensor) -> Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        queries, keys, _ = self.split(inputs, places)
        behind = places[:, None] - places
        return self.distribution(
            queries, keys, (behind < 0) | (behind > self.window), self.order.bias(places, places, queries.dtype)
        )
