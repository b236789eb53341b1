"""What new sentences in the places of finished ones save, in a search over real lines.

    python benchmarks/refilling.py RUN lines.txt --lines 2000 --beam-sizes 1 5 --threads 2

Predicts the same lines with places that are filled when a share of the room is free, and with one batch after the other (a share
of 1), in turn. Prints a Markdown table of each way's fastest round: seconds, and those of the processor; steps of the decoder and
their rows in the mean; how many outputs are the same as of one batch after the other.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from real_lines import read

import eyeline
from eyeline.memory import keep_freed_memory
from eyeline.predictor import searching

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
    """A beam, and the share of the room that is free before it is filled."""

    beam: int
    share: float
    seconds: list[tuple[float, float]] = field(default_factory=list)  # of each round: those that passed, and of the processor
    rows: list[int] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("lines_file")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5], help="of the room, beside 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    predictor = eyeline.load(given.run)
    model, watched = predictor.model, Watched(predictor.model.decoder)
    predictor.answering = SimpleNamespace(encode=model.encode, decoder=watched, head=model.head)  # type: ignore[assignment]
    lines = read(given.lines_file, given.lines)
    ways = [Way(beam, share) for beam in given.beam_sizes for share in (1.0, *given.shares)]
    for beam in given.beam_sizes:
        predictor.predict(lines[:WARM], beam_size=beam, attention=False)
    for _ in range(given.rounds):
        for way in ways:
            searching.FREE = searching.FREE_OF_BEAMS = way.share
            watched.rows.clear()
            begun, worked = time.perf_counter(), time.process_time()
            found = predictor.predict(lines, beam_size=way.beam, attention=False)
            way.seconds.append((time.perf_counter() - begun, time.process_time() - worked))
            way.rows, way.outputs = [*watched.rows], [one.text for one in found]
    print(f"{len(lines):,} lines, {given.rounds} rounds, {given.threads} threads\n")
    print("| beam | free before it is filled | seconds | of the processor | steps | rows of a step | outputs the same |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for way in ways:
        passed, worked = min(way.seconds)
        plain = next(other for other in ways if other.beam == way.beam and other.share == 1)
        same = sum(one == other for one, other in zip(way.outputs, plain.outputs, strict=True))
        cells = (f"{way.share:g}", f"{passed:.2f}", f"{worked:.2f}", f"{len(way.rows):,}", f"{sum(way.rows) / len(way.rows):.0f}")
        print(f"| {way.beam} | {' | '.join(cells)} | {same:,} |", flush=True)


if __name__ == "__main__":
    main()
