"""What a training run leaves to read: metrics.jsonl and TensorBoard's files. Knows numbers and texts; not models."""

from __future__ import annotations

import errno
import json
import math
import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from eyeline.errors import MissingExtra, require
from eyeline.files import cannot_write, write_text


class Journal:
    """Appends one JSON object a logged event, and the same numbers to TensorBoard where it is installed.

    Args:
        run: the run directory.
        step: where the run goes on; events after it, left by a session that was killed, are dropped, so that each stands once.
    """

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / "metrics.jsonl"
        kept = [line for line in _lines(self.path) if 0 <= _step(line) <= step]
        write_text(self.path, "".join(line + "\n" for line in kept))
        try:
            self._file = self.path.open("ab", buffering=0)  # unbuffered: a line is in the file when it is logged
            self._board = _tensorboard(run / "tensorboard", step)
        except OSError as error:
            raise cannot_write(error, self.path) from error

    @property
    def has_tensorboard(self) -> bool:
        return self._board is not None

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
            if self._board is not None:
                for key, value in plain.items():
                    if isinstance(value, int | float):
                        self._board.add_scalar(f"{split}/{key}", value, step)
        except OSError as error:
            raise cannot_write(error, self.path) from error

    def text(self, name: str, step: int, text: str) -> None:
        """A text for TensorBoard alone, such as example outputs."""
        if self._board is not None:
            self._board.add_text(name, text, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            with suppress(OSError):  # of a full disk, which `log` has told of
                self._board.close()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None  # the digits that single precision has
    return value


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []


def _step(line: str) -> int:
    """The step of an event; -1 for a line that was cut short."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return -1


def _tensorboard(directory: Path, step: int) -> Any:
    try:
        require("tensorboard", "plots")
    except MissingExtra:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports, which users can do nothing about
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(directory), purge_step=step + 1 if step else None)
