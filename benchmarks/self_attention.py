"""Self-attention over everything, over a window and in linear time: processor time and memory against length.

    python benchmarks/self_attention.py --threads 1

Prints a Markdown table: forwards and backwards over one sequence, encoder and decoder parts. Processor time is the least of the
rounds, in which all parts take turns; memory is the numbers that autograd keeps for the backward pass, counted, not measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from eyeline.nn import (
    BothWays,
    Causal,
    CausalLinearSelfAttention,
    CausalSelfAttention,
    CausalWindowSelfAttention,
    LinearSelfAttention,
    SelfAttention,
    Unordered,
    WindowSelfAttention,
)

SIZE, HEADS, WINDOW = 128, 4, 64
PARTS: dict[str, tuple[BothWays, Causal]] = {
    "full": (SelfAttention(SIZE, HEADS, Unordered()), CausalSelfAttention(SIZE, HEADS, Unordered())),
    f"window {WINDOW}": (
        WindowSelfAttention(SIZE, HEADS, Unordered(), WINDOW),
        CausalWindowSelfAttention(SIZE, HEADS, Unordered(), WINDOW),
    ),
    "linear": (LinearSelfAttention(SIZE, HEADS), CausalLinearSelfAttention(SIZE, HEADS)),
}


def passes(part: tuple[BothWays, Causal], length: int) -> dict[str, Callable[[], Tensor]]:
    inputs = torch.randn(1, length, SIZE, requires_grad=True)
    mask = torch.zeros(1, length, dtype=torch.bool)
    return {
        "encoder": lambda: part[0](inputs, mask),
        "decoder": lambda: part[1](inputs, part[1].start(1, inputs))[0],
    }


def seconds(run: Callable[[], Tensor]) -> float:
    begin = time.process_time()
    run().sum().backward()
    return time.process_time() - begin


def kept(run: Callable[[], Tensor]) -> int:
    """Bytes kept for the backward pass, each piece of memory counted once."""
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sum(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    print("| length | self-attention | encoder, ms | decoder, ms | kept, encoder, MB | kept, decoder, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for length in given.lengths:
        runs = {name: passes(part, length) for name, part in PARTS.items()}
        times = [{name: {side: seconds(both[side]) for side in both} for name, both in runs.items()} for _ in range(given.rounds)]
        for name, both in runs.items():
            least = [f"{1e3 * min(each[name][side] for each in times):.0f}" for side in both]
            memory = [f"{kept(run) / 1e6:.1f}" for run in both.values()]
            print(f"| {length} | {name} | {' | '.join(least)} | {' | '.join(memory)} |", flush=True)


if __name__ == "__main__":
    main()
