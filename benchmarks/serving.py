"""A service under load: right answers, speed, memory, its end and its beginning, and bodies from anyone.

    python benchmarks/serving.py RUN LINES --threads 1

RUN is served by `eyeline serve` in a process of its own; sources are the first column of LINES. Prints a Markdown table. Every
answer under load is held against that to the same request asked alone; one whose score differs by less than 1e-4 while its text
does is counted as a near-tie. Resident memory is that of the service's process, on Linux alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_client import SECRET, Answer, Client, fuzzed, load, mixed

WATCHED = """
import os, sys
seen = set()
def look(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0] not in seen:
        seen.add(arguments[0])
        os.write(descriptor, arguments[0].encode("utf-8", "backslashreplace") + b"\\n")
descriptor = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
sys.addaudithook(look)
from eyeline.cli import main
main()
"""


@dataclass
class Service:
    """A service in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path  # its standard error
    opened: Path  # the paths of files that it has opened, each once
    ready: float  # seconds until it answered

    @property
    def resident(self) -> float:
        """MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").split("\n")
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1000

    @property
    def processor(self) -> float:
        """Seconds of a processor that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def end(self, number: int) -> tuple[int, float]:
        """Its status and the seconds that it took to end after a signal."""
        began = time.perf_counter()
        self.process.send_signal(number)
        return self.process.wait(120), time.perf_counter() - began


@contextmanager
def service(run: str, folder: Path, options: Sequence[str], port: int = 0) -> Iterator[Service]:
    """One that answers; it is killed behind `with` if it has not ended."""
    folder.mkdir(parents=True, exist_ok=True)
    log, opened = folder / "log", folder / "opened"
    words = [sys.executable, "-c", WATCHED, str(opened), "serve", f"run={run}", "--port", str(port), *options]
    began = time.perf_counter()
    with log.open("wb") as said:
        process = subprocess.Popen(words, stderr=said)
    try:
        while b"serving run on " not in (text := log.read_bytes()):
            if process.poll() is not None:
                sys.exit(text.decode())
            time.sleep(0.02)
        found = text.split(b"serving run on http://127.0.0.1:")[1].split()[0]
        yield Service(process, int(found), log, opened, time.perf_counter() - began)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@dataclass
class Compared:
    """Answers under load beside those to the same requests alone."""

    same: int = 0
    near_ties: int = 0
    others: int = 0

    def add(self, alone: Any, now: Any) -> None:
        if "translatedText" in alone:
            self.same += alone == now
            self.others += alone != now
            return
        for left, right in zip(alone["predictions"], now["predictions"], strict=True):
            near = abs(left["score"] - right["score"]) < 1e-4
            texts = [[one["text"] for one in each["n_best"]] for each in (left, right)]
            self.same += near and texts[0] == texts[1]
            self.near_ties += near and texts[0] != texts[1]
            self.others += not near


@dataclass
class Loaded:
    """What a load showed."""

    alone: float  # requests a second, one at a time
    alone_ms: float  # of a processor for each
    together: float
    together_ms: float
    p50: float  # ms
    p99: float
    compared: Compared
    early: float  # MB after the first requests
    late: float


def under_load(running: Service, lines: Sequence[str], asked: argparse.Namespace) -> Loaded:
    """`asked.different` requests one at a time, and `asked.requests` of them from all clients at once."""
    requests = mixed(lines, asked.different, 1)
    alone: dict[int, Any] = {}
    seconds: list[float] = []
    marks = {asked.early: 0.0, asked.late: 0.0}
    asyncio.run(load(running.port, requests[:20], 1, lambda place, answer: None))
    used = running.processor
    single = asyncio.run(load(running.port, requests, 1, lambda place, answer: alone.update({place: _good(answer)})))
    alone_ms = 1000 * (running.processor - used) / len(requests)
    order = random.Random(2).choices(range(len(requests)), k=asked.requests)
    compared = Compared()

    def told(place: int, answer: Answer) -> None:
        seconds.append(answer.seconds)
        compared.add(alone[order[place]], _good(answer))
        if len(seconds) in marks:
            marks[len(seconds)] = running.resident

    used = running.processor
    took = asyncio.run(load(running.port, [requests[place] for place in order], asked.clients, told))
    together_ms = 1000 * (running.processor - used) / len(order)
    ranked = sorted(seconds)
    p50, p99 = (1000 * ranked[int(share * (len(ranked) - 1))] for share in (0.5, 0.99))
    early, late = marks.values()
    return Loaded(len(requests) / single, alone_ms, len(order) / took, together_ms, p50, p99, compared, early, late)


def _good(answer: Answer) -> Any:
    assert answer.status == 200, answer
    return json.loads(answer.body)


async def ended(
    running: Service, lines: Sequence[str], clients: int, number: int, after: float
) -> tuple[Counter[int], int, float]:
    """Statuses of what clients asked while the service ended by a signal (0: no answer), its exit status, and seconds."""
    statuses, over = Counter[int](), False
    requests = mixed(lines, 500, 3)

    async def one(first: int) -> None:
        client = Client(running.port)
        place = first
        while not over:
            statuses[(await client.ask(requests[place % len(requests)])).status] += 1
            place += 1
        client.close()

    asking = [asyncio.create_task(one(first)) for first in range(clients)]
    await asyncio.sleep(after)
    status, seconds = await asyncio.to_thread(running.end, number)
    over = True
    await asyncio.gather(*asking)
    return statuses, status, seconds


def survived(running: Service, count: int, clients: int) -> tuple[Counter[int], list[str]]:
    """Statuses of fuzzed bodies, and what is wrong: answers with a traceback or a path, files opened that bodies named."""
    statuses, wrong = Counter[int](), list[str]()
    requests = fuzzed(count, 4)
    size = running.opened.stat().st_size

    def told(place: int, answer: Answer) -> None:
        statuses[answer.status] += 1
        if answer.status >= 500 or answer.status == 0 or b"Traceback" in answer.body or b'.py"' in answer.body:
            wrong.append(f"{answer.status} {requests[place]!r} {answer.body[:300]!r}")

    asyncio.run(load(running.port, requests, clients, told))
    opened = running.opened.read_text(encoding="utf-8").split("\n")
    wrong += [f"opened {path}" for path in opened if SECRET in path]
    with running.opened.open("rb") as file:
        file.seek(size)
        later = file.read().decode().split("\n")[:-1]
    wrong += [f"opened {path}" for path in later if not path.startswith(("/proc/", "/sys/")) and not _library(path)]
    return statuses, wrong


def _library(path: str) -> bool:
    """Whether a file is Python's own or a package's, which are read when they are first used."""
    return any(
        os.path.abspath(path).startswith(os.path.abspath(place) + os.sep)
        for place in {*sys.path, sys.prefix, sys.base_prefix}
        if place
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("lines", type=Path)
    parser.add_argument("--requests", type=int, default=10_000, help="0: bodies from anyone alone")
    parser.add_argument("--different", type=int, default=600)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--early", type=int, default=200)
    parser.add_argument("--late", type=int, default=2000)
    parser.add_argument("--fuzzed", type=int, default=20_000, help="0: none of them")
    parser.add_argument("--threads", type=int, default=None)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    lines = [line.split("\t")[0] for line in asked.lines.read_text(encoding="utf-8").split("\n") if line.strip()]
    options = ["--threads", str(asked.threads)] if asked.threads else []
    print("| what | measured |\n| --- | --- |", flush=True)
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        if asked.requests:
            fine = loaded(asked, lines, options, Path(folder, "a"))
            port = killed(asked, lines, options, Path(folder, "b"))
            with service(asked.run, Path(folder, "c"), options, port) as running:
                again = asyncio.run(Client(running.port).ask(mixed(lines, 1, 5)[0]))
                row("started again on the same port", f"{again.status} after {running.ready:.1f} s")
        if asked.fuzzed:
            fine = thrown_at(asked, options, Path(folder, "d")) and fine
    sys.exit(not fine)


def row(what: str, measured: str) -> None:
    print(f"| {what} | {measured} |", flush=True)


def loaded(asked: argparse.Namespace, lines: Sequence[str], options: Sequence[str], folder: Path) -> bool:
    """Whether every answer under load was the right one."""
    with service(asked.run, folder, options) as running:
        first = asyncio.run(Client(running.port).ask(mixed(lines, 1, 5)[0]))
        row("from the command to the first answer possible", f"{running.ready:.1f} s")
        row("first prediction", f"{1000 * first.seconds:.0f} ms")
        row("resident then", f"{running.resident:,.0f} MB")
        found = under_load(running, lines, asked)
        row("one request at a time", f"{found.alone:.1f} requests/s; {found.alone_ms:.1f} ms of a processor each")
        faster = f"{found.together:.1f} requests/s: {found.together / found.alone:.1f} times as many"
        cheaper = f"{found.together_ms:.1f} ms of a processor each: {found.alone_ms / found.together_ms:.1f} times less"
        row(f"{asked.clients} clients, {asked.requests:,} requests", f"{faster}; {cheaper}")
        row("latency", f"p50 {found.p50:.0f} ms, p99 {found.p99:.0f} ms")
        same = found.compared
        row("answers as if asked alone", f"{same.same:,}; near-ties {same.near_ties:,}; others {same.others:,}")
        growth = f"{found.early:,.0f} MB, {found.late:,.0f} MB ({100 * (found.late / found.early - 1):+.1f} %)"
        row(f"resident after {asked.early:,} and {asked.late:,} requests", growth)
        statuses, status, seconds = asyncio.run(ended(running, lines, asked.clients, signal.SIGTERM, 2.0))
        row("SIGTERM under load", f"{shown(statuses)}; exit status {status} after {seconds:.1f} s")
    return not same.others and not status


def killed(asked: argparse.Namespace, lines: Sequence[str], options: Sequence[str], folder: Path) -> int:
    """The port of a service that was killed."""
    with service(asked.run, folder, options) as running:
        statuses, _, _ = asyncio.run(ended(running, lines, asked.clients, signal.SIGKILL, 2.0))
        row("SIGKILL under load", shown(statuses))
    return running.port


def thrown_at(asked: argparse.Namespace, options: Sequence[str], folder: Path) -> bool:
    """Whether a service bore fuzzed bodies. It takes few inputs at a time, so that none of them takes long."""
    with service(asked.run, folder, [*options, "--max-items", "40"]) as running:
        statuses, wrong = survived(running, asked.fuzzed, 8)
    row(f"{asked.fuzzed:,} fuzzed bodies", f"{shown(statuses)}; wrong: {len(wrong)}")
    for fault in wrong[:20]:
        print(fault)
    return not wrong


def shown(statuses: Counter[int]) -> str:
    names = {0: "no answer"}
    return ", ".join(f"{names.get(status, status)}: {count:,}" for status, count in sorted(statuses.items()))


if __name__ == "__main__":
    main()
