"""The recurrent decoders' loop with hand-written derivatives against the plain one and autograd: same answers, same gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from answers import LENGTHS, some_inputs, some_source
from eyeline.contracts import Step
from eyeline.nn import DotAttention, Keys, Stack
from eyeline.nn.decoders import Sequential
from eyeline.nn.through_time import ThroughTime
from rungs import RUNGS, make

SEQUENTIAL = [name for name in RUNGS if name.startswith(("bahdanau", "pointer-generator")) or "-fed-" in name]
PLAIN = ("coverage", "sum", "fertility", "gated", "location", "local", "transformer")  # what has no derivatives of its own
BY_HAND = [name for name in SEQUENTIAL if not any(part in name for part in PLAIN)]


class Script(nn.Module):
    """Dropout whose noise is given for every position, whichever way they are gone through."""

    def __init__(self, noise: Tensor) -> None:
        super().__init__()
        self.given, self.calls = noise, 0  # [T, B, D]

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() == 3 and inputs.shape[1] == len(self.given):
            return inputs * self.given.transpose(0, 1)
        self.calls += 1
        return inputs * self.given[self.calls - 1].view_as(inputs)

    def noise(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        assert shape == tuple(self.given.shape)
        return self.given


def gradients(model: Any, step: Step) -> list[Tensor]:
    """Features, attention and gate, and the gradients of a random sum of them."""
    chance = torch.Generator().manual_seed(3)
    said = [step.features, step.attention["source"], *([] if step.gate is None else [step.gate])]
    sum((each * torch.randn(each.shape, generator=chance, dtype=each.dtype)).sum() for each in said).backward()
    return [*said, *(p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters())]


def compare(model: Any, source: Any, inputs: Tensor) -> float:
    answers = []
    for by_hand in (True, False):
        learner = copy.deepcopy(model)
        memory, embedded = learner.encode(source), learner.decoder.embedding(inputs)
        loop = ThroughTime.of(learner.decoder.stack, learner.decoder.attention, embedded)
        assert loop is not None
        decoder = learner.decoder
        step = decoder.through_time(loop, embedded, memory) if by_hand else decoder.in_turn(embedded, memory)
        answers.append(gradients(learner, step))
    return max(float(((a - b).abs().max() / (1 + b.abs().max())).detach()) for a, b in zip(*answers, strict=True))


@pytest.mark.parametrize("rung", BY_HAND)
def test_equals_autograd_over_the_plain_loop(rung: str) -> None:
    """An empty source, sources of many lengths, one target position and several."""
    model, dims = make(RUNGS[rung])
    model = model.double()
    for lengths in (LENGTHS, (3, 0, 2, 5)):
        for length in (1, 5):
            assert compare(model, some_source(dims, lengths), some_inputs(dims, 4, length)) < 1e-12


@pytest.mark.parametrize(
    "rung", ["bahdanau-bi-lstm-1x2", "luong-general-bi-fed-gru-2x2", "luong-concat-bi-fed-lstm-1x2", "pointer-generator-gru-2x2"]
)
def test_equals_it_with_dropout(rung: str) -> None:
    model, dims = make(RUNGS[rung])
    model, decoder, chance = model.double(), model.decoder, torch.Generator().manual_seed(0)

    def noise(width: int) -> Script:
        return Script(2.0 * torch.randint(0, 2, (5, 4, width), generator=chance).double())

    decoder.stack.dropout, decoder.dropout = noise(decoder.stack.size), noise(decoder.readout.size)
    assert compare(model, some_source(dims), some_inputs(dims, 4, 5)) < 1e-12


def test_which_decoders_go_by_hand() -> None:
    """Every one that looks at all of the source, each look apart from the others."""
    for name in SEQUENTIAL:
        model, dims = make(RUNGS[name])
        if isinstance(model.decoder, Sequential):
            embedded = model.decoder.embedding(some_inputs(dims, 4))
            loop = ThroughTime.of(model.decoder.stack, model.decoder.attention, embedded)
            assert (loop is not None) == (name in BY_HAND), name


def test_what_has_no_derivatives_here_takes_the_plain_way() -> None:
    inputs = torch.zeros(1, 1, 3)
    stack = Stack([nn.RNN(3, 4, batch_first=True, nonlinearity="relu")])
    assert ThroughTime.of(stack, DotAttention(4), inputs) is None
    stack = Stack([nn.GRU(3, 4, batch_first=True)])
    assert ThroughTime.of(stack, DotAttention(4), inputs) is not None
    assert ThroughTime.of(stack, DotAttention(4), inputs.bfloat16()) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert ThroughTime.of(stack, DotAttention(4), inputs) is None


@pytest.mark.parametrize("rung", ["bahdanau-gru-1x2", "luong-concat-bi-fed-lstm-1x2", "luong-dot-fed-rnn-2x1"])
def test_gradients_of_what_comes_in_against_differences(rung: str) -> None:
    """Embedded symbols, first state, keys and values."""
    model, dims = make(RUNGS[rung])
    model = model.double()
    decoder, memory = model.decoder, model.encode(some_source(dims, (2, 0, 3)))
    embedded = decoder.embedding(some_inputs(dims, 3, 3))

    def run(*given: Tensor) -> tuple[Tensor, Tensor]:
        keys = Keys(given[2], given[3], memory.keys.mask)
        loop = ThroughTime.of(decoder.stack, decoder.attention, given[0])
        assert loop is not None
        step = decoder.through_time(loop, given[0], type(memory)(given[1], keys))
        return step.features, step.attention["source"]

    given = (embedded, memory.initial, memory.keys.projected, memory.keys.values)
    assert torch.autograd.gradcheck(run, tuple(each.detach().clone().requires_grad_() for each in given))


def test_backward_twice_gives_the_same_twice() -> None:
    model, dims = make(RUNGS["luong-concat-bi-fed-lstm-1x2"])
    loss = model.decoder(some_inputs(dims, 4), model.encode(some_source(dims))).features.sum()
    parameters = [*model.decoder.stack.parameters()]
    first, second = (torch.autograd.grad(loss, parameters, retain_graph=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_gradients_of_gradients_are_refused_and_not_wrong() -> None:
    model, dims = make(RUNGS["bahdanau-rnn-1x1"])
    loss = model.decoder(some_inputs(dims, 4), model.encode(some_source(dims))).features.sum()
    (slope,) = torch.autograd.grad(loss, [model.decoder.stack.layers[0].weight_hh_l0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_no_tanh_of_all_looks_is_kept() -> None:
    """What autograd holds grows with S + T, not S × T × A."""
    model, dims = make(RUNGS["bahdanau-rnn-1x1"])
    source, inputs = some_source(dims, (40, 40)), some_inputs(dims, 2, 40)
    memory, sizes = model.encode(source), []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):
        model.decoder(inputs, memory)
    assert max(sizes) < 2 * 40 * 40 * 7


def test_saturated_scores_stay_finite() -> None:
    model, dims = make(RUNGS["bahdanau-bi-lstm-1x2"])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 1e3
    step = model.decoder(some_inputs(dims, 4), model.encode(some_source(dims)))
    step.features.sum().backward()
    assert torch.isfinite(step.features).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
