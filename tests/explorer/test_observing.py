"""What is seen inside a model is what it does, of every rung; and looking leaves nothing behind."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from answers import CLOSE, Dims, alone, some_inputs, some_source, teacher
from eyeline.explorer.looking import LIKELIEST, Look, informative, observe
from eyeline.nn.attention import masked_softmax
from rungs import RUNGS, make

WINDOWED = "local-p"  # whose weights are a softmax times a Gaussian
SOME = [name for name in RUNGS if "-rnn-" not in name and "-lstm-" not in name]  # cells are all the same to what looks
LAYERED = ("transformer", "pointer-generator-transformer", "state-space")


@functools.cache
def built(rung: str) -> tuple[Any, Dims]:
    return make(RUNGS[rung])


@pytest.mark.parametrize("rung", SOME)
def test_what_is_seen_is_what_the_model_does(rung: str) -> None:
    model, dims = built(rung)
    source = alone(some_source(dims), 2)
    inputs = some_inputs(dims, 1)
    outputs = inputs[0, 1:].tolist()
    seen = observe(model, source, outputs)
    with torch.no_grad():
        said = teacher(model, source, inputs)
    assert len(seen.said) == len(outputs)
    for step, (one, token) in enumerate(zip(seen.said, outputs, strict=True)):
        log_probs = said.log_probs[0, step]
        assert max(one.log_prob, -1e4) == pytest.approx(float(log_probs[token]), abs=1e-4)
        scores = [value for _, value in one.candidates]
        assert scores == sorted(scores, reverse=True)
        assert 1 <= len(scores) <= LIKELIEST
        for candidate, value in one.candidates:
            assert value == pytest.approx(float(log_probs[candidate]), abs=1e-4)
        if "source" in said.attention:
            assert one.looked is not None
            assert torch.allclose(one.looked, said.attention["source"][0, step], atol=CLOSE)
    if not said.attention:
        assert seen.looks == []
        return
    if seen.looks[0].layer is None:
        assert torch.allclose(seen.looks[0].weights, said.attention["source"][0, : len(outputs)], atol=CLOSE)


@pytest.mark.parametrize("rung", SOME)
def test_weights_are_the_softmax_of_the_scores_and_contexts_their_sums(rung: str) -> None:
    model, dims = built(rung)
    source = alone(some_source(dims), 2)
    outputs = some_inputs(dims, 1)[0, 1:].tolist()
    for look in observe(model, source, outputs).looks:
        if look.scores is None:
            assert look.head is None
            continue
        assert look.scores.shape == look.weights.shape == (len(outputs), source.ids.shape[1])
        if WINDOWED not in rung:
            assert torch.allclose(masked_softmax(look.scores, look.weights == 0), look.weights, atol=CLOSE)
        assert look.values is None or len(look.values) == source.ids.shape[1]


@pytest.mark.parametrize("architecture", LAYERED)
def test_every_head_is_seen_as_its_decoder_maps_it(architecture: str) -> None:
    rung = next(name for name, settings in RUNGS.items() if settings.architecture == architecture)
    model, dims = built(rung)
    source = alone(some_source(dims), 0)
    inputs = some_inputs(dims, 1)
    with torch.no_grad():
        maps = model.decoder.maps(inputs[:, :-1], model.encode(source))
    seen = {(look.layer, look.head): look.weights for look in observe(model, source, inputs[0, 1:].tolist()).looks}
    layers, heads = RUNGS[rung].cross_attention
    for layer in range(layers):
        for head in range(heads):
            assert torch.allclose(seen[layer, head], maps[f"source.{layer}"][0, head], atol=CLOSE)
        if heads > 1:
            assert torch.allclose(seen[layer, None], maps[f"source.{layer}"][0].mean(0), atol=CLOSE)


def test_coverage_is_what_was_remembered_before_each_step() -> None:
    rung = next(name for name, settings in RUNGS.items() if getattr(settings, "coverage", "") == "sum")
    model, dims = built(rung)
    source = alone(some_source(dims), 2)
    seen = observe(model, source, some_inputs(dims, 1)[0, 1:].tolist())
    assert seen.coverage is not None
    sums = torch.cat([torch.zeros(1, source.ids.shape[1]), seen.looks[0].weights.cumsum(0)[:-1]])
    assert torch.allclose(seen.coverage, sums, atol=CLOSE)


@pytest.mark.parametrize("rung", ["bahdanau-bi-gru-1x1", next(name for name in RUNGS if name.startswith("transformer"))])
def test_looking_leaves_nothing_behind(rung: str) -> None:
    rung = rung if rung in RUNGS else next(name for name in RUNGS if name.startswith("bahdanau"))
    model, dims = built(rung)
    source, inputs = some_source(dims), some_inputs(dims, 4)
    before = teacher(model, source, inputs)
    lonely = alone(source, 2)
    with ThreadPoolExecutor(4) as threads:
        looking = [threads.submit(observe, model, lonely, inputs[0, 1:].tolist()) for _ in range(8)]
        asking = [threads.submit(teacher, model, source, inputs) for _ in range(8)]
        seen = [each.result() for each in looking]
        assert all(torch.equal(each.result().log_probs, before.log_probs) for each in asking)
    assert all(torch.equal(one.looks[0].weights, seen[0].looks[0].weights) for one in seen)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_the_head_that_tells_most_about_the_step_is_one_that_aligns() -> None:
    length = 6
    nowhere = torch.full((length, length), 1 / length)
    one_place = torch.zeros(length, length)
    one_place[:, -1] = 1.0
    aligned = torch.eye(length) * 0.8 + 0.2 / length
    half = (aligned + nowhere) / 2
    looks = [Look(0, number, weights) for number, weights in enumerate((nowhere, one_place, half, aligned))]
    assert informative(looks).head == 3
