"""The coverage penalty: its numbers, against brute force and plain lists, in scores as in searches; and that the checks bite."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import A, B, TableDecoder, TableModel, TinyModel, assert_same, forced, gaze, sources, toy
from search_oracles import all_answers, plain_beam, ranked, worth
from test_brute_force import PENALTIES, tables

from eyeline.contracts import END, Step
from eyeline.errors import ConfigError
from eyeline.search import beam, beam_search, coverage, score, search
from eyeline.search.coverage import LEAST_LOOK, Looked, coverage_penalty

ONE = sources([7, 8])
SHOWN = torch.zeros(2, dtype=torch.bool)


def plain(beta: float, ids: Sequence[int], columns: int = 3) -> float:
    """β Σ_j log min(Σ_t α_tj, 1) of a fake's own looks, in lists; its END is the last of `ids`."""
    looks = [gaze(ids[:t], columns) for t in range(len(ids))]
    return beta * sum(math.log(max(LEAST_LOOK, min(1.0, sum(look[j] for look in looks)))) for j in range(columns))


# ---- numbers (O16) ----


def check_columns_are_summed() -> None:
    """Rows [.9, .1] and [.2, .8]: log min(1.1, 1) + log .9; summing rows would give 0."""
    looked = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).sum(0)
    assert coverage.coverage_penalty(looked, SHOWN, 1.0).item() == pytest.approx(-0.10536, abs=1e-5)
    assert coverage.coverage_penalty(looked, SHOWN, 0.2).item() == pytest.approx(-0.021072, abs=1e-6)


def test_the_numbers_of_the_report() -> None:
    check_columns_are_summed()


def test_a_position_that_was_never_looked_at_costs_a_finite_amount() -> None:
    never = coverage_penalty(torch.tensor([1.0, 0.0]), SHOWN, 1.0).item()
    assert never == pytest.approx(math.log(LEAST_LOOK))
    assert coverage_penalty(torch.tensor([1.0, 1e-9]), SHOWN, 1.0).item() == never
    assert coverage_penalty(torch.tensor([1.0, 0.5]), SHOWN, 1.0).item() > never


def test_padding_of_the_source_costs_nothing() -> None:
    mask = torch.tensor([False, False, True])
    looked = torch.tensor([0.5, 1.5, 0.0])
    assert coverage_penalty(looked, mask, 1.0).item() == pytest.approx(math.log(0.5))


# ---- searches ----


@settings(max_examples=40, deadline=None)
@given(st.data(), PENALTIES, st.sampled_from([0.1, 0.5, 3.0]), st.integers(1, 3), st.sampled_from([1, 3, 60]))
def test_a_beam_that_holds_everything_finds_the_best_by_the_penalised_score(data, penalty, beta, maximum, n_best):
    table = data.draw(tables((A, B), maximum))
    oracle = ranked(all_answers(table, (A, B), 0, maximum), penalty, lambda ids: plain(beta, ids))
    answers = beam_search(
        TableModel(table), ONE, beam_size=120, n_best=n_best, length_penalty=penalty, max_length=maximum, coverage_penalty=beta
    )[0]
    compare(answers, oracle[:n_best], penalty, beta, table)


@settings(max_examples=40, deadline=None)
@given(st.data(), PENALTIES, st.sampled_from([0.1, 0.5, 3.0]), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_a_narrow_beam_keeps_the_documented_rules(data, penalty, beta, maximum, size, n_best):
    """It stops early where plain lists never do; and the first of n answers is the only one of one."""
    n_best = min(n_best, size)
    table = data.draw(tables((A, B), maximum))
    wanted = plain_beam(table, (A, B), size, n_best, penalty, 0, maximum, lambda ids: plain(beta, ids))
    options = {"beam_size": size, "length_penalty": penalty, "max_length": maximum, "coverage_penalty": beta}
    answers = beam_search(TableModel(table), ONE, n_best=n_best, **options)[0]
    compare(answers, wanted, penalty, beta, table)
    assert_same(answers[0], beam_search(TableModel(table), ONE, n_best=1, **options)[0][0])


def compare(answers, oracle, penalty, beta, table):
    """Normalised scores equal in order; `score` is the model's own, whatever the penalty; unfinished ones have none of it."""
    assert len(answers) == len(oracle)
    for answer, wanted in zip(answers, oracle, strict=True):
        assert answer.finished == wanted[2]
        extra = plain(beta, answer.ids) if answer.finished else 0.0
        assert answer.normalized_score == pytest.approx(worth(wanted, penalty, lambda ids: plain(beta, ids)), abs=1e-5)
        assert answer.normalized_score == pytest.approx(worth((answer.ids, answer.score, False), penalty) + extra, abs=1e-5)
        own = sum(math.log(table(answer.ids[:t])[token]) for t, token in enumerate(answer.ids))
        assert answer.score == pytest.approx(own, abs=1e-5)


def prefers_a_longer_look(prefix):
    """The empty output is likelier; `A A` looks at everything."""
    return {END: 0.5, A: 0.4, B: 0.1} if prefix == () else {END: 0.6, A: 0.3, B: 0.1}


def test_a_penalty_turns_the_ranking_and_never_the_scores() -> None:
    without, with_it = (
        beam_search(
            TableModel(prefers_a_longer_look), ONE, beam_size=4, n_best=4, length_penalty=0.0, max_length=4, coverage_penalty=beta
        )[0]
        for beta in (0.0, 2.0)
    )
    assert without[0].ids == (END,)
    assert len(with_it[0].ids) > 1
    scores = {answer.ids: answer.score for answer in without}
    assert all(answer.score == pytest.approx(scores[answer.ids]) for answer in with_it if answer.ids in scores)


def test_a_penalty_of_nothing_changes_nothing() -> None:
    for size in (1, 4):
        plain_one, other = (
            search(TableModel(toy), ONE, beam_size=size, max_length=6, **options) for options in ({}, {"coverage_penalty": 0.0})
        )
        assert_same(plain_one[0][0], other[0][0])


BATCH = ([4, 5, 6, 7, 8, 9, 10], [7], [8, 9], [11, 4, 4], [7])


def check_scores_agree() -> None:
    """`score` of what a search answered is what the search said, the attention of the hypotheses kept or not."""
    taken_off = []
    for seed in range(3):
        model = TinyModel(seed)
        for size, attention in ((1, True), (1, False), (4, True), (4, False)):
            found = search(
                model, sources(*BATCH), beam_size=size, max_length=[5, 12, 9, 12, 12], attention=attention, coverage_penalty=0.4
            )
            answers = [answers[0] for answers in found]
            ids = [answer.ids for answer in answers]
            scored = score(model, sources(*BATCH), *forced(ids), attention=attention, coverage_penalty=0.4)
            bare = score(model, sources(*BATCH), *forced(ids))
            for said, given_, without in zip(answers, scored, bare, strict=True):
                assert_same(said, given_, tolerance=1e-4)
                assert given_.score == without.score
                assert given_.normalized_score <= without.normalized_score
                assert said.finished or given_.normalized_score == without.normalized_score
                taken_off.append(without.normalized_score - given_.normalized_score)
    assert max(taken_off) > 0.1


def test_scores_agree() -> None:
    check_scores_agree()


def check_neighbours() -> None:
    model = TinyModel(1)
    options = {"beam_size": 3, "n_best": 3, "coverage_penalty": 0.7}
    maxima = [5, 12, 9, 12, 12]
    together = search(model, sources(*BATCH, width=20, garbage=9), max_length=maxima, **options)
    for row, maximum, answers in zip(BATCH, maxima, together, strict=True):
        alone = search(model, sources(row), max_length=maximum, **options)[0]
        for left, right in zip(alone, answers, strict=True):
            assert_same(left, right, tolerance=1e-4)


def test_neighbours_order_and_padding_change_nothing() -> None:
    check_neighbours()


# ---- what cannot be ----


@pytest.mark.parametrize("beta", [-0.1, math.nan, math.inf])
def test_weights_that_cannot_be(beta: float) -> None:
    for size in (1, 2):
        with pytest.raises(ConfigError, match="coverage_penalty"):
            search(TableModel(toy), ONE, beam_size=size, coverage_penalty=beta)
    with pytest.raises(ConfigError, match="coverage_penalty"):
        score(TableModel(toy), ONE, *forced([(A, END)]), coverage_penalty=beta)


class Blind(TableDecoder):
    """Says nothing of where it looks."""

    def step(self, token, state, memory):
        said, after = super().step(token, state, memory)
        return Step(said.features), after

    def __call__(self, tokens, memory):
        state, features = self.start(memory), []
        for t in range(tokens.shape[1]):
            step, state = self.step(tokens[:, t], state, memory)
            features.append(step.features)
        return Step(torch.stack(features, 1))


def test_a_model_without_attention_is_refused_where_a_penalty_asks_for_it() -> None:
    model = TableModel(toy)
    model.decoder = Blind()
    for size in (1, 2):
        search(model, ONE, beam_size=size)
        with pytest.raises(ConfigError, match=r"no attention.*coverage_penalty=0\.2"):
            search(model, ONE, beam_size=size, coverage_penalty=0.2)
    score(model, ONE, *forced([(A, END)]))
    with pytest.raises(ConfigError, match=r"no attention.*coverage_penalty=0\.2"):
        score(model, ONE, *forced([(A, END)]), coverage_penalty=0.2)


# ---- planted faults ----


def rows_summed(looked, mask, weight):
    """Over the source, where it should be over the steps: always 1, so that the penalty does nothing."""
    return weight * looked.double().sum(-1, keepdim=True).clamp(max=1.0).log().sum(-1)


def end_left_out(self, attention):
    return self


def parents_forgotten(self, keep, parents, real=Looked.select):
    return real(self, keep, torch.zeros_like(parents))


def sources_mixed(self, keep, parents, real=Looked.select):
    return real(self, keep.flip(0), parents)


def padding_counted(looked, mask, weight, real=coverage_penalty):
    return real(looked, torch.zeros_like(mask), weight)


@pytest.mark.parametrize(
    ("where", "name", "fault", "check"),
    [
        (coverage, "coverage_penalty", rows_summed, check_columns_are_summed),
        (coverage, "coverage_penalty", padding_counted, check_neighbours),
        (Looked, "after", end_left_out, check_scores_agree),
        (Looked, "select", parents_forgotten, check_scores_agree),
        (Looked, "select", sources_mixed, check_neighbours),
        (beam.Looked, "penalties", lambda self, source, width: torch.zeros(len(source.ids), width).double(), check_scores_agree),
    ],
)
def test_a_fault_is_caught(where, name, fault, check, monkeypatch):
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(AssertionError):
        check()
