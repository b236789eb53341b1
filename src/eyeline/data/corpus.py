"""The ids of many pairs, held compactly, and padded batches of them. Knows nothing of text, of order, or of budgets.

A pair may have more than ids: extended ids to copy from, real-valued elements, gold links. What a corpus has, all its pairs have.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Source

Ids = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]
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

    def to(self, device: torch.device | str) -> Batch:
        """The same batch with its tensors on `device`; `rows` stay where they are."""
        moved = [tensor.to(device) for tensor in (self.inputs, self.outputs, self.target_mask)]
        links = None if self.links is None else self.links.to(device)
        return Batch(self.source.to(device), moved[0], moved[1], moved[2], self.rows, self.target_tokens, links)


@dataclass(frozen=True)
class Sequences:
    """Sequences of ids laid end to end, each with END appended: sequence i is `flat[offsets[i]:offsets[i + 1]]`."""

    flat: Ids  # [all tokens]
    offsets: Indices  # [sequences + 1]

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> Self:
        """Takes in sequences of ids that hold neither BEGIN nor END, one at a time."""
        flat, offsets = array("i"), array("q", [0])
        for sequence in sequences:
            flat.extend(sequence)
            flat.append(END)
            offsets.append(len(flat))
        return cls(np.array(flat, dtype=np.int32), np.array(offsets, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Indices:
        """[sequences] tokens of each, END counted."""
        return np.diff(self.offsets)

    def places(self, indices: Indices) -> tuple[Indices, npt.NDArray[np.bool_], Indices]:
        """Where in `flat` the sequences at `indices` [B] lie, as a rectangle [B, width]; what of it is padding; lengths [B]."""
        starts = self.offsets[indices]
        lengths = self.offsets[indices + 1] - starts
        columns = np.arange(lengths.max())
        hidden = columns >= lengths[:, None]
        places = starts[:, None] + columns
        places[hidden] = 0
        return places, hidden, lengths

    def padded(self, indices: Indices) -> tuple[Indices, Indices]:
        """The sequences at `indices` [B] as a rectangle [B, width] padded with PAD, and their lengths [B]."""
        places, hidden, lengths = self.places(indices)
        ids = self.flat[places].astype(np.int64)
        ids[hidden] = PAD
        return ids, lengths


@dataclass(frozen=True)
class Sources:
    """What models read of many sources."""

    ids: Sequences
    copies: Sequences | None = None  # extended ids, for rungs that copy
    vocabulary: int = 0  # V of the target, from which on extended ids are this source's own
    values: Values | None = None  # [all tokens, F], the rows of real-valued sources; those at END are zero

    @classmethod
    def of(
        cls,
        ids: Iterable[Sequence[int]],
        copies: Iterable[Sequence[int]] | None = None,
        vocabulary: int = 0,
        values: Iterable[npt.NDArray[np.float32]] | None = None,
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
        return cls(held, copied, vocabulary, stacked)

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Indices) -> Source:
        """The sources at `rows` [B], padded."""
        ids, lengths = self.ids.padded(rows)
        source = Source(torch.from_numpy(ids), torch.from_numpy(lengths))
        if self.copies is not None:
            copies, _ = self.copies.padded(rows)
            extra = max(0, int(copies.max()) + 1 - self.vocabulary)
            source = replace(source, copy_ids=torch.from_numpy(copies), extra=extra)
        if self.values is not None:
            places, hidden, _ = self.ids.places(rows)
            values = self.values[places]
            values[hidden] = 0.0
            source = replace(source, values=torch.from_numpy(values))
        return source


@dataclass(frozen=True)
class Links:
    """Gold links of many pairs between their tokens: those of pair i are `flat[offsets[i]:offsets[i + 1]]`."""

    flat: Ids  # [all links, 2] source and target token, from 0, END not counted
    offsets: Indices  # [pairs + 1]

    @classmethod
    def of(cls, pairs: Iterable[Iterable[tuple[int, int]]]) -> Self:
        flat, offsets = array("i"), array("q", [0])
        for links in pairs:
            for source, target in links:
                flat.extend((source, target))
            offsets.append(len(flat) // 2)
        return cls(np.array(flat, dtype=np.int32).reshape(-1, 2), np.array(offsets, dtype=np.int64))

    def batch(self, rows: Indices, targets: int, sources: int) -> Tensor:
        """[B, T, S], each row divided by its number of links: the gold distribution of Chen et al. 2016, section 3."""
        gold = np.zeros((len(rows), targets, sources), dtype=np.float32)
        for place, row in enumerate(rows):
            links = self.flat[self.offsets[row] : self.offsets[row + 1]]
            gold[place, links[:, 1], links[:, 0]] = 1.0
        return torch.from_numpy(gold / np.maximum(gold.sum(-1, keepdims=True), 1.0))


@dataclass(frozen=True)
class Corpus:
    """Pairs of sequences. Both sides are stored with END and without BEGIN, in four bytes an id."""

    sources: Sources
    targets: Sequences  # extended ids where the sources have copies
    links: Links | None = None

    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.targets), f"{len(self.sources)} sources, {len(self.targets)} targets"

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

    def batch(self, indices: npt.ArrayLike) -> Batch:
        """The pairs at `indices` [B], at least one, in that order; the width is that of the longest among them."""
        rows = np.asarray(indices, dtype=np.int64)
        assert rows.ndim == 1, "indices are a vector"
        assert len(rows), "a batch has at least one row"
        assert 0 <= rows.min() <= rows.max() < len(self), "an index outside the corpus"
        source = self.sources.batch(rows)
        outputs, target_lengths = self.targets.padded(rows)
        hidden = np.arange(outputs.shape[1]) >= target_lengths[:, None]
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
            target_tokens=int(target_lengths.sum()),
            links=None if self.links is None else self.links.batch(rows, outputs.shape[1], source.ids.shape[1]),
        )


def source_batch(sequences: Sequence[Sequence[int]]) -> Source:
    """Sources alone, for prediction: ids without END [B lists, at least one], padded, END appended."""
    held = Sources.of(sequences)
    return held.batch(np.arange(len(held)))
