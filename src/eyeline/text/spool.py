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
        schema = arrow.schema([*fields, ("path", arrow.dictionary(number, text)), ("line", number)])
        with path.open("wb") as sink, arrow.ipc.new_stream(sink, schema) as writer:
            coming = iter(pairs)
            while chunk := list(islice(coming, CHUNK)):
                columns = [[getattr(pair, name) for pair in chunk] for name in schema.names]
                writer.write_batch(arrow.record_batch(columns, schema=schema))
                self.count += len(chunk)

    def __iter__(self) -> Iterator[Pair]:
        with self._arrow.OSFile(str(self.path), "rb") as source, self._arrow.ipc.open_stream(source) as batches:
            for batch in batches:
                for s, t, features, *rest in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield Pair(s, t, tuple(features), *rest)
