"""Files that are whole or absent: written beside, flushed to the disk, renamed into place. Knows no formats."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eyeline.errors import UserError


@contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A path next to `path` to write to; renamed onto it when the block ends well, removed when it does not.

    Raises:
        UserError: when the disk is full or the place cannot be written; what stood at `path` is then still there.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
        flush(path.parent)
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror or error}", str(path)) from error
    finally:
        with suppress(OSError):  # already renamed, or its directory never came to be
            temporary.unlink()


@contextmanager
def directory_beside(path: str | Path) -> Iterator[Path]:
    """As `beside`, for a directory: it appears under its name with all its files on the disk, or not at all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.iterdir():
            flush(file)
        flush(temporary)
        if path.exists():  # a directory cannot be renamed onto one with files in it, so the old one steps aside first
            os.replace(path, temporary.with_suffix(".old"))
        os.replace(temporary, path)
        flush(path.parent)
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror or error}", str(path)) from error
    finally:
        for leftover in (temporary, temporary.with_suffix(".old")):
            shutil.rmtree(leftover, ignore_errors=True)


def flush(path: Path) -> None:
    """Waits until a file's bytes, or a directory's names, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some file systems cannot flush a directory; the rename is atomic all the same
            raise
    finally:
        os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Writes UTF-8 with LF line ends, whole or not at all."""
    with beside(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def write_json(path: str | Path, value: Any) -> None:
    """Writes JSON with readable characters, whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def write_with(path: str | Path, write: Callable[[Path], None]) -> None:
    """Lets `write` fill a path beside `path`, then puts it in place."""
    with beside(path) as temporary:
        write(temporary)
