"""What it takes to prepare a corpus of any size and to begin training on it: rate, and the most memory that each command held.

    python benchmarks/prepare.py --pairs 10000000 --threads 1

Three commands, each a process of its own, as a user types them: `eyeline generate reversal`, `eyeline prepare`, and
`eyeline train` for a few updates. Prints a Markdown table. "Own" is what a process has allocated (RssAnon, looked at fifty times
a second; on Linux alone); "resident" counts the pages of mapped files, too, of which the system takes back what it needs. Several
numbers after --pairs show what grows with them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MB, LOOK_EVERY = 1e6, 0.02  # bytes; seconds between looks at a process
UPDATES = 10
SETTINGS = ["--set", "tokenizer.kind=whitespace-symbols"]


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    processor_seconds: float
    own: int  # bytes, the most that it had allocated at a look; 0 where the system does not say
    resident: int  # bytes


def measured(arguments: Sequence[str | Path], log: Path) -> Cost:
    """Runs `eyeline` with these arguments to its end; what it said on standard error is in `log`."""
    began, own = time.perf_counter(), 0
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", "eyeline", *map(str, arguments)], stderr=said)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            own = max(own, allocated(process.pid))
            time.sleep(LOOK_EVERY)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{log.read_text(encoding='utf-8')}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, own, usage.ru_maxrss * unit)


def allocated(process: int) -> int:
    """Bytes that a process holds beside mapped files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").split("\n")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


def size(path: Path) -> float:
    """MB of a file, or of all files in a directory."""
    files = [path] if path.is_file() else list(path.iterdir())
    return sum(file.stat().st_size for file in files) / MB


def chain(pairs: int, threads: int, folder: Path) -> None:
    """All three commands; prints a row each."""
    text, data, run = folder / "pairs.tsv.gz", folder / "data", folder / "run"
    common = ["--threads", str(threads), "--seed", "1", "--device", "cpu"]
    generate = ["generate", "reversal", "--pairs", str(pairs), "--length", "5-40", "-o", text, *common]
    prepare = ["prepare", "--train", text, "--columns", "source,target,-", "--out", data, *SETTINGS, *common]
    train = [
        "train",
        "--architecture",
        "luong",
        "--train",
        data,
        "--out",
        run,
        "--steps",
        str(UPDATES),
        "--device",
        "cpu",
        *common,
    ]
    for name, arguments, made in (("generate", generate, text), ("prepare", prepare, data), ("train", train, run)):
        cost = measured(arguments, folder / f"{name}.log")
        work = f"{name}, {UPDATES} updates" if name == "train" else name
        rate = "" if name == "train" else f"{pairs / cost.processor_seconds:,.0f}"
        times = f"{cost.seconds:,.0f} | {cost.processor_seconds:,.1f} | {rate}"
        memory = f"{cost.own / MB:,.0f} | {cost.resident / MB:,.0f}"
        print(f"| {pairs:,} | {work} | {times} | {memory} | {size(made):,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000_000], help="how many; several make a table of them all")
    parser.add_argument("--threads", type=int, default=1, help="of each command")
    parser.add_argument("--directory", help="where text, shards and run are put for a while; about 400 bytes a pair")
    options = parser.parse_args()
    os.environ.update({f"{name}_NUM_THREADS": str(options.threads) for name in ("OMP", "MKL", "RAYON")})
    print("| pairs | command | seconds | processor seconds | pairs a processor second | own, MB | resident, MB | written, MB |")
    print("| --: | --- | --: | --: | --: | --: | --: | --: |")
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(dir=options.directory) as folder:
            chain(pairs, options.threads, Path(folder))


if __name__ == "__main__":
    main()
