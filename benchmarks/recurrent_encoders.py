"""Recurrent encoders: packed sequences against padded rows, with and without a gradient, in processor time.

    python benchmarks/recurrent_encoders.py --threads 1

Prints a Markdown table: a layer that reads both ways, the least of the rounds, in which all forms take turns in one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from eyeline.contracts import Source
from eyeline.nn import Embedding, Encoding, RecurrentEncoder
from eyeline.nn.cells import by_hand

CELLS: dict[str, type[nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
SIZES = [(160, 25, 256, 256), (32, 12, 128, 512)]  # sources, positions, width of the input, width of a direction


def forms(cell: str, size: tuple[int, int, int, int]) -> dict[str, Callable[[], Encoding]]:
    B, S, E, D = size
    torch.manual_seed(0)
    reader = RecurrentEncoder(Embedding(8, E), [CELLS[cell](E, D, batch_first=True, bidirectional=True)])
    lengths = torch.randint(round(0.85 * S), S + 1, (B,))
    source = Source(torch.zeros(B, S, dtype=torch.long), lengths.index_fill(0, torch.tensor(0), S))
    inputs = torch.randn(B, S, E).masked_fill(source.mask[..., None], 0.0).requires_grad_()
    cells = [by_hand(layer) for layer in reader.layers]  # type: ignore[arg-type]
    return {"packed": lambda: reader._packed(inputs, source), "padded": lambda: reader._padded(inputs, source, cells)}


def learn(read: Callable[[], Encoding]) -> Callable[[], None]:
    def run() -> None:
        encoding = read()
        cost: Tensor = encoding.states.sum() + encoding.final.sum()
        cost.backward()  # type: ignore[no-untyped-call]

    return run


def least(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Milliseconds of processor time."""
    found = {name: float("inf") for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            began = time.process_time()
            run()
            found[name] = min(found[name], 1e3 * (time.process_time() - began))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print("| cell | sources × positions, width | packed, learning | padded, learning | packed, reading | padded, reading |")
    print("| --- | --- | --: | --: | --: | --: |")
    for size in SIZES:
        for cell in CELLS:
            both = forms(cell, size)
            learning = least({name: learn(read) for name, read in both.items()}, given.rounds)
            with torch.no_grad():
                reading = least(dict(both), given.rounds)
            figures = [f"{found[name]:.0f}" for found in (learning, reading) for name in both]
            print(f"| {cell} | {size[0]} × {size[1]}, {size[3]} | " + " | ".join(figures) + " |", flush=True)


if __name__ == "__main__":
    main()
