"""Additive attention, forwards and backwards: autograd over the plain formula against eyeline's slices.

    python benchmarks/additive_attention.py --threads 1

Prints a Markdown table for S = T = 100, 400 and 1000: all looks at once, and one after another as a decoder does that feeds the
context back. Every measurement is a process of its own; both forms take turns, so that what else the machine does meets both.

Memory is the peak of resident memory over what was resident before, inputs counted in the latter. Time is wall time and, beside
it, processor time, which is less moved by what else is running. Ratios are medians of the ratios of the rounds. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from eyeline.nn.additive import additive_scores

SOURCES, WIDTH = 4, 256  # B and A; the values that are looked at are twice as wide, as states of both directions are


def plain(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[:, :, None] + keys[:, None]) @ vector


FORMS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"plain": plain, "slices": additive_scores}


def attend(scores: Callable[[Tensor, Tensor, Tensor], Tensor], length: int, stepwise: bool) -> Callable[[], None]:
    """Scores, weights, context and all gradients of random inputs."""
    torch.manual_seed(0)
    query, keys = (torch.randn(SOURCES, length, WIDTH, requires_grad=True) for _ in range(2))
    vector, values = torch.randn(WIDTH, requires_grad=True), torch.randn(SOURCES, length, 2 * WIDTH)

    def run() -> None:
        query.grad = keys.grad = vector.grad = None
        looks = query.split(1 if stepwise else length, 1)
        contexts = [scores(look, keys, vector).softmax(-1) @ values for look in looks]
        torch.cat(contexts, 1).square().mean().backward()

    return run


def status(line: str) -> int:
    """A line of /proc/self/status in bytes."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(each for each in text.splitlines() if each.startswith(line)).split()[1]) * 1024


def measure(form: str, length: int, stepwise: bool, runs: int) -> dict[str, float]:
    """In this very process: bytes and seconds, the latter of the fastest of `runs`."""
    attend(FORMS[form], 8, stepwise)()
    run = attend(FORMS[form], length, stepwise)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is counted from here
    wall, processor = [], []
    for _ in range(runs):
        begin = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - begin[0])
        processor.append(time.process_time() - begin[1])
    return {"bytes": status("VmHWM") - before, "wall": min(wall), "processor": min(processor)}


def apart(form: str, length: int, stepwise: bool, threads: int) -> dict[str, float]:
    """The same in a process of its own."""
    runs = 5 if length < 400 else 3 if length < 1000 else 1
    words = ["--one", form, str(length), str(int(stepwise)), str(runs), "--threads", str(threads)]
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def available() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) * 1024


def row(length: int, stepwise: bool, rounds: int, threads: int) -> str:
    """A line of the table; "–" where the plain formula would not fit."""
    fits = 3.5 * 4 * SOURCES * length * length * WIDTH < available()
    measured: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS if fits or form == "slices"}
    for _ in range(rounds):
        for form, found in measured.items():
            found.append(apart(form, length, stepwise, threads))
    cells = [str(length), "one after another" if stepwise else "at once"]
    for what, unit, digits in (("bytes", 2**20, 0), ("wall", 1e-3, 0), ("processor", 1e-3, 0)):
        for form in FORMS:
            cells.append(f"{median(each[what] for each in measured[form]) / unit:,.{digits}f}" if form in measured else "–")
        pairs = list(zip(measured["plain"], measured["slices"], strict=True)) if fits else []
        cells.append(f"{median(a[what] / b[what] for a, b in pairs):.1f}" if pairs else "–")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="processes of each form a line")
    parser.add_argument("--lengths", type=int, nargs="+", default=[100, 400, 1000])
    parser.add_argument("--one", nargs=4, metavar=("FORM", "LENGTH", "STEPWISE", "RUNS"), help="a single measurement, as JSON")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.one:
        form, length, stepwise, runs = given.one
        print(json.dumps(measure(form, int(length), stepwise == "1", int(runs))))
        return
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, threads: {given.threads}\n")
    heads = [f"{what} {of}" for what in ("MiB", "ms", "processor ms") for of in ("plain", "slices", "ratio")]
    print("| S = T | looks | " + " | ".join(heads) + " |")
    print("| ---: | --- |" + " ---: |" * len(heads))
    for length in given.lengths:
        for stepwise in (False, True):
            print(row(length, stepwise, given.rounds, given.threads), flush=True)


if __name__ == "__main__":
    main()
