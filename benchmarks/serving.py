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
    together: float
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
    single = asyncio.run(load(running.port, requests, 1, lambda place, answer: alone.update({place: _good(answer)})))
    order = random.Random(2).choices(range(len(requests)), k=asked.requests)
    compared = Compared()

    def told(place: int, answer: Answer) -> None:
        seconds.append(answer.seconds)
        compared.add(alone[order[place]], _good(answer))
        if len(seconds) in marks:
            marks[len(seconds)] = running.resident

    took = asyncio.run(load(running.port, [requests[place] for place in order], asked.clients, told))
    ranked = sorted(seconds)
    p50, p99 = (1000 * ranked[int(share * (len(ranked) - 1))] for share in (0.5, 0.99))
    early, late = marks.values()
    return Loaded(len(requests) / single, len(order) / took, p50, p99, compared, early, late)


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
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--different", type=int, default=600)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--early", type=int, default=200)
    parser.add_argument("--late", type=int, default=2000)
    parser.add_argument("--fuzzed", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=None)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    lines = [line.split("\t")[0] for line in asked.lines.read_text(encoding="utf-8").split("\n") if line.strip()]
    options = ["--threads", str(asked.threads)] if asked.threads else []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with service(asked.run, place / "a", options) as running:
            first = asyncio.run(Client(running.port).ask(mixed(lines, 1, 5)[0]))
            print("| what | measured |\n| --- | --- |")
            print(f"| from the command to the first answer possible | {running.ready:.1f} s |")
            print(f"| first prediction | {1000 * first.seconds:.0f} ms |")
            print(f"| resident then | {running.resident:,.0f} MB |", flush=True)
            found = under_load(running, lines, asked)
            print(f"| one request at a time | {found.alone:.1f} requests/s |")
            ratio = found.together / found.alone
            faster = f"{found.together:.1f} requests/s, {ratio:.1f} times that"
            print(f"| {asked.clients} clients, {asked.requests:,} requests | {faster} |")
            print(f"| latency | p50 {found.p50:.0f} ms, p99 {found.p99:.0f} ms |")
            same = found.compared
            print(f"| answers as if asked alone | {same.same:,}; near-ties {same.near_ties:,}; others {same.others:,} |")
            growth = f"{found.early:,.0f} MB, {found.late:,.0f} MB ({100 * (found.late / found.early - 1):+.1f} %)"
            print(f"| resident after {asked.early:,} and {asked.late:,} requests | {growth} |")
            sys.stdout.flush()
            statuses, status, seconds = asyncio.run(ended(running, lines, asked.clients, signal.SIGTERM, 2.0))
            print(f"| SIGTERM under load | {shown(statuses)}; exit status {status} after {seconds:.1f} s |", flush=True)
        with service(asked.run, place / "b", options) as running:
            port = running.port
            statuses, status, seconds = asyncio.run(ended(running, lines, asked.clients, signal.SIGKILL, 2.0))
            print(f"| SIGKILL under load | {shown(statuses)} |")
        with service(asked.run, place / "c", options, port) as running:
            again = asyncio.run(Client(running.port).ask(mixed(lines, 1, 5)[0]))
            print(f"| started again on the same port | {again.status} after {running.ready:.1f} s |", flush=True)
            statuses, wrong = survived(running, asked.fuzzed, 8)
            print(f"| {asked.fuzzed:,} fuzzed bodies | {shown(statuses)}; wrong: {len(wrong)} |")
    for fault in wrong[:20]:
        print(fault)
    sys.exit(bool(wrong or same.others))


def shown(statuses: Counter[int]) -> str:
    names = {0: "no answer"}
    return ", ".join(f"{names.get(status, status)}: {count:,}" for status, count in sorted(statuses.items()))


if __name__ == "__main__":
    main()
