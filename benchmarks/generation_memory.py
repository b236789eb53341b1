"""What a decoder carries from token to token, and how long a token takes, as the target grows: state-space and transformer.

    python benchmarks/generation_memory.py --threads 1

Prints a Markdown table. Both models have the width, the layers and the heads of each other, and random weights: neither bytes nor
seconds depend on what a model has learned. A token is one step of K hypotheses of one source and the reordering of their state,
as in beam search.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from eyeline.config_models import StateSpaceSettings, TransformerSettings
from eyeline.contracts import Source
from eyeline.ladder import Seq2Seq, build

FIRST, VOCABULARY, SOURCE = 4, 8000, 30  # the first id that is no reserved one, entries of either vocabulary, source symbols
TIMED = 15  # steps from each length on, of which the fastest counts


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor of a decoder's state."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from tensors(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from tensors(getattr(value, field.name))


def measure(model: Seq2Seq, length: int, beam: int) -> tuple[int, float]:
    """Bytes of the state after `length` tokens, and seconds for one token there."""
    memory = model.encode(Source(torch.randint(FIRST, VOCABULARY, (1, SOURCE)), torch.tensor([SOURCE])))
    state = model.decoder.start(memory).select(torch.zeros(beam, dtype=torch.long))
    _, state = model.decoder.advance(torch.randint(FIRST, VOCABULARY, (beam, length)), state, memory)
    rows = torch.arange(beam).flip(0)
    size, seconds = sum(each.numel() * each.element_size() for each in tensors(state)), []
    for _ in range(1 + TIMED):  # the first writes out what the others go on from
        start = time.perf_counter()
        _, state = model.decoder.step(torch.randint(FIRST, VOCABULARY, (beam,)), state, memory)
        state = state.select(rows)
        seconds.append(time.perf_counter() - start)
    return size, min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="width of both models")
    parser.add_argument("--layers", type=int, default=2, help="layers of either side")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses")
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 10, 100, 1000, 4000], help="tokens before the one measured")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    layers = {"size": given.size, "encoder_layers": given.layers, "decoder_layers": given.layers}
    models = [
        build(settings, VOCABULARY, VOCABULARY).eval()
        for settings in (StateSpaceSettings(**layers), TransformerSettings(**layers, feedforward_size=4 * given.size))
    ]
    print("| tokens so far | state-space: state, kB | ms a token | transformer: state, kB | ms a token |")
    print("| --: | --: | --: | --: | --: |")
    with torch.inference_mode():
        for length in given.lengths:
            measured = [measure(model, length, given.beam) for model in models]
            cells = [f"{size / 1000:,.0f} | {1000 * seconds:.2f}" for size, seconds in measured]
            print(f"| {length:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
