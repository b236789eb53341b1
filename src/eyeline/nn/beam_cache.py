"""Keys and values of beams: what a source's hypotheses ever said lies side by side, and a small table says who comes from whom.

A beam is reordered at every position. A `Cache` then copies all that its rows hold; here the table is copied alone, and a
hypothesis looks at its ancestors through a mask. Letters: N sources, K hypotheses each, R = N·K rows, those of a source together;
M sources that the memory holds, some of which may have left.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eyeline.nn.cache import SPARE, Cache
from eyeline.nn.side_by_side import Apart


class Ground:
    """Memory for keys and values of more positions than there are; as in `cache.Room`, a position is written once."""

    def __init__(self, keys: Tensor, values: Tensor, taken: int) -> None:
        self.keys, self.values = keys, values  # [M, C, K, H, E]: the entries of a source lie at equal steps
        self.taken = taken  # positions that have been written

    def of(self, sources: Tensor, length: int) -> Ground:
        """The first `length` positions of `sources` [N], with room for more."""
        made = _ground(self.keys, len(sources), length)
        for part, whole in ((self.keys, made.keys), (self.values, made.values)):
            torch.index_select(part[:, :length], 0, sources, out=whole[:, :length])
        return made


@dataclass(frozen=True)
class BeamCache(Apart):
    """Keys and values of all positions so far. A position has K entries a source, one for each hypothesis that there was then."""

    ground: Ground
    places: Tensor  # [N] long, ascending: which of the M sources of the ground these are
    ancestors: Tensor  # [N, K, P] long: which of a position's K entries each hypothesis comes from

    @classmethod
    def of(cls, past: Cache | BeamCache, together: int) -> BeamCache:
        """Of rows of which `together` are one source's."""
        if isinstance(past, BeamCache) and past.ancestors.shape[1] == together:
            return past
        cache = past.plain()
        rows, heads, length, width = cache.keys.shape
        sources, device = rows // together, cache.keys.device
        ground = _ground(cache.keys.new_empty(0, 0, together, heads, width), sources, length)
        for part, whole in ((cache.keys, ground.keys), (cache.values, ground.values)):
            whole[:, :length] = part.view(sources, together, heads, length, width).permute(0, 3, 1, 2, 4)
        own = torch.arange(together, device=device)[:, None]
        return cls(ground, torch.arange(sources, device=device), own.expand(sources, together, length))

    @property
    def length(self) -> int:
        """P, the positions so far."""
        return self.ancestors.shape[2]

    @property
    def rows(self) -> int:
        return self.ancestors.shape[0] * self.ancestors.shape[1]

    def select(self, rows: Tensor) -> BeamCache | Cache:
        """Rows reordered, repeated or dropped. Where the K rows of a source are no longer together it is a plain cache.

        Sources that leave are left where they are, until they are a quarter of all.
        """
        _, together, length = self.ancestors.shape
        of = rows // together
        kept = of[::together]
        if len(rows) % together or not torch.equal(of, kept.repeat_interleave(together)):
            return self.plain().select(rows)
        ground, places = self.ground, self.places[kept]
        if 4 * len(kept) < 3 * len(ground.keys) or bool((kept[1:] <= kept[:-1]).any()):
            ground, places = ground.of(places, length), torch.arange(len(kept), device=kept.device)
        return BeamCache(ground, places, self.ancestors.flatten(0, 1).index_select(0, rows).view(-1, together, length))

    def followed(self, keys: Tensor, values: Tensor) -> BeamCache:
        """With those of one more position [R, H, 1, E] behind them."""
        sources, together, length = self.ancestors.shape
        ground = self.ground
        if ground.taken != length or length == ground.keys.shape[1]:
            ground = ground.of(torch.arange(len(ground.keys), device=keys.device), length)
        for part, whole in ((keys, ground.keys), (values, ground.values)):
            whole[:, length] = self._spread(part.view(sources, together, *part.shape[1:])[:, :, :, 0])
        ground.taken = length + 1
        own = torch.arange(together, device=keys.device)[:, None].expand(sources, together, 1)
        return BeamCache(ground, self.places, torch.cat([self.ancestors, own], 2))

    def asked(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the hypotheses of a source ask side by side.

        Args:
            queries: [R, H, 1, E].

        Returns:
            queries [M, H, K, E], keys and values [M, H, P·K, E], and where each looks, [M, 1, K, P·K] True = seen.
        """
        sources, together, length = self.ancestors.shape
        entries = torch.arange(together, device=queries.device)
        seen = self._spread((self.ancestors[..., None] == entries).flatten(2))
        if len(seen) > sources:
            seen[..., 0] |= ~seen.any(-1)  # who has left looks at something finite
        keys, values = (part[:, :length].flatten(1, 2).transpose(1, 2) for part in (self.ground.keys, self.ground.values))
        asking = self._spread(queries.view(sources, together, *queries.shape[1:])[:, :, :, 0])
        return asking.transpose(1, 2), keys, values, seen[:, None]

    def answered(self, found: Tensor) -> Tensor:
        """[R, H, 1, E] of what was found, [M, H, K, E]."""
        if len(found) > len(self.places):
            found = found.index_select(0, self.places)
        return found.transpose(1, 2).flatten(0, 1)[:, :, None]

    def plain(self) -> Cache:
        """The same with each row's positions written out."""
        positions = torch.arange(self.length, device=self.places.device)
        keys, values = (
            part[self.places[:, None, None], positions, self.ancestors].flatten(0, 1).transpose(1, 2)
            for part in (self.ground.keys, self.ground.values)
        )
        return Cache(keys, values)

    def _spread(self, value: Tensor) -> Tensor:
        """[M, …] of [N, …], zeros for those that have left."""
        held = len(self.ground.keys)
        if held == len(value):
            return value
        return value.new_zeros(held, *value.shape[1:]).index_copy_(0, self.places, value)


def _ground(like: Tensor, sources: int, length: int) -> Ground:
    """Room for `length` positions, which are about to be written, and half as many more."""
    _, _, together, heads, width = like.shape
    shape = sources, length + max(SPARE, length // 2), together, heads, width
    return Ground(like.new_empty(shape), like.new_empty(shape), length)
