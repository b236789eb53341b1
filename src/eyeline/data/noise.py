"""Pairs that are cut into other pieces in every epoch: a pure function of seed, epoch and pair. Knows ids; no text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from eyeline.data.corpus import Corpus, Sequences
from eyeline.data.rows import Column, Indices, Rows

Cut = Callable[[Sequence[int], Random], list[int]]  # ids without END to others, with the numbers that chance gives


@dataclass(frozen=True)
class Recut:
    """Noise for a corpus (`data.corpus.Noise`).

    Args:
        seed: of the run; with epoch, pair and side it decides everything, so that a run that goes on has the same pieces.
        most: tokens of a side, END apart; what would be longer stays as it is.
    """

    source: Cut | None
    target: Cut | None
    seed: int
    most: int

    def __call__(self, pairs: Corpus, rows: Indices, epoch: int) -> Corpus:
        ids = self._side(pairs.sources.ids, self.source, rows, epoch, "source")
        targets = self._side(pairs.targets, self.target, rows, epoch, "target")
        return replace(pairs, sources=replace(pairs.sources, ids=ids), targets=targets)

    def _side(self, column: Column, cut: Cut | None, rows: Indices, epoch: int, side: str) -> Column:
        if cut is None:
            return column
        assert isinstance(column, Rows)
        made = []
        for place, row in enumerate(rows.tolist()):
            ids = column.flat[column.offsets[place] : column.offsets[place + 1] - 1].tolist()
            other = cut(ids, Random(f"{self.seed} {epoch} {row} {side}"))
            made.append(other if len(other) <= self.most else ids)
        return Sequences.of(made)
