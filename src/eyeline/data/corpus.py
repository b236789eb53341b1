"""The ids of many pairs, held compactly, and padded batches of them. Knows nothing of text, of order, or of budgets."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Source

Ids = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Some pairs of a corpus, padded with PAD. B pairs, T the longest target, END counted."""

    source: Source
    inputs: Tensor  # [B, T] long: BEGIN and the target, what the decoder reads
    outputs: Tensor  # [B, T] long: the target and END, what it should say
    target_mask: Tensor  # [B, T] True where hidden, for inputs and outputs alike
    rows: Tensor  # [B] long, on the CPU: which pairs of the corpus these are
    target_tokens: int  # real tokens in outputs, END counted

    def to(self, device: torch.device | str) -> Batch:
        """The same batch with its tensors on `device`; `rows` stay where they are."""
        moved = [tensor.to(device) for tensor in (self.inputs, self.outputs, self.target_mask)]
        return Batch(self.source.to(device), moved[0], moved[1], moved[2], self.rows, self.target_tokens)


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

    def padded(self, indices: Indices) -> tuple[Indices, Indices]:
        """The sequences at `indices` [B] as a rectangle [B, width] padded with PAD, and their lengths [B]."""
        starts = self.offsets[indices]
        lengths = self.offsets[indices + 1] - starts
        columns = np.arange(lengths.max())
        hidden = columns >= lengths[:, None]
        places = starts[:, None] + columns
        places[hidden] = 0
        ids = self.flat[places].astype(np.int64)
        ids[hidden] = PAD
        return ids, lengths


@dataclass(frozen=True)
class Corpus:
    """Pairs of id sequences. Both sides are stored with END and without BEGIN, in four bytes an id."""

    sources: Sequences
    targets: Sequences

    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.targets), f"{len(self.sources)} sources, {len(self.targets)} targets"

    @classmethod
    def of(cls, sources: Iterable[Sequence[int]], targets: Iterable[Sequence[int]]) -> Self:
        """From the ids of each side, equally many, without BEGIN and END; an empty sequence is allowed."""
        return cls(Sequences.of(sources), Sequences.of(targets))

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def source_lengths(self) -> Indices:
        """[pairs] tokens of each source, END counted."""
        return self.sources.lengths

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
        source_ids, source_lengths = self.sources.padded(rows)
        outputs, target_lengths = self.targets.padded(rows)
        hidden = np.arange(outputs.shape[1]) >= target_lengths[:, None]
        inputs = np.empty_like(outputs)
        inputs[:, 0] = BEGIN
        inputs[:, 1:] = outputs[:, :-1]
        inputs[hidden] = PAD
        return Batch(
            source=Source(torch.from_numpy(source_ids), torch.from_numpy(source_lengths)),
            inputs=torch.from_numpy(inputs),
            outputs=torch.from_numpy(outputs),
            target_mask=torch.from_numpy(hidden),
            rows=torch.from_numpy(rows.copy()),
            target_tokens=int(target_lengths.sum()),
        )


def source_batch(sequences: Sequence[Sequence[int]]) -> Source:
    """Sources alone, for prediction: ids without END [B lists, at least one], padded, END appended."""
    held = Sequences.of(sequences)
    ids, lengths = held.padded(np.arange(len(held)))
    return Source(torch.from_numpy(ids), torch.from_numpy(lengths))
