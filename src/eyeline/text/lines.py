"""Bytes to lines, and lines to bytes. Knows UTF-8, line ends, gzip and files; knows nothing of what a line means.

Bytes are UTF-8 whatever the locale. Only LF and CRLF end a line: a bare CR, U+2028, U+0085, VT, FF and their like are data.
A BOM at the start of the file is dropped, U+FEFF elsewhere is data, and a last line without LF counts.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from eyeline.errors import DataError

BOM = b"\xef\xbb\xbf"
NOT_UTF8 = "not UTF-8"
NUL = "NUL character"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text, without its end. `number` counts from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not text. `reason` is one of a few, for counting; `detail` says what exactly, for the message."""

    number: int
    reason: str
    detail: str


def read_lines(source: str | Path | IO[bytes], name: str | None = None) -> Iterator[Line | BadLine]:
    """The lines of a file (`.gz` is unpacked) or of a binary stream, one at a time.

    Args:
        source: a path, or an open binary stream such as `sys.stdin.buffer`, which is left open.
        name: what messages call it; by default the path, or the stream's own name.

    Raises:
        DataError: the file is absent, unreadable, a directory, or damaged gzip.
    """
    called = name or (str(source) if isinstance(source, str | Path) else str(getattr(source, "name", "input")))
    with ExitStack() as closing:
        try:
            if isinstance(source, str | Path):
                stream = closing.enter_context(_open(source))
            else:
                stream = source
            for number, raw in enumerate(stream, start=1):
                yield _line(number, raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"damaged or incomplete gzip: {error}", called) from error
        except OSError as error:
            raise DataError(_why(error), called) from error


def require_line(line: Line | BadLine, name: str, hint: str = "") -> Line:
    """The line itself, or DataError with file and line when it is not text."""
    if isinstance(line, BadLine):
        raise DataError(line.detail, name, line.number, hint)
    return line


def output_line(text: str) -> bytes:
    """One line of output: UTF-8, LF at its end and nowhere else. A raw LF or CR in the text becomes a blank."""
    return text.replace("\n", " ").replace("\r", " ").encode("utf-8", "replace") + b"\n"


def write_lines(stream: BinaryIO, texts: Iterable[str]) -> int:
    """Writes one line a text to a binary stream and returns how many."""
    count = 0
    for text in texts:
        stream.write(output_line(text))
        count += 1
    return count


def _open(path: str | Path) -> IO[bytes]:
    if str(path).lower().endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb")


def _why(error: OSError) -> str:
    """An operating system's error in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a directory, not a file"
    if isinstance(error, PermissionError):
        return "permission denied"
    return (error.strerror or str(error)).lower()


def _line(number: int, raw: bytes) -> Line | BadLine:
    """Decodes one line as it came, its end included."""
    if raw.endswith(b"\r\n"):
        raw = raw[:-2]
    elif raw.endswith(b"\n"):
        raw = raw[:-1]
    if number == 1 and raw.startswith(BOM):
        raw = raw[len(BOM) :]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        utf16 = number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        what = "it looks like UTF-16" if utf16 else f"byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the line"
        return BadLine(number, NOT_UTF8, f"{NOT_UTF8}: {what}")
    if "\0" in text:
        return BadLine(number, NUL, f"{NUL} at character {text.index(chr(0)) + 1} of the line")
    return Line(number, text)
