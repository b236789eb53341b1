"""What every architecture must keep: functions on (model, dims) that raise AssertionError. Knows contracts, no architecture.

A check that needs two ways to one answer takes both: teacher forcing, and stepping one token at a time as search does.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from answers import (
    IMPOSSIBLE,
    LENGTHS,
    PATHS,
    Answer,
    Dims,
    K,
    T,
    advance,
    alone,
    changed,
    differ,
    dirty,
    others,
    repeat,
    said,
    same,
    same_answer,
    some_inputs,
    some_source,
    stepping,
    teacher,
    wider,
)
from battery_joining import joined_equals_apart
from eyeline.contracts import PAD
from eyeline.nn import Dropout


def teacher_forcing_equals_stepping(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    same_answer(teacher(model, source, inputs), stepping(model, source, inputs), "teacher forcing and stepping")


def float64_equals_the_reference_formula(model: Any, dims: Dims) -> None:
    """Each source alone, from weights alone, against the whole batch, either way; 1e-10."""
    exact = copy.deepcopy(model).double()
    weights = {name: weight.numpy() for name, weight in exact.state_dict().items()}
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    answers = {path.__name__: path(exact, source, inputs) for path in PATHS}
    for row, length in enumerate(LENGTHS):
        log_probs, attention = dims.reference(weights, alone(source, row), inputs[row].tolist())
        wanted = said(torch.from_numpy(log_probs))
        for way, answer in answers.items():
            missing = answer.log_probs.shape[-1] - wanted.shape[-1]
            worst = (answer.log_probs[row] - nn.functional.pad(wanted, (0, missing), value=IMPOSSIBLE)).abs().max()
            assert worst < 1e-10, f"{way}: log-probabilities of row {row} differ by {worst:.2e} from the reference"
            assert (attention is None) == (not answer.attention)
            if attention is not None:
                worst = (answer.attention["source"][row, :, :length] - torch.from_numpy(attention)).abs().max()
                assert worst < 1e-10, f"{way}: attention of row {row} differs by {worst:.2e} from the reference"


def probabilities_sum_to_one(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    for path in PATHS:
        log_probs = path(model, source, inputs).log_probs
        assert log_probs.shape == (len(LENGTHS), T, dims.width(source))
        assert (log_probs <= 0).all()
        same(log_probs.exp().sum(-1), torch.ones(len(LENGTHS), T), f"{path.__name__}: sums of probabilities")


def attention_rows_sum_to_one_over_real_columns(model: Any, dims: Dims) -> None:
    """Row i is the target position i, column j the source position j; padding gets exactly zero."""
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    for path in PATHS:
        for name, weights in path(model, source, inputs).attention.items():
            assert weights.shape == (len(LENGTHS), T, max(LENGTHS)), f"{path.__name__}: {name} is {tuple(weights.shape)}"
            assert (weights >= 0).all()
            hidden = source.mask[:, None].expand_as(weights)
            assert not weights[hidden].any(), f"{path.__name__}: {name} looks at padding"
            if dims.rows_sum_to_one:
                same(weights.sum(-1), torch.ones(len(LENGTHS), T), f"{path.__name__}: sums of {name}")


def padding_changes_nothing(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    for path in PATHS:
        same_answer(
            path(model, source, inputs), path(model, wider(source, 20), inputs), f"{path.__name__}: 20 columns of padding"
        )


def neighbours_change_nothing(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    for path in PATHS:
        together = path(model, source, inputs)
        for row in range(len(LENGTHS)):
            one = slice(row, row + 1)
            same_answer(together.rows(one), path(model, alone(source, row), inputs[one]), f"{path.__name__}: row {row} alone")


def order_changes_nothing(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    back = torch.arange(len(LENGTHS)).flip(0)
    for path in PATHS:
        turned = path(model, source.select(back), inputs[back])
        same_answer(path(model, source, inputs), turned.rows(back), f"{path.__name__}: the batch turned round")


def garbage_in_the_padding_changes_nothing(model: Any, dims: Dims) -> None:
    """Valid ids, another garbage each time, beyond the lengths; a source of length 0 is nothing but padding."""
    lengths = (*LENGTHS, 0)
    source, inputs = some_source(dims, lengths), some_inputs(dims, len(lengths))
    spoilt = dirty(source, dims)
    assert not torch.equal(spoilt.ids, source.ids)
    for path in PATHS:
        same_answer(path(model, source, inputs), path(model, spoilt, inputs), f"{path.__name__}: garbage in the padding")


def hypotheses_share_their_source(model: Any, dims: Dims) -> None:
    """K rows a source step as K separate models would: row n·K + k reads source n."""
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS) * K)
    together = stepping(model, source, inputs)
    for k in range(K):
        own = slice(k, None, K)
        same_answer(together.rows(own), stepping(model, source, inputs[own]), f"hypothesis {k} of {K}")


def the_future_is_not_seen(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    before = teacher(model, source, inputs)
    for position in range(1, T):
        other = inputs.clone()
        other[:, position:] = others(inputs[:, position:], dims)
        after = teacher(model, source, other)
        same(before.log_probs[:, :position], after.log_probs[:, :position], f"positions before {position}")
        for name in before.attention:
            same(before.attention[name][:, :position], after.attention[name][:, :position], f"{name} before {position}")
        assert differ(before.log_probs[:, position], after.log_probs[:, position]), f"input {position} is not read at once"


def the_past_is_seen(model: Any, dims: Dims) -> None:
    """Every input reaches every later position, and every symbol of the source reaches every position."""
    source, inputs = some_source(dims, (5,)), some_inputs(dims, 1)
    for path in PATHS:
        before = path(model, source, inputs).log_probs[0]
        other = inputs.clone()
        other[:, 1] = others(inputs[:, 1], dims)
        after = path(model, source, other).log_probs[0]
        for position in range(1, T):
            assert differ(before[position], after[position]), f"{path.__name__}: input 1 is forgotten at {position}"
        for column in range(4):
            after = path(model, changed(source, column, dims), inputs).log_probs[0]
            for position in range(T):
                assert differ(before[position], after[position]), f"{path.__name__}: source {column} unread at {position}"


def every_parameter_gets_a_gradient(model: Any, dims: Dims) -> None:
    learner = copy.deepcopy(model)
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    log_probs = teacher(learner, source, inputs).log_probs
    (-log_probs.where(log_probs > IMPOSSIBLE, 0.0).square().sum()).backward()
    for name, parameter in learner.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert torch.isfinite(parameter.grad).all(), f"{name} has a gradient that is not finite"
        if name not in dims.no_gradient:
            assert parameter.grad.any(), f"the gradient of {name} is zero"


def gradients_agree_both_ways(model: Any, dims: Dims) -> None:
    """Teacher forcing, which training follows, has the gradients of stepping; 1e-10 of the largest, in float64."""
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    found = []
    for path in PATHS:
        learner = copy.deepcopy(model).double()
        answer = path(learner, source, inputs)
        chance = torch.Generator().manual_seed(0)
        said = [answer.log_probs.where(answer.log_probs > IMPOSSIBLE, 0.0), *answer.attention.values()]
        sum((each * torch.randn(each.shape, generator=chance, dtype=each.dtype)).sum() for each in said).backward()
        found.append({name: parameter.grad for name, parameter in learner.named_parameters()})
    for name, one in found[0].items():
        other = found[1][name]
        assert (one is None) == (other is None), f"{name} has a gradient one way alone"
        if one is not None:
            worst = (one - other).abs().max() / (1 + other.abs().max())
            assert worst < 1e-10, f"the gradients of {name} differ by {worst:.2e}"


def state_tensors(state: Any, name: str = "state") -> list[tuple[str, Tensor]]:
    """Every field that is a tensor, of what it holds too."""
    parts = enumerate(state) if isinstance(state, tuple) else [(each.name, getattr(state, each.name)) for each in fields(state)]
    found = []
    for part, value in parts:
        if isinstance(value, tuple) or is_dataclass(value):
            found += state_tensors(value, f"{name}.{part}")
        elif isinstance(value, Tensor):
            found.append((f"{name}.{part}", value))
    return found


def planes(name: str, value: Tensor) -> list[tuple[str, Tensor]]:
    """Views of every plane of [R, …, D], which is split along all dimensions but the first and the last."""
    places = product(*(range(size) for size in value.shape[1:-1])) if value.dim() > 2 else [()]
    return [(f"{name}[{number}]", value[(slice(None), *place)]) for number, place in enumerate(places)]


def handed_on(name: str, old: Tensor, new: Tensor, dims: Dims) -> None:
    """Each plane changes; or a cache gets one place more, in each plane another than its last, and keeps what it had."""
    grown = [axis for axis in range(old.dim()) if old.shape[axis] != new.shape[axis]]
    if grown:
        (axis,), length = grown, old.shape[grown[0]]
        assert axis > 0, f"{name} has {new.shape[0]} rows after {old.shape[0]}"
        assert new.shape[axis] == length + 1, f"{name} grows from {tuple(old.shape)} to {tuple(new.shape)}"
        assert torch.equal(new.narrow(axis, 0, length), old), f"{name} does not keep what was there before"
        old, new = old.narrow(axis, length - 1, 1), new.narrow(axis, length, 1)
    for (plane, before), (_, after) in zip(planes(name, old), planes(name, new), strict=True):
        assert plane in dims.constant or differ(before, after), f"{plane} is handed on unchanged"


READ = 1e-10  # what is read moves an answer by more than this, in float64


def what_is_handed_on_changes_and_is_read(model: Any, dims: Dims) -> None:
    """Each plane of the state changes with a step, or one is added; nudged, it changes the next answer of its own row alone.

    In float64, where the least influence can be told from rounding.
    """
    model = copy.deepcopy(model).double()
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    memory = model.encode(source)
    _, before = advance(model, source, memory, model.decoder.start(memory), inputs[:, :2])
    answer, after = advance(model, source, memory, before, inputs[:, 2:3])
    for (name, old), (_, new) in zip(state_tensors(before), state_tensors(after), strict=True):
        handed_on(name, old, new, dims)
    assert sum(value.numel() for _, value in state_tensors(before)), "nothing is handed on"
    nudged = copy.deepcopy(before)
    for name, plane in (plane for field in state_tensors(nudged) for plane in planes(*field)):
        kept = plane.clone()
        # in place, in the copy; of the longest source, where the answer is least certain
        plane[2] += 0.5 if plane.is_floating_point() else 1
        other, _ = advance(model, source, memory, nudged, inputs[:, 2:3])
        moved = (answer.log_probs[2] - other.log_probs[2]).abs().max()
        assert name in dims.unread or moved > READ, f"{name} is never read"
        for row in (0, 1, 3):
            same(answer.log_probs[row], other.log_probs[row], f"row {row} after row 2 of {name} was nudged")
        plane.copy_(kept)


def a_step_leaves_its_arguments_alone(model: Any, dims: Dims) -> None:
    """States and memories are values: stepping twice from one state gives one answer, whatever the caller does with attention."""
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    memory = model.encode(source)
    start = model.decoder.start(memory)
    first, state = model.decoder.step(inputs[:, 0], start, memory)
    wanted, _ = advance(model, source, memory, copy.deepcopy(state), inputs[:, 1:])
    for weights in first.attention.values():
        weights.fill_(9.0)
    touched, _ = advance(model, source, memory, state, inputs[:, 1:])
    assert torch.equal(wanted.log_probs, touched.log_probs), "what the caller does with the attention changes what comes after"
    twice, _ = advance(model, source, memory, state, inputs[:, 1:])
    assert torch.equal(wanted.log_probs, twice.log_probs), "the state was changed by stepping"
    again, _ = advance(model, source, memory, model.decoder.start(memory), inputs)
    assert torch.equal(wanted.log_probs, again.log_probs[:, 1:]), "the memory was changed by stepping"


def select_equals_recomputing(model: Any, dims: Dims) -> None:
    """Hypotheses reordered, repeated and dropped, and sources reordered and dropped, in the middle of a target."""
    source, everyone = some_source(dims), [0, 1, 2, 3]
    cases: dict[str, tuple[int, list[int], list[int]]] = {  # hypotheses a source, those that go on, and the sources that do
        "reordered": (K, [2, 0, 1], everyone),
        "repeated": (K, [1, 1, 0], everyone),
        "dropped": (K, [2, 0], everyone),
        "more": (K, [0, 1, 2, 2], everyone),
        "a source dropped": (K, [1, 0, 2], [0, 2, 3]),
        "sources dropped": (K, [0, 2, 1], [3, 1]),
        "sources reordered": (1, [0], [2, 0, 3, 1]),
        "sources reordered and dropped": (1, [0], [3, 1]),
    }
    for name, (width, beams, kept) in cases.items():
        inputs = some_inputs(dims, len(LENGTHS) * width)
        memory = model.encode(source)
        prefix, rest = inputs[:, :3], others(some_inputs(dims, len(LENGTHS) * width, 2, seed=7), dims)
        _, state = advance(model, source, memory, repeat(model.decoder.start(memory), len(LENGTHS), width), prefix)
        rows = torch.tensor([row * width + beam for row in kept for beam in beams])
        keep = torch.tensor(kept)
        tokens = rest.repeat(2, 1)[: len(rows)]
        chosen, few = state.select(rows), source.select(keep)
        got, _ = advance(model, few, memory.select(keep), chosen, tokens)
        wanted = stepping(model, few, torch.cat([prefix[rows], tokens], 1))
        same_answer(got, wanted.rows((slice(None), slice(prefix.shape[1], None))), f"select: {name}")


def save_and_load_change_nothing(model: Any, dims: Dims) -> None:
    """Through safetensors, into a model of other weights; what was shared stays shared."""
    fresh = dims.another()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(model, str(path))
        load_model(fresh, str(path))
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    assert torch.equal(teacher(model, source, inputs).log_probs, teacher(fresh, source, inputs).log_probs)
    assert len(list(fresh.parameters())) == len(list(model.parameters()))


def an_empty_source_stays_finite(model: Any, dims: Dims) -> None:
    """A source of true length 0: everything finite, forward and backward; its neighbour does not notice, PAD learns nothing."""
    source, inputs = some_source(dims, (0, 3)), some_inputs(dims, 2)
    neighbour = source.select(torch.tensor([1]))
    for path in PATHS:
        learner = copy.deepcopy(model)
        answer = path(learner, source, inputs)
        assert torch.isfinite(answer.log_probs).all(), f"{path.__name__}: the answer to an empty source is not finite"
        for name, weights in answer.attention.items():
            assert not weights[0].any(), f"{path.__name__}: {name} of an empty source is not zero"
        same_answer(answer.rows(slice(1, 2)), path(model, neighbour, inputs[1:]), f"{path.__name__}: beside an empty source")
        answer.log_probs.sum().backward()
        for name, parameter in learner.named_parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all(), f"{path.__name__}: gradient of {name}"
        outputs = {
            id(module.weight) for module in learner.modules() if isinstance(module, nn.Linear)
        }  # PAD may learn as an output
        for table in (module for module in learner.modules() if isinstance(module, nn.Embedding)):
            assert table.weight.grad is not None
            assert id(table.weight) in outputs or not table.weight.grad[PAD].any(), "PAD learns"


def nan_in_hidden_states_stays_there(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    learner = copy.deepcopy(model)
    clean = learner.encoder(source)
    poisoned = replace(clean, states=clean.states.masked_fill(source.mask[..., None], torch.nan))
    memory = learner.decoder.remember(poisoned)
    step = learner.decoder(inputs, memory)
    answer = Answer(said(learner.head(step, source)), step.attention)
    same_answer(answer, teacher(model, source, inputs), "NaN in hidden states, teacher forcing")
    stepped, _ = advance(learner, source, memory, learner.decoder.start(memory), inputs)
    same_answer(stepped, teacher(model, source, inputs), "NaN in hidden states, stepping")
    answer.log_probs.sum().backward()
    for name, parameter in learner.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), f"gradient of {name} after NaN in hidden states"


def dropout_acts_in_training_alone(model: Any, dims: Dims) -> None:
    source, inputs = some_source(dims), some_inputs(dims, len(LENGTHS))
    learner = copy.deepcopy(model)
    layers = [module for module in learner.modules() if isinstance(module, Dropout)]
    wanted = teacher(model, source, inputs).log_probs
    for rate in (0.5, 0.0):
        for layer in layers:
            layer.p = rate
        learner.train()
        first, second = (teacher(learner, source, inputs).log_probs for _ in range(2))
        assert differ(first, second) == (rate > 0), f"training twice with dropout {rate}"
        learner.eval()
        for _ in range(2):
            assert torch.equal(teacher(learner, source, inputs).log_probs, wanted), f"dropout {rate} acts in eval mode"


CHECKS: dict[str, Callable[[Any, Dims], None]] = {
    check.__name__: check
    for check in (
        teacher_forcing_equals_stepping,
        float64_equals_the_reference_formula,
        probabilities_sum_to_one,
        attention_rows_sum_to_one_over_real_columns,
        padding_changes_nothing,
        neighbours_change_nothing,
        order_changes_nothing,
        garbage_in_the_padding_changes_nothing,
        hypotheses_share_their_source,
        the_future_is_not_seen,
        the_past_is_seen,
        every_parameter_gets_a_gradient,
        gradients_agree_both_ways,
        what_is_handed_on_changes_and_is_read,
        a_step_leaves_its_arguments_alone,
        select_equals_recomputing,
        joined_equals_apart,
        save_and_load_change_nothing,
        an_empty_source_stays_finite,
        nan_in_hidden_states_stays_there,
        dropout_acts_in_training_alone,
    )
}
BACKWARD = frozenset(
    {  # checks that go backwards; the others need no graph
        every_parameter_gets_a_gradient.__name__,
        gradients_agree_both_ways.__name__,
        an_empty_source_stays_finite.__name__,
        nan_in_hidden_states_stays_there.__name__,
    }
)


def run(name: str, model: Any, dims: Dims) -> None:
    """Runs one check, without a graph where none is needed."""
    with torch.set_grad_enabled(name in BACKWARD):
        CHECKS[name](model, dims)
