"""Training: eyeline and each installed peer side by side, on the same synthetic corpus, the same batches, the same model.

    python benchmarks/training.py --peers PEERS/bin/python
    python benchmarks/training.py --works transformer bilstm-luong --threads 1 --clock processor --peers PEERS/bin/python

Prints a Markdown table a work: real target tokens a second (the median of the rounds), eyeline's ratio to it (the median of the
rounds' ratios), the model's arithmetic a second, its share of the matrix peak that this very run measured, and the peak of
memory: of the whole process, and of that what training added to the model and the libraries.

Each tool is a process of its own, and only one works at a time: in every round each takes one step on the same batch, so that
what the machine does meanwhile meets all of them. Who begins a round changes from round to round. `--peers` names the
interpreter of an environment that has them; those that are not installed there are said to be absent. The work `epoch` is an
epoch over 2,000 pairs in each tool's own batches, `additive-attention` the look alone, beside the plain formula ("tokens" are
its looks). With `--clock processor` seconds are those of the process, for machines that are not idle. Linux only.

    python benchmarks/training.py --profile --works transformer

shows instead where the time of eyeline's step goes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from training_works import WORKS, Work, batches, corpus, flops, look_flops, tokens

PEAK = "matrix peak"
SHAPES = [(4096, 256, 1024), (4096, 512, 2048), (2048, 2048, 2048)]  # rows, inner, columns of the products of the peak
SMALL: dict[str, Any] = {"size": 8, "inner": 16, "heads": 2, "embedding": 8, "vocabulary": 24}
SMALL |= {"length": 6.0, "pairs": 60, "tokens": 128}
PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"}
Answer = Callable[[int], dict[str, float]]


def small(work: Work) -> Work:
    """The same work in no time."""
    return replace(work, **SMALL, sentences=min(work.sentences, 4))


# ---- in the process of a tool -------------------------------------------------------------------------------------------


def work_on(tool: str, work: Work, threads: int, clock: str) -> None:
    """Answers lines of standard input, each the number of a batch, with a JSON line a step."""
    import torch
    from training_tools import PACKAGES

    answers, sys.stdout = sys.stdout, sys.stderr  # what tools print is no answer
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    now = time.process_time if clock == "processor" else time.perf_counter
    try:
        answer = answering(tool, work, now)
        said = {"version": "" if tool == PEAK else importlib.metadata.version(PACKAGES[tool]), "torch": torch.__version__}
    except (ImportError, LookupError) as error:
        print(json.dumps({"absent": str(error)}), file=answers, flush=True)
        return
    print(json.dumps({**said, "resident": resident()}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(int(line))), file=answers, flush=True)


def answering(tool: str, work: Work, now: Callable[[], float]) -> Answer:
    """From the number of a round to what its step came to."""
    from training_tools import TOOLS, looking

    def timed(step: Callable[[], float], tokens: int, flops: int) -> dict[str, float]:
        began = now()
        loss = step()
        seconds, memory = now() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"seconds": seconds, "tokens": tokens, "flops": flops, "memory": memory, "loss": loss}

    if tool == PEAK:
        return lambda number: {"flops_per_s": max(product(shape, now) for shape in SHAPES)}
    if work.kind == "look":
        look = looking(tool, work)
        return lambda number: timed(look, work.sentences * int(work.length), look_flops(work))
    step, batching = TOOLS[tool](work)
    pairs = corpus(work)
    if work.own_batches:
        whole = tokens(pairs), flops(work, pairs, tool)
        return lambda number: timed(lambda: sum(step(batch) for batch in batching(pairs, number)), *whole)
    made = batches(work, pairs)

    def answer(number: int) -> dict[str, float]:
        batch = made[number % len(made)]
        return timed(lambda: step(batch), tokens(batch), flops(work, batch, tool))

    return answer


def profile(name: str, work: Work, threads: int) -> None:
    """Prints the operations that eyeline's step spends most of its time in."""
    import torch
    from torch.profiler import ProfilerActivity
    from training_tools import TOOLS

    torch.set_num_threads(threads)
    (step, _), made = TOOLS["eyeline"](work), batches(work, corpus(work))
    step(made[0])
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as found:
        step(made[1])
    times = {event.key: event.self_cpu_time_total for event in found.key_averages()}
    total = sum(times.values())
    products = sum(time for key, time in times.items() if key.removeprefix("aten::") in PRODUCTS)
    print(f"\n### {name}\n\n{total / 1e3:.0f} ms, of which products of matrices {products / total:.0%}.\n")
    print("| operation | share |\n| --- | --: |")
    for key in sorted(times, key=lambda key: -times[key])[:15]:
        print(f"| {key} | {times[key] / total:.1%} |")


def resident() -> int:
    """Bytes of this process that are in memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def product(shape: tuple[int, int, int], now: Callable[[], float]) -> float:
    """Operations a second of the fastest of a few matrix products."""
    import torch

    rows, inner, columns = shape
    left, right, out = torch.randn(rows, inner), torch.randn(inner, columns), torch.empty(rows, columns)
    times = []
    for _ in range(4):
        began = now()
        torch.mm(left, right, out=out)
        times.append(now() - began)
    return 2 * rows * inner * columns / min(times[1:])


# ---- in the process that compares ---------------------------------------------------------------------------------------


class Tool:
    """A tool in its process, which waits while the others work."""

    def __init__(self, name: str, work: str, options: argparse.Namespace) -> None:
        ours = name in ("eyeline", "plain", PEAK)
        command = [sys.executable if ours else options.peers, __file__, "--tool", name, "--works", work]
        command += ["--threads", str(options.threads), "--clock", options.clock, *(["--small"] if options.small else [])]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
        environment = {**os.environ, **threads, "WANDB_MODE": "disabled", "HF_HUB_OFFLINE": "1"}
        self.name, self.steps, self.said = name, list[dict[str, Any]](), dict[str, Any]()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)

    def wait(self) -> None:
        """Until it is ready, or known to be absent."""
        self.said = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"absent": "its process ended; see above"}

    def step(self, number: int, counts: bool) -> None:
        assert self._process.stdin is not None
        if "absent" in self.said:
            return
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        answer = self._read()
        if "absent" in answer:
            self.said = answer
        elif counts:
            self.steps.append(answer)

    def close(self) -> None:
        self._process.communicate()

    def row(self, ours: Tool, peak: float) -> str:
        """A line of the table."""
        if "absent" in self.said or not self.steps:
            return f"| {self.name} | absent: {self.said.get('absent')} |" + " |" * 5
        rate = median(step["tokens"] / step["seconds"] for step in self.steps)
        done = median(step["flops"] / step["seconds"] for step in self.steps)
        ratio = median(theirs["seconds"] / our["seconds"] for theirs, our in zip(self.steps, ours.steps, strict=True))
        memory = max(step["memory"] for step in self.steps)
        cells = [f"{self.name} {self.said['version']}", f"{rate:,.0f}", f"{ratio:.2f}", f"{done / 1e9:.1f}", f"{done / peak:.2f}"]
        return "| " + " | ".join([*cells, f"{memory / 1e6:,.0f}", f"{(memory - self.said['resident']) / 1e6:,.0f}"]) + " |"


def compare(name: str, options: argparse.Namespace) -> None:
    """Runs a work and prints its table."""
    began, work = time.monotonic(), WORKS[name]
    rounds = options.rounds or work.rounds
    tools = [Tool(each, name, options) for each in (PEAK, "eyeline", *(each for each in work.peers if each in options.tools))]
    for tool in tools:
        tool.wait()
    for number in range(options.warm_up + rounds):
        for place in range(len(tools)):
            tools[(place + number) % len(tools)].step(number, number >= options.warm_up)
    for tool in tools:
        tool.close()
    peak, ours, *_ = tools
    best = max(step["flops_per_s"] for step in peak.steps)
    print(
        f"\n### {name}\n\nMatrix peak of this run {best / 1e9:.0f} GFLOP/s; {rounds} rounds, {time.monotonic() - began:.0f} s.\n"
    )
    print("| tool | target tokens/s | eyeline's ratio | GFLOP/s | share of peak | peak memory, MB | of that training's, MB |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for tool in tools[1:]:
        print(tool.row(ours, best), flush=True)
    others = {f"{tool.name} has PyTorch {found}" for tool in tools if (found := tool.said.get("torch")) != ours.said.get("torch")}
    print("".join(f"\n{each}\n" for each in sorted(others) if "None" not in each), end="", flush=True)


def hardware() -> str:
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--tools", nargs="*", default=["joeynmt", "huggingface", "yoyodyne", "plain"], help="beside eyeline")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="of an environment that has them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="as many for each work; each has its own number")
    parser.add_argument("--warm-up", type=int, default=1, help="rounds that do not count")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--profile", action="store_true", help="where the time of eyeline's steps goes")
    parser.add_argument("--small", action="store_true", help="tiny models and batches, to see that all runs")
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    options = parser.parse_args()
    works = {name: small(WORKS[name]) if options.small else WORKS[name] for name in options.works}
    if options.tool:
        work_on(options.tool, *works.values(), options.threads, options.clock)
        return
    if options.profile:
        for name, work in works.items():
            profile(name, work, options.threads)
        return
    began = time.monotonic()
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    version = importlib.metadata.version("torch")
    print(f"{hardware()}; PyTorch {version}, {options.threads} threads; commit {commit}; seconds of the {options.clock} clock")
    for name in options.works:
        compare(name, options)
    print(f"\n{(time.monotonic() - began) / 60:.0f} minutes, {hardware()}")


if __name__ == "__main__":
    main()
