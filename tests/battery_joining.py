"""What every architecture must keep where batches that began at different times are stepped as one. Part of the battery."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from answers import LENGTHS, Answer, Dims, K, advance, repeat, same_answer, some_inputs, some_source, stepping, wider
from eyeline.contracts import Source


@dataclass(frozen=True)
class Begun:
    """A batch that has taken some steps."""

    source: Source
    inputs: Tensor  # [N·width, T]
    steps: int
    memory: Any
    state: Any

    @classmethod
    def of(cls, model: Any, dims: Dims, source: Source, width: int, steps: int, seed: int) -> Begun:
        inputs = some_inputs(dims, len(source.ids) * width, seed=seed)
        memory = model.encode(source)
        state = repeat(model.decoder.start(memory), len(source.ids), width)
        if steps:
            _, state = advance(model, source, memory, state, inputs[:, :steps])
        return cls(source, inputs, steps, memory, state)


def joined_equals_apart(model: Any, dims: Dims) -> None:
    """Batches of unequal widths at different positions, stepped as one, say what each says by itself; so do those of their
    sources and hypotheses that are left, also where a batch has none left, and one that is alone again. In
    float64, since another order of rows is another rounding."""
    model = copy.deepcopy(model).double()
    for width, last in ((1, 0), (K, 1)):
        batches = [
            Begun.of(model, dims, wider(some_source(dims), 4), width, 3, 1),
            Begun.of(model, dims, some_source(dims, (2, 4), 11), width, 2, 2),
            Begun.of(model, dims, some_source(dims, (5,), 12), width, last, 3),
        ]
        one, others = batches[0], batches[1:]
        state = one.state.joined([each.state for each in others], max(LENGTHS))
        memory = one.memory.joined([each.memory for each in others], max(LENGTHS))
        source = one.source.joined([each.source for each in others], max(LENGTHS))
        for kept in ([[0, 1, 2, 3], [0, 1], [0]], [[0, 2, 3], [], [0]], [[], [], [0]]):
            rows = [[row * width + beam for row in several for beam in range(width)[::-1]] for several in kept]
            where = f"{width} rows a source, of sources {kept}"
            now = state.select(_behind(rows, [len(each.inputs) for each in batches]))
            there = _behind(kept, [len(each.source.ids) for each in batches])
            tokens = [each.inputs[own, each.steps] for each, own in zip(batches, rows, strict=True)]
            said, after = advance(model, source.select(there), memory.select(there), now, torch.cat(tokens)[:, None])
            _check(model, batches, kept, rows, said, 0, where)
            tokens = [each.inputs[own, each.steps + 1] for each, own in zip(batches, rows, strict=True)]
            said, _ = advance(model, source.select(there), memory.select(there), after, torch.cat(tokens)[:, None])
            _check(model, batches, kept, rows, said, 1, where)


def _check(
    model: Any, batches: list[Begun], kept: list[list[int]], rows: list[list[int]], said: Answer, step: int, where: str
) -> None:
    first = 0
    for number, (batch, few, own) in enumerate(zip(batches, kept, rows, strict=True)):
        if few:
            alone = batch.source.select(torch.tensor(few))
            wanted = stepping(model, alone, batch.inputs[own, : batch.steps + step + 1]).rows((slice(None), slice(-1, None)))
            same_answer(said.rows(slice(first, first + len(own))), wanted, f"{where}: batch {number}, step {step}")
        first += len(own)


def _behind(places: list[list[int]], counts: list[int]) -> Tensor:
    """Places of parts as places of all, where the parts lie behind one another."""
    return torch.tensor([sum(counts[:number]) + place for number, several in enumerate(places) for place in several])
