"""What a person sees while a run trains: a live line on a terminal, plain lines elsewhere. Knows numbers and texts."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

PLAIN_EVERY = 10.0  # seconds between plain lines


def duration(seconds: float) -> str:
    """`45s`, `3m20s`, `2h05m`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def peak_memory_mb() -> float | None:
    """The process's largest resident size so far, in MB; None where the system does not say, as on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


@dataclass
class Pace:
    """Where a run is and how fast it goes."""

    step: int
    total: int | None  # steps; None while only a duration bounds the run
    loss: float  # plain cross-entropy a token since the last report
    tokens_per_s: float  # real target tokens
    learning_rate: float
    left_s: float | None  # seconds to the end
    to_validation_s: float | None

    def line(self) -> str:
        parts = [
            f"step {self.step}" + (f"/{self.total}" if self.total else ""),
            f"loss {self.loss:.4f}",
            f"{self.tokens_per_s:,.0f} tok/s",
            f"lr {self.learning_rate:.2g}",
        ]
        if self.to_validation_s is not None:
            parts.append(f"validation in {duration(self.to_validation_s)}")
        if self.left_s is not None:
            parts.append(f"left {duration(self.left_s)}")
        memory = peak_memory_mb()
        if memory is not None:
            parts.append(f"mem {memory:.0f} MB")
        return "  ".join(parts)


@dataclass
class Reporter:
    """Writes to standard error. `verbosity`: -1 quiet (warnings only), 0 normal, 1 more."""

    verbosity: int = 0
    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    _live: Progress | None = None
    _task: Any = None
    _last: float = 0.0

    def note(self, text: str) -> None:
        if self.verbosity >= 0:
            self.console.print(text, markup=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        self.console.print(f"warning: {text}", markup=False, soft_wrap=True, style="yellow")

    def table(self, renderable: Any) -> None:
        if self.verbosity >= 0:
            self.console.print(renderable)

    def start(self) -> None:
        """Opens the live line where there is a terminal."""
        if self.verbosity >= 0 and self.console.is_terminal:
            self._live = Progress(
                BarColumn(20), TextColumn("{task.description}", markup=False), console=self.console, transient=True
            )
            self._task = self._live.add_task("…", total=None)
            self._live.start()

    def wants_pace(self) -> bool:
        """Whether it is time for another report of the pace."""
        every = 0.5 if self._live else PLAIN_EVERY if self._last else 3.0
        return self.verbosity >= 0 and time.monotonic() - (self._last or self._began) >= every

    def pace(self, pace: Pace) -> None:
        self._last = time.monotonic()
        if self._live:
            self._live.update(self._task, description=pace.line(), completed=pace.step, total=pace.total)
        else:
            self.note(pace.line())

    def validated(self, step: int, score: float) -> None:
        """Told what each validation found by the run's metric; what it raises ends the run, with the weights so far kept."""

    def stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def __post_init__(self) -> None:
        self._began = time.monotonic()


def silent() -> Reporter:
    """A reporter of which nothing is seen, not even warnings: that of a process for which another one speaks."""
    return Reporter(-1, Console(quiet=True))
