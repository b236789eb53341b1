"""The ids of many pairs, held compactly, and padded batches of them. Knows nothing of text, of order, or of budgets.

A pair may have more than ids: extended ids to copy from, real-valued elements, gold links. What a corpus has, all its pairs have.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Source
from eyeline.data.plan import Part
from eyeline.data.rows import Column, Indices, Rows

Values = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Batch:
    """Some pairs of a corpus, padded with PAD. B pairs, T the longest target, END counted."""

    source: Source
    inputs: Tensor  # [B, T] long: BEGIN and the target, what the decoder reads
    outputs: Tensor  # [B, T] long: the target and END, what it should say
    target_mask: Tensor  # [B, T] True where hidden, for inputs and outputs alike
    rows: Tensor  # [B] long, on the CPU: which pairs of the corpus these are
    target_tokens: int  # real tokens in outputs, END counted
    links: Tensor | None = None  # [B, T, S] float, rows of gold links, 1 / (links of the row) each; zero rows have none
    epoch: int | None = None  # whose noise it has

    def to(self, device: torch.device | str) -> Batch:
        """The same batch with its tensors on `device`; `rows` stay where they are."""
        moved = [tensor.to(device) for tensor in (self.inputs, self.outputs, self.target_mask)]
        links = None if self.links is None else self.links.to(device)
        return replace(self, source=self.source.to(device), inputs=moved[0], outputs=moved[1], target_mask=moved[2], links=links)


@dataclass(frozen=True)
class Sequences(Rows):
    """Sequences of ids, each with END appended."""

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> Self:  # type: ignore[override]
        """Takes in sequences of ids that hold neither BEGIN nor END, one at a time."""
        flat, offsets = array("i"), array("q", [0])
        for sequence in sequences:
            flat.extend(sequence)
            flat.append(END)
            offsets.append(len(flat))
        return cls(np.array(flat, dtype=np.int32), np.array(offsets, dtype=np.int64))


@dataclass(frozen=True)
class Sources:
    """What models read of many sources."""

    ids: Column  # END at the end of each
    copies: Column | None = None  # extended ids, for rungs that copy, as many as ids
    vocabulary: int = 0  # V of the target, from which on extended ids are this source's own
    values: Column | None = None  # rows of vectors [F], one for each id; those at END are zero

    @classmethod
    def of(
        cls,
        ids: Iterable[Sequence[int]],
        copies: Iterable[Sequence[int]] | None = None,
        vocabulary: int = 0,
        values: Iterable[Values] | None = None,
    ) -> Self:
        """Sequences without END; `copies` and `values` [tokens, F] of the same lengths."""
        held = Sequences.of(ids)
        copied = None if copies is None else Sequences.of(copies)
        assert copied is None or np.array_equal(copied.offsets, held.offsets), "a copy id for each symbol"
        if values is None:
            return cls(held, copied, vocabulary)
        rows = [part for item in values for part in (item, np.zeros((1, item.shape[1]), dtype=np.float32))]
        stacked = np.concatenate(rows) if rows else np.zeros((0, 1), dtype=np.float32)
        assert len(stacked) == len(held.flat), "an element for each symbol"
        return cls(held, copied, vocabulary, Rows(stacked, held.offsets))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Indices) -> Sources:
        """Those at `rows` [B], in memory."""
        taken = (None if column is None else column.take(rows) for column in (self.copies, self.values))
        return Sources(self.ids.take(rows), next(taken), self.vocabulary, next(taken))

    def batch(self, rows: Indices) -> Source:
        """The sources at `rows` [B], padded."""
        taken = self.ids.take(rows)
        source = Source(torch.from_numpy(taken.padded(np.int64)), torch.from_numpy(taken.lengths))
        if self.copies is not None:
            copies = self.copies.take(rows).padded(np.int64)
            extra = max(0, int(copies.max()) + 1 - self.vocabulary)
            source = replace(source, copy_ids=torch.from_numpy(copies), extra=extra)
        if self.values is not None:
            source = replace(source, values=torch.from_numpy(self.values.take(rows).padded(np.float32)))
        return source


@dataclass(frozen=True)
class Links(Rows):
    """Gold links of many pairs between their tokens: [all links, 2] source and target token, from 0, END not counted."""

    @classmethod
    def of(cls, pairs: Iterable[Iterable[tuple[int, int]]]) -> Self:  # type: ignore[override]
        flat, offsets = array("i"), array("q", [0])
        for links in pairs:
            for source, target in links:
                flat.extend((source, target))
            offsets.append(len(flat) // 2)
        return cls(np.array(flat, dtype=np.int32).reshape(-1, 2), np.array(offsets, dtype=np.int64))


def gold_attention(links: Rows, targets: int, sources: int) -> Tensor:
    """[B, T, S], each row divided by its number of links: the gold distribution of Chen et al. 2016, section 3."""
    gold = np.zeros((len(links), targets, sources), dtype=np.float32)
    pairs = np.repeat(np.arange(len(links)), links.lengths)
    gold[pairs, links.flat[:, 1], links.flat[:, 0]] = 1.0
    return torch.from_numpy(gold / np.maximum(gold.sum(-1, keepdims=True), 1.0))


@dataclass(frozen=True)
class Corpus:
    """Pairs of sequences. Both sides are stored with END and without BEGIN."""

    sources: Sources
    targets: Column  # extended ids where the sources have copies
    links: Column | None = None
    parts: tuple[Part, ...] = ()  # the corpora that it was put together from; none: it is one
    noise: Noise | None = None  # what changes ids anew in every epoch
    known_checksum: int | None = None  # of what is too large to be read at every start

    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.targets), f"{len(self.sources)} sources, {len(self.targets)} targets"
        assert not self.parts or sum(part.pairs for part in self.parts) == len(self)

    @classmethod
    def of(cls, sources: Iterable[Sequence[int]], targets: Iterable[Sequence[int]]) -> Self:
        """From the ids of each side, equally many, without BEGIN and END; an empty sequence is allowed."""
        return cls(Sources.of(sources), Sequences.of(targets))

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def source_lengths(self) -> Indices:
        """[pairs] tokens of each source, END counted."""
        return self.sources.ids.lengths

    @property
    def target_lengths(self) -> Indices:
        """[pairs] tokens of each target, END counted: the decoder's steps."""
        return self.targets.lengths

    def lengths_of(self, rows: Indices) -> tuple[Indices, Indices]:
        """[B] tokens of the sources and of the targets at `rows` [B]."""
        return self.sources.ids.lengths_of(rows), self.targets.lengths_of(rows)

    def checksum(self) -> int:
        """Of all ids: what the order of batches follows from."""
        if self.known_checksum is not None:
            return self.known_checksum
        return self.targets.checksum(self.sources.ids.checksum())

    def take(self, rows: Indices) -> Corpus:
        """The pairs at `rows` [B] alone, as they are without noise, in memory."""
        links = None if self.links is None else self.links.take(rows)
        return Corpus(self.sources.take(rows), self.targets.take(rows), links)

    def batch(self, indices: npt.ArrayLike, epoch: int | None = None) -> Batch:
        """The pairs at `indices` [B], at least one, in that order; the width is that of the longest among them.

        Args:
            epoch: with the noise that they have in this epoch; None: as they are.
        """
        rows = np.asarray(indices, dtype=np.int64)
        assert rows.ndim == 1, "indices are a vector"
        assert len(rows), "a batch has at least one row"
        assert 0 <= rows.min() <= rows.max() < len(self), "an index outside the corpus"
        if epoch is not None and self.noise is not None:
            noisy = self.noise(self.take(rows), rows, epoch)
            return replace(noisy.batch(np.arange(len(rows))), rows=torch.from_numpy(rows.copy()), epoch=epoch)
        source, targets = self.sources.batch(rows), self.targets.take(rows)
        outputs, hidden = targets.padded(np.int64), targets.hidden()
        inputs = np.empty_like(outputs)
        inputs[:, 0] = BEGIN
        inputs[:, 1:] = outputs[:, :-1]
        inputs[hidden] = PAD
        return Batch(
            source=source,
            inputs=torch.from_numpy(inputs),
            outputs=torch.from_numpy(outputs),
            target_mask=torch.from_numpy(hidden),
            rows=torch.from_numpy(rows.copy()),
            target_tokens=len(targets.flat),
            links=None if self.links is None else gold_attention(self.links.take(rows), outputs.shape[1], source.ids.shape[1]),
            epoch=epoch,
        )


Noise = Callable[[Corpus, Indices, int], Corpus]  # some pairs, which ones of all they are [B], and the epoch


def source_batch(sequences: Sequence[Sequence[int]]) -> Source:
    """Sources alone, for prediction: ids without END [B lists, at least one], padded, END appended."""
    held = Sources.of(sequences)
    return held.batch(np.arange(len(held)))
