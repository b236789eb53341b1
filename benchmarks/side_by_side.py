"""What benchmarks beside other tools share: a process a tool, of which one works at a time, and the machine's peak.

Needs NumPy and PyTorch at most, so that it runs in the environment of every tool. Linux only.
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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PEAK = "matrix peak"
PACKAGES = {  # tool -> whose version is told
    "eyeline": "eyeline",
    "eyeline-int8": "eyeline",
    "plain": "torch",
    "ctranslate2": "ctranslate2",
    "ctranslate2-int8": "ctranslate2",
    "huggingface": "transformers",
    "joeynmt": "joeynmt",
    "yoyodyne": "yoyodyne",
}
OURS = ("eyeline", "eyeline-int8", "plain", PEAK)  # what runs in the interpreter that compares
SHAPES = [(4096, 256, 1024), (4096, 512, 2048), (2048, 2048, 2048)]  # rows, inner, columns of the products of the peak
PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"}
Answer = Callable[[int], dict[str, float]]  # from the number of a round to what the tool's part of it came to


# ---- in the process of a tool -------------------------------------------------------------------------------------------


def answer_lines(tool: str, threads: int, clock: str, answering: Callable[[Callable[[], float]], Answer]) -> None:
    """Answers lines of standard input, each the number of a round, with a JSON line each.

    Args:
        answering: from a clock, in seconds, to what answers; ImportError and LookupError say that the tool is absent.
    """
    import torch

    answers, sys.stdout = sys.stdout, sys.stderr  # what tools print is no answer
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    try:
        answer = answering(time.process_time if clock == "processor" else time.perf_counter)
        version = importlib.metadata.version(PACKAGES[tool]) if tool in PACKAGES else ""
        said = {"version": version, "torch": torch.__version__}
    except (ImportError, LookupError) as error:
        print(json.dumps({"absent": str(error)}), file=answers, flush=True)
        return
    print(json.dumps({**said, "resident": resident()}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(int(line))), file=answers, flush=True)


def peak_answer(now: Callable[[], float]) -> Answer:
    return lambda number: {"flops_per_s": max(product(shape, now) for shape in SHAPES)}


def resident() -> int:
    """Bytes of this process that are in memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def peak_memory() -> int:
    """The most bytes of this process that were in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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


def print_profile(title: str, work: Callable[[], object]) -> None:
    """Prints the operations that `work` spends most of its time in."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        work()
    times = {event.key: event.self_cpu_time_total for event in found.key_averages()}
    total = sum(times.values())
    products = sum(time for key, time in times.items() if key.removeprefix("aten::") in PRODUCTS)
    print(f"\n### {title}\n\n{total / 1e3:.0f} ms, of which products of matrices {products / total:.0%}.\n")
    print("| operation | share |\n| --- | --: |")
    for key in sorted(times, key=lambda key: -times[key])[:15]:
        print(f"| {key} | {times[key] / total:.1%} |")


# ---- in the process that compares ---------------------------------------------------------------------------------------


def run(
    description: str,
    works: Mapping[str, Any],
    tools: Sequence[str],
    small: Callable[[Any], Any],
    answering: Callable[[str, Any, Callable[[], float]], Answer],
    profile: Callable[[str, Any], None],
    compare: Callable[[str, argparse.Namespace], None],
) -> None:
    """The command of such a benchmark: compares, or shows a profile, or is the process of one tool.

    Args:
        works: by name.
        tools: beside eyeline.
        small: the same work in no time.
        answering: (tool, work, clock) -> what answers rounds.
        profile, compare: print what they find of a work.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    _add_options(parser, works, tools)
    options = parser.parse_args()
    chosen = {name: small(works[name]) if options.small else works[name] for name in options.works}
    if options.tool:
        (work,) = chosen.values()
        answer_lines(options.tool, options.threads, options.clock, partial(answering, options.tool, work))
        return
    if options.profile:
        import torch

        torch.set_num_threads(options.threads)
        for name, work in chosen.items():
            profile(name, work)
        return
    began = time.monotonic()
    print(_heading(options))
    for name in chosen:
        compare(name, options)
    print(f"\n{(time.monotonic() - began) / 60:.0f} minutes, {_machine()}")


def _add_options(parser: argparse.ArgumentParser, works: Mapping[str, Any], tools: Sequence[str]) -> None:
    parser.add_argument("--works", nargs="+", choices=works, default=list(works))
    parser.add_argument("--tools", nargs="*", default=list(tools), help="beside eyeline")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="of an environment that has them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="as many for each work; each has its own number")
    parser.add_argument("--warm-up", type=int, default=1, help="rounds that do not count")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--profile", action="store_true", help="where the time of eyeline's steps goes")
    parser.add_argument("--small", action="store_true", help="tiny models and batches, to see that all runs")
    parser.add_argument("--tool", help=argparse.SUPPRESS)


class Tool:
    """A tool in its process, which waits while the others work."""

    def __init__(self, script: str, name: str, work: str, options: argparse.Namespace) -> None:
        ours = name in OURS
        command = [sys.executable if ours else options.peers, script, "--tool", name, "--works", work]
        command += ["--threads", str(options.threads), "--clock", options.clock, *(["--small"] if options.small else [])]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
        environment = {**os.environ, **threads, "WANDB_MODE": "disabled", "HF_HUB_OFFLINE": "1"}
        self.name, self.answers, self.said = name, list[dict[str, Any]](), dict[str, Any]()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)

    @property
    def absence(self) -> str | None:
        """Why there is nothing to tell of it."""
        if self.answers and "absent" not in self.said:
            return None
        return str(self.said.get("absent"))

    @property
    def memory(self) -> float:
        """Bytes at the peak."""
        return float(max(answer["memory"] for answer in self.answers))

    def wait(self) -> None:
        """Until it is ready, or known to be absent."""
        self.said = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"absent": "its process ended; see above"}  # type: ignore[no-any-return]

    def answer(self, number: int, counts: bool) -> None:
        assert self._process.stdin is not None
        if "absent" in self.said:
            return
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        answer = self._read()
        if "absent" in answer:
            self.said = answer
        elif counts:
            self.answers.append(answer)

    def close(self) -> None:
        self._process.communicate()


def alternate(tools: Sequence[Tool], rounds: int, warm_up: int) -> None:
    """Runs all rounds. One tool works at a time, and who begins a round changes from round to round."""
    for tool in tools:
        tool.wait()
    for number in range(warm_up + rounds):
        for place in range(len(tools)):
            tools[(place + number) % len(tools)].answer(number, number >= warm_up)
    for tool in tools:
        tool.close()


def other_torch(tools: Sequence[Tool], ours: Tool) -> str:
    """A line for each tool that stands on another PyTorch."""
    others = {f"{tool.name} has PyTorch {found}" for tool in tools if (found := tool.said.get("torch")) != ours.said.get("torch")}
    return "".join(f"\n{each}\n" for each in sorted(others) if "None" not in each)


def _machine() -> str:
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"


def _heading(options: argparse.Namespace) -> str:
    """Where, with what and of which commit."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    version = importlib.metadata.version("torch")
    return f"{_machine()}; PyTorch {version}, {options.threads} threads; commit {commit}; seconds of the {options.clock} clock"
