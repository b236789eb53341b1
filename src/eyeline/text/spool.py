"""Pairs put aside on the disk, to be gone through more than once in bounded memory. Knows pairs and one kind of file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from eyeline.errors import require
from eyeline.text.records import Pair

CHUNK = 10_000  # pairs that are in memory at a time


class Spool:
    """Pairs in a file of their own. Iterate over it as often as wanted; `count` says how many there are."""

    def __init__(self, path: Path, pairs: Iterable[Pair]) -> None:
        self._arrow: Any = require("pyarrow", "exchange")
        self.path, self.count = path, 0
        arrow = self._arrow
        text, number = arrow.string(), arrow.int64()
        fields = [("source", text), ("target", text), ("features", arrow.list_(text)), ("alignment", text)]
        schema = arrow.schema([*fields, ("path", text), ("line", number)])
        with arrow.OSFile(str(path), "wb") as sink, arrow.ipc.new_stream(sink, schema) as writer:
            coming = iter(pairs)
            while chunk := list(islice(coming, CHUNK)):
                columns = [[getattr(pair, name) for pair in chunk] for name in schema.names]
                writer.write_batch(arrow.record_batch(columns, schema=schema))
                self.count += len(chunk)

    def __iter__(self) -> Iterator[Pair]:
        for chunk in self.chunks():
            yield from chunk

    def chunks(self) -> Iterator[list[Pair]]:
        """The pairs, some at a time."""
        with self._arrow.OSFile(str(self.path), "rb") as source, self._arrow.ipc.open_stream(source) as batches:
            for batch in batches:
                columns = [column.to_pylist() for column in batch.columns]
                yield [Pair(s, t, tuple(f), a, path, line) for s, t, f, a, path, line in zip(*columns, strict=True)]
