"""Word vectors from the files of word2vec, GloVe and fastText, one row at a time. Knows their bytes; no vocabulary, no model.

| file | first line | a row |
| --- | --- | --- |
| word2vec text, fastText `.vec` | `ROWS WIDTH` | the token, then WIDTH numbers, a blank before each |
| GloVe text | a row | the same |
| word2vec binary | `ROWS WIDTH` | the token, a blank, WIDTH little-endian float32, perhaps LF |

Only U+0020 separates and only LF (or CRLF) ends a row: any other white space may be part of a token or be one, and in text so may
U+0020 itself, since the numbers are counted from the end of the row. Any of the files may be `.gz`.
"""

from __future__ import annotations

import codecs
import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from eyeline.errors import DataError

Vector = NDArray[np.float32]

_HEAD = 1 << 20  # bytes that are looked at to find out what a file is
_ROWS_SEEN = 100  # whose width decides where no first line says it
_CHUNK = 1 << 20
_LONGEST_TOKEN = 1 << 16  # bytes; more without a blank is no token
_LARGEST = float(np.finfo(np.float32).max)
_BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"([0-9]{1,12}) ([1-9][0-9]{0,6}) ?")
_FRACTION = re.compile(rb"[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_FOREIGN = {
    b"\xba\x16\x4f\x2f": ("a fastText model, not vectors", "its .vec file has them"),
    b"\x1f\x8b": ("compressed, but its name does not end in .gz", "rename it"),
    b"PK\x03\x04": ("a zip archive", "unpack it"),
}


@dataclass(frozen=True)
class Layout:
    """How a file is to be read."""

    width: int  # numbers in a vector
    rows: int | None  # as the first line says; None without such a line
    binary: bool = False


def vectors_width(path: str | Path) -> int:
    """How many numbers the vectors of a file have; reads its beginning alone.

    Raises:
        DataError: the file is absent, damaged, or none of the kinds above.
    """
    return _layout(path).width


def read_vectors(path: str | Path, wanted: Collection[str]) -> dict[str, Vector]:
    """The vectors of the tokens that are `wanted`, as the file gives them; nothing else of it is kept in memory.

    Tokens are compared as they are: nothing is stripped, split or lower-cased. Of a token that comes twice the first row counts.

    Raises:
        DataError: with the file and the line, or the number of the binary row: too few numbers or too many, a wanted one that is
            no finite number, a file that ends early, or one that goes on after the rows that its first line promises.
    """
    layout = _layout(path)
    keys = {token.encode("utf-8"): token for token in wanted}
    found: dict[str, Vector] = {}
    with _opened(path) as stream:
        rows = _binary_rows(stream, path, layout) if layout.binary else _text_rows(stream, path, layout)
        for place, token, row in rows:
            name = keys.get(token)
            if name is not None and name not in found:
                found[name] = _from_bytes(row, path, place) if layout.binary else _from_text(row, layout.width, path, place)
    return found


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file; what the system and gzip refuse becomes a DataError."""
    try:
        if str(path).lower().endswith(".gz"):
            with gzip.open(path, "rb") as packed:
                yield cast(IO[bytes], packed)
        else:
            with open(path, "rb") as plain:
                yield plain
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"damaged or incomplete gzip: {error}", path) from error
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {(error.strerror or str(error)).lower()}", path) from error


# ---- what a file is ------------------------------------------------------------------------------------------------------------


def _layout(path: str | Path) -> Layout:
    with _opened(path) as stream:
        head = stream.read(_HEAD)
    for magic, (what, hint) in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(what, path, hint=hint)
    first, _, rest = head.removeprefix(_BOM).partition(b"\n")
    header = _HEADER.fullmatch(first.removesuffix(b"\r"))
    if header is None:
        return Layout(_usual_width(head, path), None)
    rows, width = int(header[1]), int(header[2])
    return Layout(width, rows, binary=_is_binary(rest, width, path))


def _usual_width(head: bytes, path: str | Path) -> int:
    """The most frequent number of blanks in the first rows, the lowest of equally frequent ones: most tokens hold none."""
    lines = head.split(b"\n")
    whole = (lines if len(head) < _HEAD or len(lines) < 3 else lines[:-1])[:_ROWS_SEEN]
    counts = Counter(_bare(line).count(b" ") for line in whole if line)
    width = min(counts, key=lambda blanks: (-counts[blanks], blanks), default=0)
    if width == 0 or not all(map(_is_number, _bare(whole[0]).rsplit(b" ", width)[1:])):
        raise DataError("no word vectors: a row is a token and its numbers, with blanks between them", path, 1)
    return width


def _is_binary(rest: bytes, width: int, path: str | Path) -> bool:
    """Whether what follows the first line is binary: not if it begins with a row of text; else if its name says so, or if it
    holds what text does not."""
    fields = _bare(rest.partition(b"\n")[0]).rsplit(b" ", width)
    if not rest or (len(fields) == width + 1 and all(map(_is_number, fields[1:]))):
        return False
    if str(path).lower().removesuffix(".gz").endswith(".bin") or b"\0" in rest[:_CHUNK]:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(rest)  # which allows for a character that is cut at the end
    except UnicodeDecodeError:
        return True
    return False


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field  # Python allows 1_000


# ---- rows: where they stand, their token, their numbers ------------------------------------------------------------------------


def _bare(line: bytes) -> bytes:
    """A row without its end, and without the one blank that word2vec and fastText leave behind the last number."""
    return line.removesuffix(b"\n").removesuffix(b"\r").removesuffix(b" ")


def _text_rows(stream: IO[bytes], path: str | Path, layout: Layout) -> Iterator[tuple[int, bytes, bytes]]:
    """(line number, token, the whole row) of each row."""
    width, found = layout.width, 0
    for number, line in enumerate(stream, start=1):
        if number == 1 and layout.rows is not None:
            continue
        row = _bare(line)
        if number == 1 and row.startswith(_BOM) and not row.startswith(_BOM + b" "):
            row = row.removeprefix(_BOM)  # before a blank it is a token: the first row's
        blanks = row.count(b" ")
        if blanks < width:
            raise DataError(f"{blanks} numbers where {width} are wanted", path, number)
        token = row[: row.index(b" ")] if blanks == width else row.rsplit(b" ", width)[0]
        if blanks > width and all(_FRACTION.fullmatch(part) for part in token.split(b" ")[1:]):
            raise DataError(f"{blanks} numbers where {width} are wanted", path, number)
        if found == layout.rows:
            raise DataError(f"a row beyond the {layout.rows:,} that the first line promises", path, number)
        found += 1
        yield number, token, row
    if layout.rows is not None and found < layout.rows:
        raise DataError(f"cut short: {found:,} vectors where the first line promises {layout.rows:,}", path)


def _binary_rows(stream: IO[bytes], path: str | Path, layout: Layout) -> Iterator[tuple[int, bytes, bytes]]:
    """(number of the row, token, bytes of the vector) of each row."""
    assert layout.rows is not None
    stream.readline()
    size, held, start = 4 * layout.width, b"", 0
    for number in range(1, layout.rows + 1):
        while (blank := held.find(b" ", start)) < 0 or len(held) < blank + 1 + size:
            if blank < 0 and len(held) - start > _LONGEST_TOKEN:
                raise DataError(f"vector {number:,} has no token: {_LONGEST_TOKEN:,} bytes without a blank", path)
            more = stream.read(_CHUNK)
            if not more:
                raise DataError(f"cut short: it ends within vector {number:,} of {layout.rows:,}", path)
            held, start = held[start:] + more, 0
        token, start = held[start:blank], blank + 1 + size
        yield number, token.removeprefix(b"\n") if number > 1 else token, held[blank + 1 : start]
    if (held[start:] + stream.read(2)).strip(b"\n"):
        raise DataError(f"it goes on after the {layout.rows:,} vectors that the first line promises", path)


def _from_text(row: bytes, width: int, path: str | Path, line: int) -> Vector:
    fields = row.rsplit(b" ", width)[1:]
    for field in fields:
        if not _is_number(field):
            raise DataError(f"'{field.decode('utf-8', 'replace')[:20]}' is not a number", path, line)
    values = [float(field) for field in fields]
    for value, field in zip(values, fields, strict=True):
        if not math.fabs(value) <= _LARGEST:  # a NaN is not less than anything
            raise DataError(f"{field.decode()[:20]} is not a finite number", path, line)
    return np.array(values, dtype=np.float32)


def _from_bytes(row: bytes, path: str | Path, number: int) -> Vector:
    vector = np.frombuffer(row, dtype="<f4").astype(np.float32)
    if not np.isfinite(vector).all():
        raise DataError(f"vector {number:,} holds {vector[~np.isfinite(vector)][0]}, which is not a finite number", path)
    return vector
