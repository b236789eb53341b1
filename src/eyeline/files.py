"""Files that are whole or absent: written beside, flushed to the disk, renamed into place. Knows no formats."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from eyeline.errors import UserError

_LEFTOVER = re.compile(r"\..*\.[0-9a-f]{8}\.(partial|old)", re.DOTALL)


@contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A path to write to, on the disk of `path`; renamed onto it when the block ends well, removed when it does not.

    It keeps the file's name and stands in a directory of its own, so that whatever a library leaves around it goes too. Links
    are followed; a device or a pipe, such as /dev/null, is written to as it is. The file gets ordinary permissions (umask),
    whatever the library that wrote it gave it.

    Raises:
        UserError: when the disk is full or the place cannot be written; what stood at `path` is then still there.
    """
    given, path = path, Path(os.path.realpath(path))
    if path.is_dir():
        raise UserError("a directory is in the place of the file", str(given))
    if path.exists() and not path.is_file():
        with refusals(given):
            yield path
        return
    with refusals(given), _private_directory(path) as private:
        yield private / path.name
        _settle(private / path.name, _mode(private))
        os.replace(private / path.name, path)
        flush(path.parent)


@contextmanager
def directory_beside(path: str | Path) -> Iterator[Path]:
    """As `beside`, for a directory of files: it appears under its name with all of them on the disk, or not at all."""
    given, path = path, Path(os.path.realpath(path))
    with refusals(given), _private_directory(path) as private:
        yield private
        for file in private.iterdir():
            _settle(file, _mode(private))
        flush(private)
        if path.exists():  # a directory cannot be renamed onto one with files in it, so the old one steps aside first
            os.replace(path, private.with_suffix(".old"))
        os.replace(private, path)
        flush(path.parent)


def remove_directory(path: Path) -> None:
    """Removes a directory that cannot be seen in part: it loses its name first. What a kill leaves of it is a leftover; what
    cannot be removed stays."""
    private = _private_name(path).with_suffix(".old")
    with suppress(OSError):
        os.replace(path, private)
        shutil.rmtree(private, ignore_errors=True)


def remove_leftovers(directory: Path, name: str = "") -> None:
    """Removes what a process that was killed while it wrote has left in `directory`; nothing else has such names.

    Args:
        name: of the file or directory that it wrote; all of them without it.
    """
    for path in directory.iterdir() if directory.is_dir() else ():
        if _LEFTOVER.fullmatch(path.name) and path.name.startswith(f".{name[:40]}{'.' if name else ''}"):
            shutil.rmtree(path, ignore_errors=True)


def flush(path: Path) -> None:
    """Waits until a file's bytes, or a directory's names, are on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no directories
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


def cannot_write(error: OSError, path: str | Path) -> UserError:
    """An operating system's refusal in one line that names the file."""
    return UserError(f"cannot write: {error.strerror or error}", str(path))


@contextmanager
def refusals(path: str | Path) -> Iterator[None]:
    """An OSError inside becomes a UserError that names `path`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(error, path) from error


def claim(stream: IO[Any] | int) -> bool:
    """Whether this process is now the only one that has claimed an open file, until it closes it; where the system has no such
    locks, nobody is kept out."""
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True


@contextmanager
def _private_directory(path: Path) -> Iterator[Path]:
    """A new directory next to `path`, gone when the block ends."""
    private = _private_name(path)
    try:
        private.mkdir(parents=True)
        yield private
    finally:
        for leftover in (private, private.with_suffix(".old")):
            shutil.rmtree(leftover, ignore_errors=True)


def _private_name(path: Path) -> Path:
    return path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex[:8]}.partial")  # short: names have at most 255 bytes


def _settle(file: Path, mode: int) -> None:
    """Gives a finished file its permissions and waits until it is on the disk."""
    if file.is_file():
        file.chmod(mode)
    flush(file)


def _mode(directory: Path) -> int:
    """What a new file in a directory that we made may be: the same as the directory, but for running it."""
    return stat.S_IMODE(directory.stat().st_mode) & 0o666
