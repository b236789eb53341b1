"""Members in processes of their own, side by side, and how far they are. Knows jobs and processes; nothing of models."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from eyeline.compare.plan import Member
from eyeline.errors import Interrupted
from eyeline.files import write_json
from eyeline.training.reporting import Reporter, duration
from eyeline.training.signals import StopSignals

POLL = 0.2  # seconds between looks at the processes
LIVE_EVERY, PLAIN_EVERY = 1.0, 10.0  # and between reports of progress, on a terminal and elsewhere
GRACE = 60.0  # seconds that a member may take to save its state


@dataclass(frozen=True)
class Machine:
    """What members run on."""

    device: str
    threads: int  # of each member
    jobs: int  # members at a time


@dataclass(frozen=True)
class Progress:
    """How far a member is."""

    share: float  # of its budget, 0…1
    tokens_per_s: float | None

    def __str__(self) -> str:
        if self.share >= 1:
            return "predicts"
        return f"{100 * self.share:.0f} %" + (f" {self.tokens_per_s:,.0f} tok/s" if self.tokens_per_s else "")


def write_job(member: Member, tokenizers: Path, machine: Machine) -> None:
    """What the member's process will read."""
    job = {
        "config": member.config.to_dict(),
        "tokenizers": str(tokenizers.resolve()),
        "device": machine.device,
        "threads": machine.threads,
    }
    write_json(member.job, job)


def run_members(members: Sequence[Member], machine: Machine, reporter: Reporter) -> None:
    """Trains and predicts those that are not done; tells of each that fails in one line, and goes on.

    Raises:
        Interrupted: a signal came; every member has saved its state.
    """
    todo = [member for member in members if not member.outputs.exists()]
    if len(todo) < len(members):
        reporter.note(f"{len(members) - len(todo)} of {len(members)} members are done already")
    for member in todo:
        member.failure.unlink(missing_ok=True)  # it may succeed now
    pool = Pool(machine.jobs, reporter, len(members), len(members) - len(todo))
    pool.run(todo, lambda member: [str(member.job)])


def measure_speeds(members: Iterable[Member], reporter: Reporter) -> None:
    """Times members one at a time. Raises Interrupted."""
    todo = [member for member in members if not member.speed.exists()]
    if todo:
        reporter.note(f"speeds of {len(todo)} rungs, one at a time")
        Pool(1, reporter, 0, 0).run(todo, lambda member: [str(member.job), "--speed"])


class Pool:
    """Runs processes side by side until all are done, or a signal comes."""

    def __init__(self, jobs: int, reporter: Reporter, total: int, done: int) -> None:
        self.jobs, self.reporter, self.total, self.done = jobs, reporter, total, done
        self._running: dict[Member, subprocess.Popen[bytes]] = {}
        self._began = self._told = time.monotonic()
        self._at_start: dict[Member, float] = {}  # how far a member was when it was started

    def run(self, members: Sequence[Member], arguments: Callable[[Member], list[str]]) -> None:
        """Raises Interrupted."""
        waiting = list(members)
        self._began = self._told = time.monotonic()
        self._at_start = {member: progress(member).share for member in members}
        console = self.reporter.console
        live = self.reporter.verbosity >= 0 and console.is_terminal
        bar = Bar(
            BarColumn(20), TextColumn("{task.description}", markup=False), console=console, transient=True, disable=not live
        )
        with StopSignals() as signals, bar:
            task = bar.add_task("…", total=max(1, self.total), visible=self.total > 0)
            try:
                while (waiting or self._running) and signals.received is None:
                    while waiting and len(self._running) < self.jobs:
                        member = waiting.pop(0)
                        self._running[member] = _start(member, arguments(member))
                    time.sleep(POLL)
                    self._reap()
                    if self.total and time.monotonic() - self._told > (LIVE_EVERY if live else PLAIN_EVERY):
                        line = self._line(waiting)
                        if live:
                            bar.update(task, description=line, completed=self.done)
                        else:
                            self.reporter.note(line)
            finally:
                self._stop()
        if signals.received is not None:
            raise Interrupted(f"stopped by {signals.received}; started again with the same --out, it goes on where it was")

    def _reap(self) -> None:
        for member, process in list(self._running.items()):
            status = process.poll()
            if status is None:
                continue
            del self._running[member]
            _close(process)
            if status == 0:
                self.done += 1
                if self.total:
                    self.reporter.note(f"done: {member.name} ({self.done} of {self.total})")
            else:
                if not member.failure.exists():
                    write_json(member.failure, {"error": f"its process ended with status {status}"})
                self.reporter.warn(f"{member.name} failed: {failure_of(member)} (see {member.log})")

    def _stop(self) -> None:
        """Asks whoever still runs to save its state, and waits."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        for process in self._running.values():
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _close(process)
        self._running.clear()

    def _line(self, waiting: Sequence[Member]) -> str:
        """Where all are: how many are done, each that runs with its share and rate, and the time left by the pace so far."""
        self._told = time.monotonic()
        shares = {member: progress(member) for member in self._running}
        parts = [f"{member.name} {now}" for member, now in shares.items()]
        began = self._at_start
        gone = sum(1 - share for member, share in began.items() if member not in shares and member not in waiting)
        gone += sum(now.share - began[member] for member, now in shares.items())
        to_do = sum(1 - share for share in began.values())
        left = f"  left {duration((self._told - self._began) * (to_do - gone) / gone)}" if gone > 0.01 else ""
        return f"{self.done} of {self.total} done  {'  '.join(parts)}{left}"


def _start(member: Member, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """In a session of its own, so that a terminal's Ctrl-C comes once, through us; with a pipe that closes when we end."""
    with member.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "eyeline.compare.member", *arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def failure_of(member: Member) -> str | None:
    """Why a member failed; None where it did not."""
    try:
        return str(json.loads(member.failure.read_text(encoding="utf-8"))["error"])
    except (OSError, ValueError, KeyError):
        return None


def events(member: Member) -> list[dict[str, Any]]:
    """What its training logged, lines that are cut short left out."""
    try:
        text = (member.run / "metrics.jsonl").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.split("\n"):
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                found.append(event)
    return found


def progress(member: Member) -> Progress:
    """How far it is, by the last event that its training logged."""
    last = next((event for event in reversed(events(member)) if event.get("split") == "train"), None)
    if last is None:
        return Progress(0.0, None)
    training = member.config.training
    bounds = {"step": training.steps, "target_tokens": training.target_tokens, "time_s": training.for_}
    share = max((float(last.get(name) or 0) / bound for name, bound in bounds.items() if bound), default=0.0)
    return Progress(min(1.0, share), last.get("tokens_per_s"))
