"""Pointer networks: what builders make of settings, what searches answer, what cannot be learnt; and one that learns to sort."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from answers import FIRST, LENGTHS, K, alone, some_inputs, some_source, teacher, wider
from eyeline.config_models import PointerNetworkSettings
from eyeline.contracts import BEGIN, END, PAD, Hypothesis, Source
from eyeline.errors import ConfigError, UserError
from eyeline.ladder import build
from eyeline.loss import negative_log_likelihood
from eyeline.nn import AdditiveScore, CopyBridge, DenseBridge
from eyeline.search import beam_search, greedy, score
from rungs import RUNGS, SOURCE, TARGET, make
from rungs.pointing import TINY, WAYS, element_size

NAMES = [f"pointer-network-{name}" for name in WAYS]
DISTINCT = [name for name in NAMES if "distinct" in name]
STEPS = 1500


def forced(targets: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, outputs and mask of targets [positions], END added."""
    width = max(map(len, targets)) + 1
    outputs = torch.full((len(targets), width), PAD)
    for row, target in enumerate(targets):
        outputs[row, : len(target) + 1] = torch.tensor([*(FIRST + position for position in target), END])
    mask = torch.arange(width) > torch.tensor([len(target) for target in targets])[:, None]
    inputs = torch.cat([torch.full((len(targets), 1), BEGIN), outputs[:, :-1]], 1)
    return inputs, outputs, mask


@pytest.mark.parametrize("name", WAYS)
def test_settings_become_layers_widths_and_choices(name: str) -> None:
    settings = RUNGS[f"pointer-network-{name}"]
    model = build(settings, SOURCE, TARGET)
    weights = model.state_dict()
    assert sum(key.startswith("encoder.layers.") and key.endswith("weight_hh_l0") for key in weights) == settings.encoder_layers
    assert sum(key.startswith("decoder.stack.") and key.endswith("weight_hh_l0") for key in weights) == settings.decoder_layers
    assert weights["decoder.score.vector.weight"].shape == (1, settings.attention_size)
    assert ("encoder.embedding.map.weight" in weights) == ("vectors" in name)
    if "vectors" in name:
        assert weights["encoder.embedding.map.weight"].shape == (settings.embedding_size, element_size(name))
    assert type(model.decoder.bridge) is (CopyBridge if "copied" in name else DenseBridge)
    assert (model.decoder.start(model.encode(some_source(make(settings)[1]))).looked is not None) == settings.distinct
    assert not any("target" in key or key.startswith("head") for key in weights), "there is no target vocabulary"


def test_a_shared_vocabulary_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="shared=true"):
        build(PointerNetworkSettings(), SOURCE, SOURCE, shared=True)


@pytest.mark.parametrize("name", ["symbols-lstm-1x1", "vectors-distinct-lstm-1x1"])
def test_dropout_acts_on_either_side_in_training_alone(name: str) -> None:
    settings = PointerNetworkSettings(**{**TINY, **WAYS[name], "element_size": element_size(name), "dropout": 0.5})
    source = some_source(make(RUNGS[f"pointer-network-{name}"])[1])
    inputs = some_inputs(make(RUNGS[f"pointer-network-{name}"])[1], len(LENGTHS))
    model = build(settings, SOURCE, TARGET).train()
    with torch.no_grad():
        memory = model.encode(source)
        first, second = (model.decoder(inputs, memory).features for _ in range(2))
        assert not torch.equal(first, second), "the decoder's own"
        first, second = (model.encoder(source).final for _ in range(2))
        assert not torch.equal(first, second), "the encoder's own"
        model.eval()
        assert torch.equal(teacher(model, source, inputs).log_probs, teacher(model, source, inputs).log_probs)


def test_elements_of_other_numbers_are_refused_by_name() -> None:
    model, dims = make(RUNGS["pointer-network-vectors-gru-1x2"])
    source = some_source(dims)
    assert source.values is not None
    with pytest.raises(ConfigError, match=r"2 numbers, and the source has 3 \(element_size=2\)"):
        model.encode(replace(source, values=torch.zeros(*source.ids.shape, 3)))
    with pytest.raises(ConfigError, match=r"2 numbers, and the source has symbols alone \(element_size=2\)"):
        model.encode(replace(source, values=None))


@pytest.mark.parametrize("name", NAMES)
def test_all_target_positions_are_computed_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the cells and one of the score for a whole target, with closed positions and without."""
    model, dims = make(RUNGS[name])
    real, seen = AdditiveScore.forward, []
    monkeypatch.setattr(AdditiveScore, "forward", lambda self, q, k: seen.append(q.shape[1]) or real(self, q, k))
    cells = model.decoder.stack.layers[0]
    cells.register_forward_pre_hook(lambda cell, given: seen.append(given[0].shape[1]))
    teacher(model, some_source(dims), some_inputs(dims, len(LENGTHS)))
    assert seen == [5, 5]


def test_what_is_pointed_at_is_the_attention() -> None:
    """The probability of a position is its weight, and that of END the weight of the last."""
    for name in NAMES:
        model, dims = make(RUNGS[name])
        source = some_source(dims)
        answer = teacher(model, source, some_inputs(dims, len(LENGTHS)))
        weights = answer.attention["source"]
        for row, length in enumerate(LENGTHS):
            found = answer.log_probs[row].exp()
            torch.testing.assert_close(found[:, END], weights[row, :, length - 1])
            torch.testing.assert_close(found[:, FIRST : FIRST + length - 1], weights[row, :, : length - 1])
            assert not found[:, :END].any()


def outputs(n: int, distinct: bool, longest: int) -> list[list[int]]:
    """Every output for n elements, END aside."""
    ways = itertools.permutations if distinct else lambda items, length: itertools.product(items, repeat=length)
    return [list(way) for length in range(longest + 1) for way in ways(range(n), length)]


@pytest.mark.parametrize("name", DISTINCT)
def test_the_probabilities_of_all_outputs_sum_to_one_and_a_wide_beam_finds_them_in_order(name: str) -> None:
    """Three elements in any order, any number of them: 16 outputs, for none can go on for ever."""
    model, dims = make(RUNGS[name])
    source = alone(some_source(dims, (4, 7)), 0)
    every = outputs(3, True, 3)
    scored = score(model, source.select(torch.zeros(len(every), dtype=torch.long)), *forced(every))
    assert math.fsum(math.exp(each.score) for each in scored) == pytest.approx(1, abs=1e-5)
    (found,) = beam_search(model, source, beam_size=16, n_best=16, length_penalty=0.0)
    wanted = sorted(scored, key=lambda each: -each.score)
    assert [each.ids for each in found] == [each.ids for each in wanted]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)
    assert all(each.finished for each in found)


@pytest.mark.parametrize("name", NAMES)
def test_searches_answer_with_positions_of_their_own_source(name: str) -> None:
    """Sources of many lengths leave the batch one after the other; each answers as it would alone, and as it is scored."""
    model, dims = make(RUNGS[name])
    lengths = (9, 1, 4, 12, 2, 7)
    source = some_source(dims, lengths)
    for found in (
        [[answer] for answer in greedy(model, source, max_length=12)],
        beam_search(model, source, beam_size=1, max_length=12),
        beam_search(model, source, beam_size=K, n_best=K, max_length=12),
        beam_search(model, source, beam_size=30, n_best=2, max_length=3, min_length=1),
    ):
        for row, answers in enumerate(found):
            for answer in answers:
                check_answer(answer, lengths[row], RUNGS[name].distinct)
                given = forced([[number - FIRST for number in answer.ids if number != END]])
                (again,) = score(model, alone(source, row), *given)
                known = len(answer.ids)  # END counts in what is scored, and not where the search was cut short
                assert again.token_scores[:known] == pytest.approx(answer.token_scores, abs=1e-4)
    for row in range(len(lengths)):
        (by_itself,) = beam_search(model, alone(source, row), beam_size=K, n_best=K, max_length=12)
        together = beam_search(model, source, beam_size=K, n_best=K, max_length=12)[row]
        assert [each.ids for each in by_itself] == [each.ids for each in together]


def check_answer(answer: Hypothesis, length: int, distinct: bool) -> None:
    positions = [number - FIRST for number in answer.ids if number != END]
    assert all(0 <= position < length - 1 for position in positions)
    assert answer.ids.count(END) == answer.finished
    assert all(value <= 0 for value in answer.token_scores)
    assert answer.attention["source"].shape == (len(answer.ids), length)
    if distinct:
        assert len(set(positions)) == len(positions)


@pytest.mark.parametrize("name", DISTINCT)
def test_a_position_given_twice_is_impossible_and_cannot_be_learnt(name: str) -> None:
    """Its log-probability is -inf, that of what stands beside it is not; training on it is refused by place."""
    model, dims = make(RUNGS[name])
    source = some_source(dims, (5, 5))
    given = forced([[0, 1, 2, 3], [1, 3, 1, 0]])
    fine, twice = score(model, source, *given)
    assert math.isfinite(fine.score)
    assert twice.score == -math.inf
    assert [value == -math.inf for value in twice.token_scores] == [False, False, True, False, False]
    inputs, targets, mask = given
    with pytest.raises(UserError, match=f"id {FIRST + 1}, which is wanted at position 2 of row 1"):
        negative_log_likelihood(model.head, model(source, inputs), source, targets, mask)
    with torch.no_grad():
        assert negative_log_likelihood(model.head, model(source, inputs), source, targets, mask).nll == math.inf


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_a_pair_does_not_depend_on_its_batch(name: str, smoothing: float) -> None:
    """Smoothing is over what the pair itself can say: neither a longer neighbour nor padding thins it out."""
    model, dims = make(RUNGS[name])
    source = some_source(dims, (4, 2, 8))
    targets = [[2, 0], [0], [4, 6, 1]]

    def loss(of: Source, these: list[list[int]]) -> Any:
        inputs, wanted, mask = forced(these)
        return negative_log_likelihood(model.head, model(of, inputs), of, wanted, mask, smoothing).objective

    parts = [loss(alone(source, row), [target]) for row, target in enumerate(targets)]
    for whole in (loss(source, targets), loss(wider(source, 5), targets)):
        torch.testing.assert_close(whole, sum(parts), rtol=0, atol=1e-5)
    whole.backward()
    for parameter, value in model.named_parameters():
        assert value.grad is not None, parameter
        assert torch.isfinite(value.grad).all(), parameter


@pytest.mark.slow
@pytest.mark.parametrize(("distinct", "wanted"), [(True, 0.98), (False, 0.93)])
def test_five_numbers_are_sorted_after_a_quarter_of_a_minute(distinct: bool, wanted: float) -> None:
    """Numbers of [0, 1) drawn anew for each batch; this share of unseen ones is pointed at in ascending order."""
    torch.manual_seed(0)
    widths = {"embedding_size": 8, "encoder_size": 64, "decoder_size": 64, "attention_size": 64}
    model = build(PointerNetworkSettings(cell="gru", element_size=1, dropout=0.0, distinct=distinct, **widths), 4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = 0.02 * min(1, (step + 1) / 50) * (1 - step / STEPS)
        source, order = numbers(64)
        inputs, outputs, mask = sorted_targets(order)
        loss = negative_log_likelihood(model.head, model(source, inputs), source, outputs, mask)
        optimizer.zero_grad()
        (loss.objective / loss.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
    source, order = numbers(1000)
    answers = greedy(model.eval(), source)
    right = sum(answer.ids == (*(FIRST + row).tolist(), END) for answer, row in zip(answers, order, strict=True))
    assert right >= 1000 * wanted, f"{right} of 1000"


def numbers(count: int) -> tuple[Source, Tensor]:
    """Five numbers each, and their positions in ascending order."""
    values = torch.rand(count, 5, 1)
    ids = torch.tensor([*[1] * 5, END]).repeat(count, 1)
    padded = torch.cat([values, torch.full((count, 1, 1), torch.nan)], 1)
    return Source(ids, torch.full((count,), 6), values=padded), values[..., 0].argsort(1)


def sorted_targets(order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    ids = FIRST + order
    edge = torch.ones(len(ids), 1, dtype=torch.long)
    return torch.cat([BEGIN * edge, ids], 1), torch.cat([ids, END * edge], 1), torch.zeros(len(ids), 6, dtype=torch.bool)
