"""What a training run leaves to read: metrics.jsonl, and what trackers make of the same. Knows numbers and texts; not models."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from eyeline.files import cannot_write, write_text
from eyeline.training.trackers import Pixels, Tracker


class Log(Protocol):
    """Takes in what a run tells."""

    trackers: Sequence[Tracker]

    def log(self, split: str, step: int, values: dict[str, Any]) -> None: ...

    def text(self, name: str, step: int, text: str) -> None: ...

    def picture(self, name: str, step: int, pixels: Pixels) -> None: ...

    def close(self) -> None: ...


class NoJournal:
    """That of a process for which another one writes."""

    trackers: Sequence[Tracker] = ()

    def log(self, split: str, step: int, values: dict[str, Any]) -> None: ...

    def text(self, name: str, step: int, text: str) -> None: ...

    def picture(self, name: str, step: int, pixels: Pixels) -> None: ...

    def close(self) -> None: ...


class Journal:
    """Appends one JSON object a logged event, and tells trackers the same numbers.

    Args:
        run: the run directory.
        step: where the run goes on; events after it, left by a session that was killed, are dropped, so that each stands once.
        trackers: closed with the journal.
    """

    def __init__(self, run: Path, step: int, trackers: Sequence[Tracker] = ()) -> None:
        self.path = run / "metrics.jsonl"
        self.trackers: Sequence[Tracker] = trackers
        kept = [line for line in _lines(self.path) if 0 <= _step(line) <= step and not _ended(line, step)]
        write_text(self.path, "".join(line + "\n" for line in kept))
        try:
            self._file = self.path.open("ab", buffering=0)  # unbuffered: a line is in the file when it is logged
        except OSError as error:
            raise cannot_write(error, self.path) from error

    def log(self, split: str, step: int, values: dict[str, Any]) -> None:
        """Logs an event of `train`, `valid` or `test`. What is not a finite number is written as null.

        Raises:
            UserError: when the disk is full.
        """
        plain = {key: _plain(value) for key, value in values.items()}
        line = (json.dumps({"step": step, "split": split, **plain}, ensure_ascii=False) + "\n").encode()
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            numbers = {f"{split}/{key}": value for key, value in plain.items() if isinstance(value, int | float)}
            for tracker in self.trackers:
                tracker.numbers(step, numbers)
        except OSError as error:
            raise cannot_write(error, self.path) from error

    def text(self, name: str, step: int, text: str) -> None:
        """A text for trackers alone, such as example outputs. Raises UserError when the disk is full."""
        try:
            for tracker in self.trackers:
                tracker.text(name, step, text)
        except OSError as error:
            raise cannot_write(error, self.path.parent) from error

    def picture(self, name: str, step: int, pixels: Pixels) -> None:
        """A picture [height, width, 3] for trackers alone. Raises UserError when the disk is full."""
        try:
            for tracker in self.trackers:
                tracker.picture(name, step, pixels)
        except OSError as error:
            raise cannot_write(error, self.path.parent) from error

    def close(self) -> None:
        self._file.close()
        for tracker in self.trackers:
            tracker.close()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None  # the digits that single precision has
    return value


def _ended(line: str, step: int) -> bool:
    """Whether it tells of the end of a run at `step`: whoever goes on from there ends it anew."""
    return '"split": "average"' in line and _step(line) == step


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []


def _step(line: str) -> int:
    """The step of an event; -1 for a line that was cut short."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return -1
