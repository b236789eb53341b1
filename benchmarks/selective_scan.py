"""Ways to compute a selective scan and its gradients: autograd over a loop; eyeline's scan, positions in turn or in pairs.

    python benchmarks/selective_scan.py

Prints a Markdown table: processor time on one thread, forwards and backwards, and what is kept for the backward pass beside the
arguments. As many tokens a batch at each length; E = 512 channels that remember N = 16 numbers each, as in a layer of width 256.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor

from eyeline.nn import scan, selective_scan

TOKENS, TIMED = 4096, 12  # tokens a batch; runs of which the fastest counts
Scan = Callable[..., tuple[Tensor, Tensor]]


def loop(x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """Gu & Dao 2023, equation 2, one position after the other, as autograd likes it."""
    h, outputs = initial.transpose(1, 2), []
    for x_t, delta_t, B_t, C_t in zip(*(each.unbind(1) for each in (x, delta, B, C)), strict=True):
        h = torch.exp(delta_t[..., None] * A) * h + (delta_t * x_t)[..., None] * B_t[:, None]
        outputs.append((h * C_t[:, None]).sum(-1))
    return torch.stack(outputs, 1), h.transpose(1, 2)


def forms() -> dict[str, tuple[Scan, int]]:
    """Name -> (scan, the NARROW that makes it so)."""
    return {"autograd over a loop": (loop, 0), "in turn": (selective_scan, 0), "in pairs": (selective_scan, 1 << 60)}


def arguments(batch: int, length: int, channels: int, numbers: int) -> list[Tensor]:
    x, B, C = (torch.randn(batch, length, width) for width in (channels, numbers, numbers))
    delta, A, initial = (
        torch.rand(batch, length, channels) / 10,
        -torch.rand(channels, numbers) * 16,
        torch.zeros(batch, numbers, channels),
    )
    return [each.requires_grad_() for each in (x, delta, A, B, C, initial)]


def measure(scanner: Scan, given: list[Tensor]) -> tuple[float, float, int]:
    """Seconds forwards and backwards, and bytes that are kept for the way back and are none of the arguments'."""
    kept: dict[int, int] = {}
    own = {each.untyped_storage().data_ptr() for each in given}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    forwards, backwards = [], []
    for _ in range(TIMED):
        kept.clear()
        start = time.process_time()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            outputs, _ = scanner(*given)
        between = time.process_time()
        outputs.sum().backward()
        forwards.append(between - start)
        backwards.append(time.process_time() - between)
    return min(forwards), min(backwards), sum(kept.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=512)
    parser.add_argument("--numbers", type=int, default=16)
    parser.add_argument("--lengths", type=int, nargs="+", default=[25, 100, 1000])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| batch × length | scan | forwards, ms | backwards, ms | kept, MB |")
    print("| --: | --- | --: | --: | --: |")
    for length in options.lengths:
        batch = max(1, TOKENS // length)
        for name, (scanner, narrow) in forms().items():
            with mock.patch.object(scan, "NARROW", narrow):
                there, back, kept = measure(scanner, arguments(batch, length, options.channels, options.numbers))
            print(f"| {batch} × {length} | {name} | {1000 * there:.0f} | {1000 * back:.0f} | {kept / 1e6:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
