"""Asking a model in two ways, teacher forcing and stepping, and comparing what it says. Knows the contracts, no architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from eyeline.contracts import BEGIN, END, PAD, Source, Step

CLOSE = 1e-5  # fp32
FIRST = 4  # the first id that is not reserved
K = 3  # hypotheses a source
LENGTHS = (3, 1, 6, 2)  # in no order; END counted
T = 5  # target positions
IMPOSSIBLE = -1e4  # stands for log 0, so that differences are numbers


@dataclass(frozen=True)
class Dims:
    """What the checks must know of a model; see `rungs.Family`."""

    source: int  # entries of the source vocabulary
    inputs: int  # decoder inputs are drawn below this
    reference: Callable[[Mapping[str, Any], Source, list[int]], tuple[Any, Any]]  # (weights, source, inputs) -> answer, float64
    another: Callable[[], Any]  # the same architecture, built anew with other weights
    dress: Callable[[Source, int], Source]  # (ids and lengths, seed) -> what the model reads
    width: Callable[[Source], int]  # X of a batch of sources
    rows_sum_to_one: bool = True
    no_gradient: Mapping[str, str] = field(default_factory=dict)
    constant: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a model says of each position of a target."""

    log_probs: Tensor  # [R, T, X]; IMPOSSIBLE where the model says -inf
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
    return dims.dress(Source(ids, torch.tensor(lengths)), seed)


def some_symbols(source: Source, seed: int) -> Source:
    """Sources that are nothing but symbols."""
    return source


def wider(source: Source, columns: int) -> Source:
    """The same sources with more padding: PAD, and NaN where the elements are real numbers."""
    ids, copies, values = source.ids, source.copy_ids, source.values
    return replace(
        source,
        ids=pad(ids, (0, columns), value=PAD),
        copy_ids=None if copies is None else pad(copies, (0, columns), value=PAD),
        values=None if values is None else pad(values, (0, 0, 0, columns), value=torch.nan),
    )


def alone(source: Source, row: int) -> Source:
    """One source without its neighbours and without padding."""
    length = int(source.lengths[row])
    return cut(source.select(torch.tensor([row])), length)


def cut(source: Source, width: int) -> Source:
    copies, values = source.copy_ids, source.values
    return replace(
        source,
        ids=source.ids[:, :width],
        copy_ids=None if copies is None else copies[:, :width],
        values=None if values is None else values[:, :width],
    )


def dirty(source: Source, dims: Dims, seed: int = 5) -> Source:
    """Garbage in the padding: valid ids, another one each time, and large numbers among real-valued elements."""
    chance = torch.Generator().manual_seed(seed)
    garbage = torch.randint(1, dims.source, source.ids.shape, generator=chance)
    copies, values = source.copy_ids, source.values
    if copies is not None:
        copies = torch.where(source.mask, torch.randint(1, dims.width(source), copies.shape, generator=chance), copies)
    if values is not None:
        values = torch.where(source.mask[..., None], 100 * torch.randn(values.shape, generator=chance), values)
    return replace(source, ids=torch.where(source.mask, garbage, source.ids), copy_ids=copies, values=values)


def changed(source: Source, column: int, dims: Dims) -> Source:
    """Another symbol, or another element, at one column of every row."""
    if source.values is not None:
        values = source.values.clone()
        values[:, column] += 0.5
        return replace(source, values=values)
    ids = source.ids.clone()
    ids[:, column] = FIRST + (ids[:, column] - FIRST + 1) % (dims.source - FIRST)
    return replace(source, ids=ids)


def some_inputs(dims: Dims, rows: int, length: int = T, seed: int = 1) -> Tensor:
    """[rows, length] decoder inputs, BEGIN first."""
    tokens = torch.randint(FIRST, dims.inputs, (rows, length), generator=torch.Generator().manual_seed(seed))
    tokens[:, 0] = BEGIN
    return tokens


def others(inputs: Tensor, dims: Dims) -> Tensor:
    """Another input at every place."""
    return FIRST + (inputs - FIRST + 1) % (dims.inputs - FIRST)


def said(log_probs: Tensor) -> Tensor:
    """Log-probabilities with a finite number where the model says that something cannot be."""
    return log_probs.masked_fill(log_probs.isneginf(), IMPOSSIBLE)


def teacher(model: Any, source: Source, inputs: Tensor) -> Answer:
    """Teacher forcing."""
    step = model.decoder(inputs, model.encode(source))
    return Answer(said(model.head(step, source)), step.attention)


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
    log_probs = torch.stack([said(model.head(step, source)) for step in steps], 1)
    names = steps[0].attention
    return Answer(log_probs, {name: torch.stack([step.attention[name] for step in steps], 1) for name in names}), state


PATHS = (teacher, stepping)


def same(a: Tensor, b: Tensor, what: str) -> None:
    assert a.shape == b.shape, f"{what}: {tuple(a.shape)} against {tuple(b.shape)}"
    assert torch.isfinite(a).all(), f"{what}: not finite"
    assert torch.isfinite(b).all(), f"{what}: not finite"
    assert torch.allclose(a, b, rtol=0, atol=CLOSE), f"{what}: differ by {(a - b).abs().max():.2e}"


def same_answer(a: Answer, b: Answer, what: str) -> None:
    """Equal log-probabilities and attention; where one source is wider, what it has more is impossible, and not looked at."""
    most = max(a.log_probs.shape[-1], b.log_probs.shape[-1])
    same(*(pad(each.log_probs, (0, most - each.log_probs.shape[-1]), value=IMPOSSIBLE) for each in (a, b)), what)
    assert a.attention.keys() == b.attention.keys()
    for name in a.attention:
        width = min(a.attention[name].shape[-1], b.attention[name].shape[-1])
        for weights in (a.attention[name], b.attention[name]):
            assert not weights[..., width:].any(), f"{what}: attention {name} on columns that are not there"
        same(a.attention[name][..., :width], b.attention[name][..., :width], f"{what}: attention {name}")


def differ(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() > 1e-4)
