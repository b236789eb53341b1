"""Corpora as Arrow files of ids, written a shard at a time and mapped into memory when read. Knows ids and files; no text.

A shard is an Arrow file with one record batch, whose columns are lists: `source` and `target` (ids, END included), and where
pairs have them `copies`, `values` (of F numbers each) and `links` (of two tokens each). Ids take two bytes, or four if they must.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eyeline.contracts import END
from eyeline.data.corpus import Corpus, Sources
from eyeline.data.rows import Column, Joined, Rows
from eyeline.errors import RunError, require
from eyeline.text.vectors import Values

SHARD = 2**24  # ids of the longer column, at which a shard is full: 32 or 64 MB of each
BLOCK = 2**20  # bytes of a file that are read at a time
Links = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Shard:
    """A file of the store, as its manifest has it."""

    file: str
    pairs: int
    size: int  # bytes
    checksum: int  # CRC-32 of the ids of both sides: the same whoever writes them
    file_checksum: int  # CRC-32 of all bytes


@dataclass(frozen=True)
class Kinds:
    """What the pairs of a store have beside two sequences, and how wide ids are."""

    source_bytes: int
    target_bytes: int  # of copies, too
    copies: bool = False
    values: int = 0  # numbers of each element; 0: none
    links: bool = False


def id_bytes(largest: int) -> int:
    """Bytes that hold ids up to `largest`."""
    return 2 if largest < 2**16 else 4


class ShardWriter:
    """Writes pairs to shards NAME-00000.arrow, … of a directory; what is not yet written is less than a shard."""

    def __init__(self, directory: Path, name: str, kinds: Kinds) -> None:
        self.directory, self.name, self.kinds = directory, name, kinds
        self.shards: list[Shard] = []
        self._empty()

    def add(
        self,
        source: Sequence[int],
        target: Sequence[int],
        copies: Sequence[int] | None = None,
        values: Values | None = None,
        links: Links = (),
    ) -> None:
        """One pair, without END."""
        for name, ids in (("source", source), ("target", target), ("copies", copies)):
            if name in self._columns and ids is not None:
                column, offsets = self._columns[name]
                column.extend(ids)
                column.append(END)
                offsets.append(len(column))
        if values is not None and self.kinds.values:
            column, offsets = self._columns["values"]
            column.extend(values.reshape(-1).tolist())
            column.extend([0.0] * self.kinds.values)  # END has no numbers
            offsets.append(len(column) // self.kinds.values)
        if self.kinds.links:
            column, offsets = self._columns["links"]
            for link in links:
                column.extend(link)
            offsets.append(len(column) // 2)
        if max(len(self._columns[side][0]) for side in ("source", "target")) >= SHARD:
            self.flush()

    def flush(self) -> None:
        """Writes what there is, if anything."""
        pairs = len(self._columns["source"][1]) - 1
        if not pairs:
            return
        arrow: Any = require("pyarrow", "exchange")
        path = self.directory / f"{self.name}-{len(self.shards):05d}.arrow"
        columns = {name: Rows(np.asarray(flat), np.asarray(offsets)) for name, (flat, offsets) in self._columns.items()}
        widths = {"values": self.kinds.values, "links": 2}
        lists = [_list_array(arrow, column, widths.get(name, 0)) for name, column in columns.items()]
        batch = arrow.record_batch(lists, names=list(columns))
        with path.open("wb") as sink, arrow.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        checksum = columns["target"].checksum(columns["source"].checksum())
        self.shards.append(Shard(path.name, pairs, path.stat().st_size, checksum, _file_checksum(path)))
        self._empty()

    def _empty(self) -> None:
        codes = {2: "H", 4: "I"}
        kinds = {"source": codes[self.kinds.source_bytes], "target": codes[self.kinds.target_bytes]}
        if self.kinds.copies:
            kinds["copies"] = codes[self.kinds.target_bytes]
        if self.kinds.values:
            kinds["values"] = "f"
        if self.kinds.links:
            kinds["links"] = "I"
        self._columns: dict[str, tuple[array[Any], array[int]]] = {
            name: (array(code), array("q", [0])) for name, code in kinds.items()
        }


def _list_array(arrow: Any, column: Rows, width: int) -> Any:
    values = arrow.array(column.flat)
    if width:
        values = arrow.FixedSizeListArray.from_arrays(values, width)
    return arrow.LargeListArray.from_arrays(arrow.array(column.offsets), values)


def _file_checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def mapped_corpus(directory: Path, shards: Iterable[Shard], vocabulary: int) -> Corpus:
    """The pairs of all shards in order; each file is read once, to be checked; its ids stay on the disk until wanted.

    Args:
        vocabulary: V, from which on extended ids are a source's own.

    Raises:
        RunError: a shard is absent, or not what was written.
    """
    pieces: dict[str, list[Column]] = {}
    checksum = 0
    for shard in shards:
        for name, rows in _mapped(directory / shard.file, shard).items():
            pieces.setdefault(name, []).append(rows)
        checksum = zlib.crc32(f"{shard.pairs} {shard.checksum}".encode(), checksum)
    columns = {name: Joined(rows) for name, rows in pieces.items()}
    sources = Sources(columns["source"], columns.get("copies"), vocabulary, columns.get("values"))
    return Corpus(sources, columns["target"], columns.get("links"), known_checksum=checksum)


def _mapped(path: Path, shard: Shard) -> dict[str, Rows]:
    arrow: Any = require("pyarrow", "exchange")
    try:
        if path.stat().st_size != shard.size:
            raise RunError(f"damaged: {path.stat().st_size:,} bytes where {shard.size:,} were written", str(path), "prepare anew")
        if _file_checksum(path) != shard.file_checksum:
            raise RunError("damaged: other bytes than were written", str(path), "prepare anew")
        batch = arrow.ipc.open_file(arrow.memory_map(str(path))).get_batch(0)
        columns = {name: _rows(batch.column(name)) for name in batch.schema.names}
    except (OSError, arrow.ArrowException) as error:
        raise RunError(f"not a readable shard: {str(error).partition(chr(10))[0]}", str(path), "prepare anew") from error
    return columns


def _rows(column: Any) -> Rows:
    """A list column as arrays over the same memory."""
    offsets: npt.NDArray[np.int64] = column.offsets.to_numpy(zero_copy_only=True)
    values = column.values
    if hasattr(values.type, "list_size"):
        flat = values.values.to_numpy(zero_copy_only=True).reshape(-1, values.type.list_size)
    else:
        flat = values.to_numpy(zero_copy_only=True)
    return Rows(flat, offsets)
