"""Asking a model in two ways, teacher forcing and stepping, and comparing what it says. Knows the contracts, no architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Source, Step

CLOSE = 1e-5  # fp32
FIRST = 4  # the first id that is not reserved
K = 3  # hypotheses a source
LENGTHS = (3, 1, 6, 2)  # in no order; END counted
T = 5  # target positions


@dataclass(frozen=True)
class Dims:
    """What the checks must know of a model."""

    source: int  # entries of the source vocabulary
    target: int  # entries of the target vocabulary
    reference: Callable[
        [Mapping[str, Any], list[int], list[int]], tuple[Any, Any]
    ]  # (weights, source, inputs) -> answer, float64
    another: Callable[[], Any]  # the same architecture, built anew with other weights
    no_gradient: Mapping[str, str] = field(default_factory=dict)  # parameter that may have none -> why


@dataclass(frozen=True)
class Answer:
    """What a model says of each position of a target."""

    log_probs: Tensor  # [R, T, V]
    attention: Mapping[str, Tensor]  # [R, T, S]

    def rows(self, index: Any) -> Answer:
        return Answer(self.log_probs[index], {name: weights[index] for name, weights in self.attention.items()})


def some_source(dims: Dims, lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> Source:
    """Random symbols, END at the end of each source (one of length 0 has none), PAD beyond."""
    ids = torch.randint(FIRST, dims.source, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    for row, length in enumerate(lengths):
        ids[row, max(0, length - 1) :] = PAD
        if length:
            ids[row, length - 1] = END
    return Source(ids, torch.tensor(lengths))


def some_inputs(dims: Dims, rows: int, length: int = T, seed: int = 1) -> Tensor:
    """[rows, length] decoder inputs, BEGIN first."""
    tokens = torch.randint(FIRST, dims.target, (rows, length), generator=torch.Generator().manual_seed(seed))
    tokens[:, 0] = BEGIN
    return tokens


def teacher(model: Any, source: Source, inputs: Tensor) -> Answer:
    """Teacher forcing."""
    step = model.decoder(inputs, model.encode(source))
    return Answer(model.head(step, source), step.attention)


def stepping(model: Any, source: Source, inputs: Tensor) -> Answer:
    """One token at a time; `inputs` [N·K, T] with the K rows of a source together."""
    memory = model.encode(source)
    state = repeat(model.decoder.start(memory), source.ids.shape[0], inputs.shape[0] // source.ids.shape[0])
    return advance(model, source, memory, state, inputs)[0]


def repeat(state: Any, sources: int, k: int) -> Any:
    return state.select(torch.arange(sources).repeat_interleave(k))


def advance(model: Any, source: Source, memory: Any, state: Any, inputs: Tensor) -> tuple[Answer, Any]:
    """Steps over `inputs` [R, T] from `state`."""
    steps: list[Step] = []
    for position in range(inputs.shape[1]):
        step, state = model.decoder.step(inputs[:, position], state, memory)
        steps.append(step)
    log_probs = torch.stack([model.head(step, source) for step in steps], 1)
    names = steps[0].attention
    return Answer(log_probs, {name: torch.stack([step.attention[name] for step in steps], 1) for name in names}), state


PATHS = (teacher, stepping)


def same(a: Tensor, b: Tensor, what: str) -> None:
    assert a.shape == b.shape, f"{what}: {tuple(a.shape)} against {tuple(b.shape)}"
    assert torch.isfinite(a).all(), f"{what}: not finite"
    assert torch.isfinite(b).all(), f"{what}: not finite"
    assert torch.allclose(a, b, rtol=0, atol=CLOSE), f"{what}: differ by {(a - b).abs().max():.2e}"


def same_answer(a: Answer, b: Answer, what: str) -> None:
    """Equal log-probabilities and attention; where one source is wider, the columns more are exactly zero."""
    same(a.log_probs, b.log_probs, what)
    assert a.attention.keys() == b.attention.keys()
    for name in a.attention:
        width = min(a.attention[name].shape[-1], b.attention[name].shape[-1])
        for weights in (a.attention[name], b.attention[name]):
            assert not weights[..., width:].any(), f"{what}: attention {name} on columns that are not there"
        same(a.attention[name][..., :width], b.attention[name][..., :width], f"{what}: attention {name}")


def differ(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() > 1e-4)
