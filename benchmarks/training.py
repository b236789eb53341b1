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
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from side_by_side import PEAK, Answer, Tool, alternate, other_torch, peak_answer, peak_memory, print_profile, run
from training_works import WORKS, Work, batches, corpus, flops, look_flops, tokens

SMALL: dict[str, Any] = {"size": 8, "inner": 16, "heads": 2, "embedding": 8, "vocabulary": 24}
SMALL |= {"length": 6.0, "pairs": 60, "tokens": 128}


def small(work: Work) -> Work:
    """The same work in no time."""
    return replace(work, **SMALL, sentences=min(work.sentences, 4))


# ---- in the process of a tool -------------------------------------------------------------------------------------------


def answering(tool: str, work: Work, now: Callable[[], float]) -> Answer:
    """From the number of a round to what its step came to."""
    from training_tools import TOOLS, looking

    def timed(step: Callable[[], float], tokens: int, flops: int) -> dict[str, float]:
        began = now()
        loss = step()
        return {"seconds": now() - began, "tokens": tokens, "flops": flops, "memory": peak_memory(), "loss": loss}

    if tool == PEAK:
        return peak_answer(now)
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


def profile(name: str, work: Work) -> None:
    """Prints the operations that eyeline's step spends most of its time in."""
    from training_tools import TOOLS

    (step, _), made = TOOLS["eyeline"](work), batches(work, corpus(work))
    step(made[0])
    print_profile(name, lambda: step(made[1]))


# ---- in the process that compares ---------------------------------------------------------------------------------------


def row(tool: Tool, ours: Tool, peak: float) -> str:
    """A line of the table."""
    if tool.absence:
        return f"| {tool.name} | absent: {tool.absence} |" + " |" * 5
    rate = median(step["tokens"] / step["seconds"] for step in tool.answers)
    done = median(step["flops"] / step["seconds"] for step in tool.answers)
    ratio = median(theirs["seconds"] / our["seconds"] for theirs, our in zip(tool.answers, ours.answers, strict=True))
    cells = [f"{tool.name} {tool.said['version']}", f"{rate:,.0f}", f"{ratio:.2f}", f"{done / 1e9:.1f}", f"{done / peak:.2f}"]
    return "| " + " | ".join([*cells, f"{tool.memory / 1e6:,.0f}", f"{(tool.memory - tool.said['resident']) / 1e6:,.0f}"]) + " |"


def compare(name: str, options: argparse.Namespace) -> None:
    """Runs a work and prints its table."""
    began, work = time.monotonic(), WORKS[name]
    rounds = options.rounds or work.rounds
    names = [PEAK, "eyeline", *(each for each in work.peers if each in options.tools)]
    tools = [Tool(__file__, each, name, options) for each in names]
    alternate(tools, rounds, options.warm_up)
    peak, ours, *_ = tools
    best = max(step["flops_per_s"] for step in peak.answers)
    print(
        f"\n### {name}\n\nMatrix peak of this run {best / 1e9:.0f} GFLOP/s; {rounds} rounds, {time.monotonic() - began:.0f} s.\n"
    )
    print("| tool | target tokens/s | eyeline's ratio | GFLOP/s | share of peak | peak memory, MB | of that training's, MB |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for tool in tools[1:]:
        print(row(tool, ours, best), flush=True)
    print(other_torch(tools, ours), end="", flush=True)


def main() -> None:
    run(__doc__, WORKS, ["joeynmt", "huggingface", "yoyodyne", "plain"], small, answering, profile, compare)


if __name__ == "__main__":
    main()
