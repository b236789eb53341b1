"""One training or one comparison at a time in a directory. Knows the file system alone."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from eyeline.errors import RunError
from eyeline.files import claim, refusals


class Claim:
    """A claim to a directory until the block ends, or the process does.

    Without it two trainings would remove each other's half-written files and take turns at the journal.

    Args:
        work: what is done here, as the refusal names it.
    """

    def __init__(self, directory: Path, work: str = "training") -> None:
        self.directory = directory
        self.work = work
        self._open: int | None = None

    def make(self, create: bool = False) -> None:
        """Claims the directory where it exists and has not been claimed by this.

        Args:
            create: makes it where it does not exist.

        Raises:
            RunError: another process has claimed it, or it is a file.
            UserError: it cannot be made.
        """
        if self.directory.exists() and not self.directory.is_dir():
            raise RunError("a file is in the way", str(self.directory), "name another --out")
        if create:
            with refusals(self.directory):
                self.directory.mkdir(parents=True, exist_ok=True)
        if self._open is not None or not self.directory.is_dir() or os.name == "nt":  # Windows opens no directories
            return
        self._open = os.open(self.directory, os.O_RDONLY)
        if not claim(self._open):
            raise RunError(f"another {self.work} is at work here", str(self.directory), "wait for it, or name another --out")

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open is not None:
            os.close(self._open)
            self._open = None
