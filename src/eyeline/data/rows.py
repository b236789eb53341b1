"""Rows of unequal length, held end to end: in memory or mapped from files, in one piece or in several. Knows arrays alone."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]


class Column(Protocol):
    """Many rows of which some can be taken."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> Indices:
        """[rows] of each."""

    def lengths_of(self, rows: Indices) -> Indices:
        """[B] of those at `rows` [B]."""

    def take(self, rows: Indices) -> Rows:
        """Those at `rows` [B], in that order, in memory of their own."""

    def checksum(self, before: int = 0) -> int:
        """CRC-32 of all there is, going on from `before`."""


@dataclass(frozen=True)
class Rows:
    """One piece: row i is `flat[offsets[i]:offsets[i + 1]]`, and its elements may themselves be vectors."""

    flat: Array  # [all elements, …]
    offsets: Array  # [rows + 1], whole numbers

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]], dtype: npt.DTypeLike, width: tuple[int, ...] = ()) -> Self:
        """From lists or arrays of elements of `width`, such as (2,) for pairs of numbers."""
        kept = [np.asarray(row, dtype=dtype).reshape(-1, *width) for row in rows]
        offsets = np.array([0, *accumulate(map(len, kept))], dtype=np.int64)
        return cls(np.concatenate(kept) if kept else np.zeros((0, *width), dtype=dtype), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Indices:
        return np.diff(self.offsets).astype(np.int64, copy=False)

    def lengths_of(self, rows: Indices) -> Indices:
        return (self.offsets[rows + 1] - self.offsets[rows]).astype(np.int64, copy=False)

    def take(self, rows: Indices) -> Rows:
        lengths = self.lengths_of(rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Rows(self.flat[places], offsets)

    def checksum(self, before: int = 0) -> int:
        for values in (self.offsets, self.flat):
            before = zlib.crc32(np.ascontiguousarray(values).view(np.uint8).data, before)
        return before

    def hidden(self) -> Mask:
        """[rows, longest] True where a rectangle of these rows is padding."""
        lengths = self.lengths
        return np.arange(lengths.max(initial=0)) >= lengths[:, None]

    def padded(self, dtype: npt.DTypeLike) -> Array:
        """[rows, longest, …] with zeros behind the end of each row: PAD is 0, too."""
        hidden = self.hidden()
        rectangle = np.zeros((*hidden.shape, *self.flat.shape[1:]), dtype=dtype)
        rectangle[~hidden] = self.flat
        return rectangle


class Joined:
    """Several pieces, one behind the other."""

    def __init__(self, pieces: Sequence[Column]) -> None:
        assert pieces, "one piece at least"
        self.pieces = pieces
        self.starts = np.array([0, *accumulate(map(len, pieces))], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def lengths(self) -> Indices:
        return np.concatenate([piece.lengths for piece in self.pieces])

    def lengths_of(self, rows: Indices) -> Indices:
        lengths = np.empty(len(rows), dtype=np.int64)
        for piece, wanted, inside in self._where(rows):
            lengths[wanted] = piece.lengths_of(inside)
        return lengths

    def take(self, rows: Indices) -> Rows:
        taken, order = list[Rows](), list[Indices]()
        for piece, wanted, inside in self._where(rows):
            taken.append(piece.take(inside))
            order.append(wanted)
        if not taken:
            return self.pieces[0].take(rows)
        if len(taken) == 1:
            return taken[0]
        behind_another = joined(taken)
        back = np.empty(len(rows), dtype=np.int64)
        back[np.concatenate(order)] = np.arange(len(rows))
        return behind_another.take(back)

    def checksum(self, before: int = 0) -> int:
        for piece in self.pieces:
            before = piece.checksum(before)
        return before

    def _where(self, rows: Indices) -> Iterable[tuple[Column, Indices, Indices]]:
        """Each piece that is wanted, the places in `rows` that want it, and which of its rows those want."""
        pieces = np.searchsorted(self.starts, rows, side="right") - 1
        for number in np.unique(pieces):
            wanted = np.flatnonzero(pieces == number)
            yield self.pieces[number], wanted, rows[wanted] - self.starts[number]


def joined(pieces: Sequence[Rows]) -> Rows:
    """Several pieces made one, in memory."""
    lengths = np.concatenate([piece.lengths for piece in pieces])
    return Rows(np.concatenate([piece.flat for piece in pieces]), np.concatenate([[0], np.cumsum(lengths)]))
