"""What new sentences in the places of finished ones could save at most, in a search over real lines.

    python benchmarks/refilling.py RUN lines.txt --lines 2000 --beam-size 5 --threads 1

A batch is as long as its longest output; sentences that end leave it, so that its last steps have few rows. A step takes some
time whatever its rows and some for each of them: a + b · rows, fitted to all steps of the run by least squares. Were every freed
place filled at once, all steps would have the rows of the fullest, and there would be fewer of them: what is saved is a for each
step less. Prints both times; in processor time, so that a busy machine does not matter.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from real_lines import read

import eyeline


class Watched:
    """A decoder that notes when each step began and how many rows it had."""

    def __init__(self, decoder: Any) -> None:
        self.decoder = decoder
        self.batches: list[list[tuple[float, int]]] = []

    def start(self, memory: Any) -> Any:
        self.batches.append([])
        return self.decoder.start(memory)

    def step(self, token: torch.Tensor, state: Any, memory: Any) -> Any:
        self.batches[-1].append((time.process_time(), len(token)))
        return self.decoder.step(token, state, memory)

    def counts(self) -> list[list[int]]:
        """The rows of each step of each batch."""
        return [[count for _, count in batch] for batch in self.batches]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("lines_file")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    predictor = eyeline.load(given.run)
    watched = Watched(predictor.model.decoder)
    predictor.answering = SimpleNamespace(encode=predictor.model.encode, decoder=watched, head=predictor.model.head)  # type: ignore[assignment]
    lines = read(given.lines_file, given.lines)
    predictor.predict(lines[:64], beam_size=given.beam_size, attention=False)
    watched.batches.clear()
    predictor.predict(lines, beam_size=given.beam_size, attention=False)
    # the first step of a batch has one row a source, and the last one's end is not seen
    steps = [(after[0] - now[0], now[1]) for batch in watched.batches for now, after in pairwise(batch[1:])]
    seconds, rows = (np.array(column, dtype=float) for column in zip(*steps, strict=True))
    fixed, each = np.linalg.lstsq(np.stack([np.ones_like(rows), rows], 1), seconds, rcond=None)[0]
    whole = sum(sum(counts[1:-1]) * (fixed / max(counts) + each) for counts in watched.counts())
    model = float((fixed + each * rows).sum())
    print(f"{len(lines):,} lines, {len(watched.batches)} batches, {len(steps):,} steps of {rows.mean():.0f} rows in the mean")
    print(f"a step takes {fixed * 1e3:.2f} ms and {each * 1e6:.1f} µs a row; all of them took {seconds.sum():.1f} s")
    print(f"with no place free they would take {whole:.1f} s: {100 * (1 - whole / model):.1f} % less at most")


if __name__ == "__main__":
    main()
