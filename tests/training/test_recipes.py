"""Recipes beside the likelihood, on every rung: what each computes, against plain loops; runs with them resume exactly."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import MODELS, OTHERS, events, newest, rung_settings, same_run, settings, train, train_and_stop

from eyeline.contracts import BEGIN, END, UNKNOWN
from eyeline.data.corpus import Batch, Corpus
from eyeline.errors import ConfigError
from eyeline.ladder import Seq2Seq, build
from eyeline.loss import negative_log_likelihood
from eyeline.search import score
from eyeline.training.objective import Objective
from eyeline.training.preparation import prepare
from eyeline.training.recipes import slices
from eyeline.training.recipes.consistency import divergence, twice
from eyeline.training.recipes.minimum_risk import COSTS, MinimumRisk, lacking_bleu, symbol_error_rate
from eyeline.training.recipes.scheduled_sampling import ScheduledSampling
from eyeline.training.recipes.word_dropout import WordDropout

RUNGS = [*MODELS, *OTHERS]
RECIPES: dict[str, dict[str, Any]] = {
    "r-drop": {"r_drop": 1.0},
    "word-dropout": {"source_word_dropout": 0.2, "target_word_dropout": 0.2},
    "scheduled-sampling": {"scheduled_sampling": 0.5, "scheduled_sampling_steps": 8},
    "minimum-risk": {"minimum_risk": 0.5, "risk_candidates": 3},
}
ALL = {name: value for recipe in RECIPES.values() for name, value in recipe.items()}


def made(folder: Path, rung: str, dropout: float = 0.0) -> tuple[Seq2Seq, Corpus]:
    """A model of float64 with weights that matter, and the pairs of a small run."""
    config = rung_settings(folder, rung, model={"dropout": dropout})
    prepared = prepare(config, None)
    torch.manual_seed(1)
    model = build(prepared.config.model, prepared.source.size, prepared.target.size).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model, prepared.train.corpus()


def first(corpus: Corpus, count: int = 5) -> Batch:
    batch = corpus.batch(range(count))
    values = batch.source.values
    return replace(batch, source=replace(batch.source, values=None if values is None else values.double()))


@pytest.mark.parametrize("rung", RUNGS)
def test_every_rung_with_every_recipe_resumes_exactly(tmp_path: Path, rung: str) -> None:
    """All four at once, stopped in the middle of an epoch, and all parts logged."""
    config = rung_settings(tmp_path, rung, training={**ALL, "steps": 10, "accumulate": 2, "validate_every": 5})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 6)
    train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")
    for event in events(tmp_path / "parts", "train"):
        assert event["consistency_loss"] > 0
        assert 0 < event["expected_cost"] < 10
        assert math.isfinite(event["loss"])
    meter = json.loads((newest(tmp_path / "parts") / "state.json").read_bytes())["meter"]
    assert {"consistency", "risk"} <= meter.keys()


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_reaches_every_weight(tmp_path: Path, rung: str, recipe: str) -> None:
    """Gradients are finite numbers, and other ones than without the recipe."""
    model, corpus = made(tmp_path, rung, dropout=0.2)
    batch, gradients = first(corpus), []
    for values in ({}, RECIPES[recipe]):
        given = settings(tmp_path, training={**values, "scheduled_sampling_steps": 0}).training
        torch.manual_seed(3)
        model.zero_grad(set_to_none=True)
        model.train()
        Objective.of(given, corpus)(model, batch).objective.backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    assert all(bool(gradient.isfinite().all()) for gradient in gradients[1].values())
    assert any(not torch.allclose(gradients[0][name], gradients[1][name]) for name in gradients[0])


# ---- R-Drop -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS)
def test_two_passes_against_their_definition(tmp_path: Path, rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """½ (KL(p‖q) + KL(q‖p)) by loops over positions and symbols; likelihoods are means over both passes."""
    model, corpus = made(tmp_path, rung, dropout=0.3)
    batch = first(corpus)
    model.train()
    torch.manual_seed(5)
    loss = Objective(0.1, 0.0, 0.0, consistency=2.0)(model, batch)
    torch.manual_seed(5)
    double = twice(batch)
    step = model(double.source, double.inputs)
    plain = negative_log_likelihood(model.head, step, double.source, double.outputs, double.target_mask, 0.1)
    log_probs = model.head(step, double.source).detach()
    B, total = len(batch.rows), 0.0
    for row, position in (~batch.target_mask).nonzero().tolist():
        for p, q in zip(log_probs[row, position].tolist(), log_probs[B + row, position].tolist(), strict=True):
            if math.isfinite(p) and math.isfinite(q):
                total += 0.5 * (math.exp(p) * (p - q) + math.exp(q) * (q - p))
    assert loss.consistency is not None
    assert float(loss.consistency) == pytest.approx(total, rel=1e-9)
    assert total > 0.01
    assert float(loss.nll) == pytest.approx(float(plain.nll) / 2)
    assert loss.tokens == batch.target_tokens
    assert float(loss.objective.detach()) == pytest.approx((float(plain.objective.detach()) + 2.0 * total) / 2)
    monkeypatch.setattr(slices, "SLICE", 40)  # a row at a time
    sliced = divergence(model.head, step, double.source, double.target_mask).detach()
    assert float(sliced) == pytest.approx(total, rel=1e-9)


def test_without_anything_that_differs_there_is_nothing_to_compare(tmp_path: Path) -> None:
    model, corpus = made(tmp_path, "bahdanau", dropout=0.0)
    loss = Objective(0.0, 0.0, 0.0, consistency=1.0)(model, first(corpus))
    assert loss.consistency is not None
    assert float(loss.consistency) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ConfigError, match=r"training\.r_drop=1 compares passes .* model\.dropout=0"):
        settings(tmp_path, model={"dropout": 0.0}, training={"r_drop": 1.0})
    settings(tmp_path, model={"dropout": 0.0}, training={"r_drop": 1.0, "target_word_dropout": 0.1})


# ---- word dropout -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", ["bahdanau", "pointer-generator", "pointer-network-real"])
def test_word_dropout_takes_its_share_and_leaves_the_rest(tmp_path: Path, rung: str) -> None:
    _, corpus = made(tmp_path, rung)
    batch = first(corpus, 40)
    torch.manual_seed(0)
    noisy = WordDropout(0.3, 0.2)(batch)
    real, fed = ~batch.source.mask & (batch.source.ids != END), ~batch.target_mask & (batch.inputs != BEGIN)
    dropped, unfed = noisy.source.ids != batch.source.ids, noisy.inputs != batch.inputs
    if noisy.source.values is not None:  # whose elements have no ids of their own
        dropped = (noisy.source.values == 0).all(-1) & real
    assert bool((dropped <= real).all())
    assert bool((unfed <= fed).all())
    assert (noisy.source.ids[dropped] == UNKNOWN).all()
    assert (noisy.inputs[unfed] == UNKNOWN).all()
    assert 0.2 < float(dropped.sum() / real.sum()) < 0.4
    assert 0.1 < float(unfed.sum() / fed.sum()) < 0.3
    assert noisy.outputs is batch.outputs
    assert noisy.source.copy_ids is batch.source.copy_ids
    if batch.source.values is not None:
        assert noisy.source.values is not None
        assert bool((noisy.source.values[dropped] == 0).all())
        assert torch.equal(noisy.source.values[~dropped], batch.source.values[~dropped])


# ---- scheduled sampling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS)
def test_what_is_fed_is_gold_or_the_models_own(tmp_path: Path, rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, corpus = made(tmp_path, rung)
    batch = first(corpus, 40)
    monkeypatch.setattr(slices, "SLICE", 200)
    torch.manual_seed(0)
    fed = ScheduledSampling(0.5, 0)(model, batch, 1)
    changed = fed.inputs != batch.inputs
    assert 0.1 < float(changed.sum() / (~batch.target_mask[:, 1:]).sum()) < 0.5, "half, but for those equal to gold"
    assert not bool((changed & batch.target_mask).any())
    assert not bool(torch.isin(fed.inputs[changed], torch.tensor([0, BEGIN, END])).any())
    assert bool((fed.inputs[:, 0] == BEGIN).all())
    log_probs = model.head(model(batch.source, batch.inputs), batch.source)
    said = log_probs[:, :-1].gather(-1, fed.inputs[:, 1:, None].clamp(max=log_probs.shape[-1] - 1))[..., 0]
    assert bool((said[changed[:, 1:]] > -torch.inf).all()), "what is fed could be said there"
    loss = Objective(0.1, 0.0, 0.0)(model, fed)
    assert bool(loss.objective.isfinite())
    if rung == "pointer-network":
        taken = [set(fed.inputs[row, : t + 1].tolist()) for row, t in (fed.target_mask & ~batch.target_mask).nonzero().tolist()]
        gold = [int(batch.outputs[row, t]) for row, t in (fed.target_mask & ~batch.target_mask).nonzero().tolist()]
        assert taken
        assert all(symbol in before for symbol, before in zip(gold, taken, strict=True)), "only what was fed too early"
    else:
        assert torch.equal(fed.target_mask, batch.target_mask)


def test_what_is_drawn_follows_the_distribution(tmp_path: Path) -> None:
    """Of one pair, many times: frequencies at the second position are the model's probabilities at the first."""
    model, corpus = made(tmp_path, "bahdanau")
    batch = corpus.batch([0] * 3000)
    torch.manual_seed(0)
    fed = ScheduledSampling(1.0, 0)(model, batch, 1).inputs[:, 1]
    probabilities = model.head(model(batch.source, batch.inputs), batch.source)[0, 0].exp()
    for symbol in range(4, len(probabilities)):
        if symbol != int(batch.inputs[0, 1]):  # which also stands where END or the like was drawn
            share = float((fed == symbol).double().mean())
            assert share == pytest.approx(float(probabilities[symbol].detach()), abs=0.03)


def test_the_share_rises_and_then_stays(tmp_path: Path) -> None:
    model, corpus = made(tmp_path, "bahdanau")
    batch = corpus.batch(list(range(40)) * 10)
    shares = []
    for number in (1, 50, 100, 500):
        torch.manual_seed(0)
        fed = ScheduledSampling(0.8, 100)(model, batch, number)
        shares.append(float((fed.inputs != batch.inputs).double().mean()))
    assert shares[0] < 0.02
    assert shares[1] == pytest.approx(shares[2] / 2, rel=0.1)
    assert shares[2] == shares[3]


# ---- minimum risk -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS)
def test_the_risk_is_the_expected_cost_of_what_was_drawn(tmp_path: Path, rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against probabilities by `search.score`, source by source, output by output; the gradient is that of the formula."""
    model, corpus = made(tmp_path, rung)
    batch = first(corpus)
    recipe = MinimumRisk(symbol_error_rate, 4, 50)
    torch.manual_seed(2)
    drawn = recipe._drawn(model, batch)
    assert any(drawn), "some were finished"
    torch.manual_seed(2)
    risk = recipe(model, batch)
    wanted = 0.0
    for n, found in enumerate(drawn):
        gold = tuple(batch.outputs[n][~batch.target_mask[n]].tolist())[:-1]
        outputs = [gold, *(found - {gold})]
        scores = torch.tensor([one_score(model, batch, n, output) for output in outputs], dtype=torch.float64)
        costs = torch.tensor([symbol_error_rate(output, gold) for output in outputs], dtype=torch.float64)
        wanted += (len(gold) + 1) * float((scores.softmax(0) * costs).sum())
    assert float(risk.detach()) == pytest.approx(wanted, rel=1e-9)
    monkeypatch.setattr(slices, "SLICE", 40)
    torch.manual_seed(2)
    assert float(recipe(model, batch).detach()) == pytest.approx(wanted, rel=1e-9)


def one_score(model: Seq2Seq, batch: Batch, n: int, output: tuple[int, ...]) -> float:
    source = batch.source.select(torch.tensor([n]))
    wanted = torch.tensor([[*output, END]])
    (found,) = score(model, source, torch.tensor([[BEGIN, *output]]), wanted, torch.zeros_like(wanted, dtype=torch.bool))
    return found.score


def test_training_by_risk_alone_lowers_it(tmp_path: Path) -> None:
    """Adam on the risk, nothing else: outputs come to cost less."""
    model, corpus = made(tmp_path, "bahdanau")
    recipe, batch = MinimumRisk(symbol_error_rate, 8, 20), first(corpus, 8)
    optimizer, risks = torch.optim.Adam(model.parameters(), 0.01), []
    torch.manual_seed(0)
    for _ in range(40):
        risk = recipe(model, batch)
        optimizer.zero_grad()
        risk.backward()
        optimizer.step()
        risks.append(float(risk.detach()))
    assert sum(risks[-5:]) < 0.9 * sum(risks[:5])


def test_drawing_leaves_the_mode_as_it_was(tmp_path: Path) -> None:
    model, corpus = made(tmp_path, "transformer", dropout=0.2)
    for training in (True, False):
        model.train(training)
        MinimumRisk(symbol_error_rate, 2, 10)(model, first(corpus))
        assert model.training is training
        assert all(module.training is training for module in model.modules())


def test_costs() -> None:
    for cost in COSTS.values():
        assert cost((4, 5, 6), (4, 5, 6)) == 0
        assert cost((), ()) == 0
        assert 0 < cost((4, 5, 7), (4, 5, 6)) <= 1
        assert 0 < cost((), (4, 5, 6)) <= 1
    assert symbol_error_rate((4, 6), (4, 5, 6)) == 0.25
    assert symbol_error_rate((4,), ()) == 1.0
    # 1-grams 3/4, then (1 + 2)/(1 + 3), (1 + 1)/(1 + 2), 1/(1 + 1); as long as the gold one
    assert lacking_bleu((4, 5, 6, 9), (4, 5, 6, 7)) == pytest.approx(1 - (3 / 4 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert lacking_bleu((4, 5), (4, 5, 6, 7)) == pytest.approx(1 - math.exp(1 - 4 / 2))
