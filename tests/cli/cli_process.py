"""What a command leaves, and its command line in a process of its own. Knows bytes and statuses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ASCII_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


@dataclass(frozen=True)
class Done:
    """What a command left."""

    status: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        """Its results, a line each; only LF ends one."""
        assert not self.out or self.out.endswith(b"\n")
        return self.out.decode("utf-8").split("\n")[:-1]

    @property
    def error(self) -> str:
        """The one line of a failure that the user can mend."""
        assert self.status == 2, self.err
        assert self.out == b""
        assert self.err.count("\n") == 1
        assert self.err.startswith("error: ")
        assert "Traceback" not in self.err
        return self.err.removeprefix("error: ").rstrip("\n")

    def well(self) -> Done:
        """Itself, when it ended well and warned of nothing."""
        assert (self.status, "warning" in self.err) == (0, False), self.err
        return self


Command = Callable[..., Done]


def python(*arguments: str | Path, options: Sequence[str] = ()) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, *options, "-m", "eyeline", *map(str, arguments)]
