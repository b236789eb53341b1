"""Which pairs make up which batch of which epoch, of any number of pairs in bounded memory. Knows lengths alone.

Up to `POOL` pairs an epoch are ordered at once. More are first shuffled by a seeded permutation and then ordered a pool at a
time, so that memory is that of a pool, and any batch can be found without holding those of other pools.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from eyeline.data.batches import epoch_batches, sequential_batches, shuffled_batches
from eyeline.data.permutation import permuted

Indices = npt.NDArray[np.int64]
Lengths = Callable[[Indices], tuple[Indices, Indices]]  # of pairs [B]: tokens of the sources [B], of the targets [B], END counted

POOL = 2**18  # pairs: some 200 MB of lengths and orders while it is cut, and wide enough that like lengths meet
KEPT = 3  # pools whose batches are held: this one, the next that is fetched ahead, and one more


@dataclass(frozen=True)
class Part:
    """A corpus among those that are trained on together."""

    pairs: int
    draws: int  # pairs of it that an epoch takes: each one before any comes again, over the epochs too


def shares(pairs: Sequence[int], weights: Sequence[float], temperature: float) -> tuple[Part, ...]:
    """How much an epoch takes of each corpus, Σ w n pairs in all: n pairs of weight w have the share w n^(1/T) / Σ w n^(1/T).

    T = 1 takes w n of each, so that a weight says how often an epoch sees a pair; from there on the small ones gain, up to
    shares that follow the weights alone (Arivazhagan et al. 2019, section 4.2, have the shares; weights and totals are ours).
    """
    scaled = [weight * count ** (1 / temperature) for count, weight in zip(pairs, weights, strict=True)]
    total = sum(weight * count for count, weight in zip(pairs, weights, strict=True))
    return tuple(Part(count, max(1, round(total * part / sum(scaled)))) for count, part in zip(pairs, scaled, strict=True))


class Plan:
    """The batches of every epoch: a pure function of lengths, parts, budget, seed, epoch and number.

    Args:
        lengths: of the pairs at the places asked for.
        parts: the corpora, in the order in which their pairs are numbered.
        batch_tokens: the budget of a batch.
        seed: of the run, ≥ 0.
    """

    def __init__(self, lengths: Lengths, parts: Sequence[Part], batch_tokens: int, seed: int) -> None:
        self._lengths, self.parts, self.batch_tokens, self.seed = lengths, tuple(parts), batch_tokens, seed
        self.pools = -(-sum(part.draws for part in parts) // POOL)
        self._firsts: dict[int, list[int]] = {}  # epoch -> the number of each pool's first batch, and of the one after the last
        self._cut: dict[tuple[int, int], list[Indices]] = {}  # (epoch, pool) -> its batches

    def has(self, epoch: int, number: int) -> bool:
        """Whether the epoch has a batch of this number, from 0."""
        firsts = self._firsts.setdefault(epoch, [0])
        while firsts[-1] <= number and len(firsts) <= self.pools:
            firsts.append(firsts[-1] + len(self._batches(epoch, len(firsts) - 1)))
        return number < firsts[-1]

    def rows(self, epoch: int, number: int) -> Indices:
        """The pairs [B] of a batch that there is."""
        assert self.has(epoch, number), "no such batch"
        firsts = self._firsts[epoch]
        pool = bisect_right(firsts, number) - 1
        return self._batches(epoch, pool)[number - firsts[pool]]

    def count(self, epoch: int) -> int:
        """How many batches the epoch has. All its pools are cut for it: a second for a million pairs."""
        while self.has(epoch, self._firsts.get(epoch, [0])[-1]):
            pass
        return self._firsts[epoch][-1]

    def longest(self) -> Indices:
        """The longest pairs of all, in a batch that no epoch need have: none needs more memory for what grows with the length."""
        found, sizes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        pairs = sum(part.pairs for part in self.parts)
        for start in range(0, pairs, POOL):
            rows = np.arange(start, min(start + POOL, pairs))
            found = np.concatenate([found, rows])
            sizes = np.concatenate([sizes, np.maximum(*self._lengths(rows))])
            kept = np.argsort(-sizes, kind="stable")[: max(1, self.batch_tokens // max(1, int(sizes.max())))]
            found, sizes = found[kept], sizes[kept]
        return found[sequential_batches(sizes, self.batch_tokens)[0]]

    def _batches(self, epoch: int, pool: int) -> list[Indices]:
        key = epoch, pool
        if key not in self._cut:
            if len(self._cut) >= KEPT:
                del self._cut[next(iter(self._cut))]
            self._cut[key] = self._made(epoch, pool)
        return self._cut[key]

    def _made(self, epoch: int, pool: int) -> list[Indices]:
        chosen = self._chosen(epoch, pool)
        sources, targets = self._lengths(chosen)
        if self.pools == 1:
            batches = epoch_batches(sources, targets, self.batch_tokens, self.seed, epoch)
        else:
            batches = shuffled_batches(sources, targets, self.batch_tokens, (self.seed, epoch, pool))
        return [chosen[rows] for rows in batches]

    def _chosen(self, epoch: int, pool: int) -> Indices:
        """The pairs of a pool: its share of every part's."""
        starts = [0, *accumulate(part.pairs for part in self.parts)]
        return np.concatenate([starts[place] + self._drawn(place, epoch, pool) for place in range(len(self.parts))])

    def _drawn(self, place: int, epoch: int, pool: int) -> Indices:
        """What a pool has of a part, whose pairs are drawn in rounds that have each of them once."""
        part = self.parts[place]
        if self.pools == 1 and part.draws == part.pairs:
            return np.arange(part.pairs)
        first, last = (epoch * part.draws + part.draws * edge // self.pools for edge in (pool, pool + 1))
        rounds, places = np.divmod(np.arange(first, last), part.pairs)
        drawn = np.empty_like(places)
        for number in np.unique(rounds).tolist():
            here = rounds == number
            drawn[here] = permuted(places[here], part.pairs, (self.seed, place, number))
        return drawn
