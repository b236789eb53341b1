"""What self-attention keeps of batches that are at different positions, stepped as one. Knows rows; not what is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class Apart:
    """A cache that stays what it is beside others."""

    def joined(self, others: Sequence[Any], width: int) -> Any:
        return SideBySide.of([self, *others])


@dataclass(frozen=True)
class SideBySide(Apart):
    """Caches, the rows of one behind those of the other. Each is asked about its own rows alone, so that none is filled up to
    another's length, and no position has to be hidden."""

    parts: tuple[Any, ...]  # values with `rows`, `length` and `select`

    @classmethod
    def of(cls, caches: Sequence[Any]) -> Any:
        """A cache that is alone stands for itself."""
        parts = (cache.parts if isinstance(cache, cls) else (cache,) for cache in caches)
        every = tuple(part for several in parts for part in several)
        return every[0] if len(every) == 1 else cls(every)

    @property
    def rows(self) -> int:
        """R, of all together."""
        return sum(part.rows for part in self.parts)

    def places(self, length: int, device: torch.device) -> Tensor:
        """[R, 1, T]: where the next `length` positions of each row stand."""
        counts = torch.tensor([part.rows for part in self.parts])
        starts = torch.tensor([part.length for part in self.parts]).repeat_interleave(counts)
        return (starts[:, None, None] + torch.arange(length)).to(device)

    def each(self, look: Callable[..., tuple[Tensor, Any]], *vectors: Tensor) -> tuple[Tensor, SideBySide]:
        """What `look` finds for the rows of each part, and the parts after that; it is given the part's own of `vectors`
        [R, …], and the part."""
        counts = [part.rows for part in self.parts]
        split = zip(*(torch.split_with_sizes(each, counts) for each in vectors), strict=True)
        found, after = zip(*(look(*own, part) for own, part in zip(split, self.parts, strict=True)), strict=True)
        return torch.cat(found), SideBySide(after)

    def select(self, rows: Tensor) -> Any:
        """Of rows that keep the order of the parts. A part of which none is left goes; one that is alone stands for itself."""
        counts = [part.rows for part in self.parts]
        ends = torch.tensor(counts, device=rows.device).cumsum(0)
        owner = torch.bucketize(rows, ends, right=True)
        assert bool((owner[1:] >= owner[:-1]).all()), "rows of one batch stay together"
        taken = torch.split_with_sizes(rows, torch.bincount(owner, minlength=len(counts)).tolist())
        first, kept = 0, list[Any]()
        for part, count, own in zip(self.parts, counts, taken, strict=True):
            if len(own):
                kept.append(_selected(part, own - first))
            first += count
        return SideBySide.of(kept)


def _selected(part: Any, rows: Tensor) -> Any:
    if len(rows) == part.rows and torch.equal(rows, torch.arange(len(rows), device=rows.device)):
        return part  # nothing is copied for the sake of a neighbour
    return part.select(rows)
