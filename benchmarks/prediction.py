"""Prediction: eyeline and each installed peer side by side, on the same sources, models of one shape, outputs of one length.

    python benchmarks/prediction.py --peers PEERS/bin/python
    python benchmarks/prediction.py --works transformer-beam --threads 1 --clock processor --peers PEERS/bin/python

Prints a Markdown table a work: sentences a second (the median of the rounds), eyeline's ratio to it (the median of the rounds'
ratios), milliseconds a step, the model's arithmetic as a share of the matrix peak that this very run measured (in single
precision, also where weights have 8 bits), and the peak of memory: of the whole process, and what of that is neither model nor
library.

Each tool is a process of its own, and only one works at a time: in every round each translates the same sources, so that what the
machine does meanwhile meets all of them; `eyeline-int8` is `--precision int8`. Who begins a round changes from round to round.
Sources are those of the training benchmark, of uneven lengths, sorted, with the encoder's time in the figures; weights are
random, and every output has the same number of tokens. `--peers` names the interpreter of an environment that has the others;
those that are not installed there are said to be absent. With `--clock processor` seconds are those of the process, for machines
that are not idle. Linux only.

    python benchmarks/prediction.py --profile --works transformer-greedy

shows instead where the time of eyeline goes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

from prediction_tools import TOOLS, WORKS, Decoding, Ids, flops, small
from side_by_side import PEAK, Answer, Tool, alternate, other_torch, peak_answer, peak_memory, print_profile, run
from training_works import corpus

BATCHES = 8  # of sources, from short to long ones


def sources_of(work: Decoding) -> list[list[Ids]]:
    """Batches of sources of like lengths, which between them have those of the corpus."""
    every = sorted((source for source, _ in corpus(work.model)), key=len)
    wanted = work.sentences * BATCHES
    taken = every[:: max(1, len(every) // wanted)][:wanted]
    return [taken[start : start + work.sentences] for start in range(0, len(taken), work.sentences)]


def answering(tool: str, work: Decoding, now: Callable[[], float]) -> Answer:
    """From the number of a round to what its batch came to."""
    if tool == PEAK:
        return peak_answer(now)
    predict, batches = TOOLS[tool](work), sources_of(work)

    def answer(number: int) -> dict[str, float]:
        batch = batches[(number * 3) % len(batches)]  # short and long ones by turns
        began = now()
        tokens = predict(batch)
        seconds = now() - began
        assert tokens == len(batch) * work.tokens, f"{tool} said {tokens} tokens"
        return {"seconds": seconds, "sentences": len(batch), "flops": flops(work, batch, tool), "memory": peak_memory()}

    return answer


def profile(name: str, work: Decoding) -> None:
    """Prints the operations that eyeline spends most of its time in."""
    predict, batches = TOOLS["eyeline"](work), sources_of(work)
    predict(batches[3])
    print_profile(name, lambda: predict(batches[3]))


# ---- in the process that compares ---------------------------------------------------------------------------------------


def row(tool: Tool, ours: Tool, work: Decoding, peak: float) -> str:
    """A line of the table."""
    if tool.absence:
        return f"| {tool.name} | absent: {tool.absence} |" + " |" * 5
    rate = median(answer["sentences"] / answer["seconds"] for answer in tool.answers)
    step = median(answer["seconds"] for answer in tool.answers) / work.tokens
    ratio = median(theirs["seconds"] / our["seconds"] for theirs, our in zip(tool.answers, ours.answers, strict=True))
    done = median(answer["flops"] / answer["seconds"] for answer in tool.answers) / peak
    memory = f"{tool.memory / 1e6:,.0f} | {(tool.memory - tool.said['resident']) / 1e6:,.0f}"
    return f"| {tool.name} {tool.said['version']} | {rate:,.1f} | {ratio:.2f} | {step * 1e3:,.1f} | {done:.2f} | {memory} |"


def compare(name: str, options: argparse.Namespace) -> None:
    """Runs a work and prints its table."""
    began, work = time.monotonic(), WORKS[name]
    rounds = options.rounds or work.rounds
    names = [PEAK, "eyeline", *(each for each in work.peers if each in options.tools)]
    tools = [Tool(__file__, each, name, options) for each in names]
    alternate(tools, rounds, options.warm_up)
    peak, ours, *_ = tools
    best = max(answer["flops_per_s"] for answer in peak.answers)
    how = f"{rounds} rounds of {work.sentences} at a time, beam {work.beam}; {time.monotonic() - began:.0f} s"
    print(f"\n### {name}\n\nMatrix peak of this run {best / 1e9:.0f} GFLOP/s; {how}.\n")
    print("| tool | sentences/s | eyeline's ratio | ms a step | share of peak | peak memory, MB | of that predicting's, MB |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for tool in tools[1:]:
        print(row(tool, ours, work, best), flush=True)
    print(other_torch([tool for tool in tools if not tool.name.startswith("ctranslate2")], ours), end="", flush=True)


def main() -> None:
    run(__doc__, WORKS, [name for name in TOOLS if name != "eyeline"], small, answering, profile, compare)


if __name__ == "__main__":
    main()
