"""An output file that grows beside its place, and that another process can go on with after any end of this one.

Knows bytes, lines and one small file of state; no predictions. `FILE.partial` holds what is written and how far that is; once all
is there, FILE appears whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from eyeline.bulk.fingerprints import SIZE, Means
from eyeline.bulk.lines import Seen
from eyeline.errors import Interrupted, UserError
from eyeline.files import claim, flush, refusals, write_json
from eyeline.predictor.inputs import Line

OUTPUT, STATE = "output", "state.json"
AT_ONCE = 1 << 20  # bytes that wait before they are written


@dataclass(frozen=True)
class State:
    """How far an output is, and how it came about."""

    means: Means
    lines: int = 0  # of the input
    size: int = 0  # bytes of the output that stand for them
    digest: str = ""  # of these lines
    seen: Seen = field(default_factory=Seen)


class Resumable:
    """An output that is kept portion by portion; keeps `lines.Output`.

    Args:
        stream: unbuffered, so that closing it writes nothing.
    """

    def __init__(self, folder: Path, stream: IO[bytes], state: State) -> None:
        self.folder, self._stream, self._state = folder, stream, state
        self._digest = hashlib.blake2b(digest_size=SIZE)
        self._waiting, self._size = bytearray(), state.size
        self.verified = not state.lines  # whether the lines that are done are known to be the input's
        with refusals(folder):
            stream.truncate(state.size)

    @property
    def lines(self) -> int:
        return self._state.lines

    @property
    def seen(self) -> Seen:
        """What was counted among the lines that are done."""
        return self._state.seen

    def after(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines behind those that are done, once it is sure that these are the same as they were. Raises UserError."""
        coming = iter(lines)
        where, hint = str(self.folder), "give the same input, or remove this to begin anew"
        for number in range(self.lines):
            line = next(coming, None)
            if line is None:
                raise UserError(f"{self.lines:,} lines were predicted, and the input has {number:,}", where, hint)
            self._read(line)
        if not self.verified and self._digest.hexdigest() != self._state.digest:
            raise UserError(f"the first {self.lines:,} lines are not those that were predicted", where, hint)
        self.verified = True
        yield from coming

    def write(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) >= AT_ONCE:
            self._put()

    def commit(self, lines: Sequence[Line]) -> None:
        """From here another process can go on: first the output is on the disk, then what says so."""
        self._put()
        with refusals(self.folder):
            os.fsync(self._stream.fileno())
        for line in lines:
            self._read(line)
        state = State(self._state.means, self.lines + len(lines), self._size, self._digest.hexdigest(), self.seen)
        write_json(self.folder / STATE, asdict(state))
        self._state = state

    def _put(self) -> None:
        with refusals(self.folder), memoryview(bytes(self._waiting)) as data:
            written = 0
            while written < len(data):
                written += self._stream.write(data[written:])
        self._size += len(self._waiting)
        self._waiting.clear()

    def _read(self, line: Line) -> None:
        self._digest.update("".join(f"{part}\n" for part in line).encode())  # no part has the end of a line in it


@contextmanager
def resumable(path: Path, means: Means, resume: bool) -> Iterator[Resumable]:
    """An output that becomes `path` when the block ends well, and else is kept as far as it was committed.

    Args:
        means: all that the bytes depend on but the input.
        resume: goes on with what is there, or begins where nothing is.

    Raises:
        UserError: what is there was made by other means, is damaged, or is being written by another process; without `resume`,
            something is there; the disk is full, or the place cannot be written.
        Interrupted: by SIGINT, where something is kept.
    """
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise UserError("a directory is in the place of the file", str(path))
    folder, output = path.with_name(f"{path.name}.partial"), None
    with refusals(path):
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / OUTPUT).exists():  # it is in its place, and its process was killed before it had tidied up
            (folder / STATE).unlink(missing_ok=True)
        stream = (folder / OUTPUT).open("ab", buffering=0)
    try:
        with stream:
            if not claim(stream):
                raise UserError("another process is writing this file", str(path), "wait for it, or name another file")
            output = Resumable(folder, stream, _begun(folder, means, resume))
            yield output
            _finish(folder / OUTPUT, path)
    except KeyboardInterrupt:
        if output is None or not output.lines:
            raise
        raise Interrupted(_kept(output)) from None
    except UserError as error:
        if output is None or not output.lines or not output.verified:
            raise
        raise UserError(error.what, error.where, "; ".join(filter(None, (error.hint, _kept(output))))) from error
    finally:
        if output is not None and not (output.lines and (folder / OUTPUT).exists()):
            shutil.rmtree(folder, ignore_errors=True)


def _finish(written: Path, path: Path) -> None:
    with refusals(path):
        flush(written)
        os.replace(written, path)
        flush(path.parent)


def _kept(output: Resumable) -> str:
    return f"{output.lines:,} lines are kept ({output.folder}), --resume goes on behind them"


def _begun(folder: Path, means: Means, resume: bool) -> State:
    """What an earlier process left. Raises UserError where this one cannot go on with it."""
    file, anew = folder / STATE, "or remove it to begin anew"
    if not file.exists():
        return State(means)
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        state = State(Means(**value.pop("means")), seen=Seen(**value.pop("seen")), **value)
        whole = (folder / OUTPUT).stat().st_size >= state.size
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        whole = False
    if not whole:
        raise UserError("what is here is damaged", str(folder), "remove it to begin anew")
    if not resume:
        what = f"{state.lines:,} lines of an interrupted output are here"
        raise UserError(what, str(folder), f"add --resume to go on behind them, {anew}")
    if difference := means.difference(state.means):
        raise UserError(difference, str(folder), f"go on as it was begun, {anew}")
    return state
