"""What new sentences in the places of finished ones save, in a search over real lines.

    python benchmarks/refilling.py RUN lines.txt --lines 2000 --beam-sizes 1 5 --threads 2

Predicts the same lines with others let in when no more than so many rows are left, and with one batch after the other (0 rows),
in turn. Prints a Markdown table of each way's fastest round: seconds, and those of the processor; steps of the decoder and
their rows in the mean; how many outputs are the same as of one batch after the other.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from real_lines import read

import eyeline
from eyeline.memory import keep_freed_memory
from eyeline.predictor import searching
from eyeline.search import refilling

WARM = 64  # lines that are predicted before


class Watched:
    """A decoder that notes how many rows each step had."""

    def __init__(self, decoder: Any) -> None:
        self.decoder, self.start = decoder, decoder.start
        self.rows: list[int] = []

    def step(self, token: torch.Tensor, state: Any, memory: Any) -> Any:
        self.rows.append(len(token))
        return self.decoder.step(token, state, memory)


@dataclass
class Way:
    """A beam, and how many rows are left of it when others are let in."""

    beam: int
    few: int
    seconds: list[tuple[float, float]] = field(default_factory=list)  # of each round: those that passed, and of the processor
    rows: list[int] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("lines_file")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--few", type=int, nargs="+", default=[refilling.FEW], help="rows, beside 0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    predictor = eyeline.load(given.run)
    model, watched = predictor.model, Watched(predictor.model.decoder)
    predictor.answering = SimpleNamespace(encode=model.encode, decoder=watched, head=model.head)  # type: ignore[assignment]
    lines = read(given.lines_file, given.lines)
    ways = [Way(beam, few) for beam in given.beam_sizes for few in (0, *given.few)]
    for beam in given.beam_sizes:
        predictor.predict(lines[:WARM], beam_size=beam, attention=False)
    for _ in range(given.rounds):
        for way in ways:
            searching.refilled = partial(refilling.refilled, few=way.few)  # type: ignore[assignment]
            watched.rows.clear()
            begun, worked = time.perf_counter(), time.process_time()
            found = predictor.predict(lines, beam_size=way.beam, attention=False)
            way.seconds.append((time.perf_counter() - begun, time.process_time() - worked))
            way.rows, way.outputs = [*watched.rows], [one.text for one in found]
    print(f"{len(lines):,} lines, {given.rounds} rounds, {given.threads} threads\n")
    print("| beam | rows left | seconds | of the processor | steps | rows of a step | outputs the same |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for way in ways:
        passed, worked = min(way.seconds)
        plain = next(other for other in ways if other.beam == way.beam and other.few == 0)
        same = sum(one == other for one, other in zip(way.outputs, plain.outputs, strict=True))
        cells = (f"{way.few}", f"{passed:.2f}", f"{worked:.2f}", f"{len(way.rows):,}", f"{sum(way.rows) / len(way.rows):.0f}")
        print(f"| {way.beam} | {' | '.join(cells)} | {same:,} |", flush=True)


if __name__ == "__main__":
    main()
