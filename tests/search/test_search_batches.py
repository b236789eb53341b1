"""What a batch must not do: no source's answer depends on its neighbours, their order or the padding (O11, O20)."""

from __future__ import annotations

import itertools

import pytest
import torch
from search_fakes import A, B, TableModel, TinyModel, assert_same, assert_sound, forced, sources

from eyeline.contracts import END, Hypothesis
from eyeline.search import greedy, score, search

SHORT, LONG, MIDDLE = 7, 8, 9  # the first ids of the sources, which name their tables


def ends_at_once(prefix):
    return {END: 0.97, A: 0.02, B: 0.01} if prefix == () else {END: 0.9, A: 0.06, B: 0.04}


def ends_after_thirty(prefix):
    return {END: 0.001, A: 0.7, B: 0.299} if len(prefix) < 30 else {END: 0.97, A: 0.02, B: 0.01}


def ends_after_nine(prefix):
    return {END: 0.01, A: 0.2, B: 0.79} if len(prefix) < 9 else {END: 0.9, A: 0.04, B: 0.06}


TABLES = {SHORT: ends_at_once, LONG: ends_after_thirty, MIDDLE: ends_after_nine}
ROWS = [[SHORT], [LONG, 9, 9], [MIDDLE, 5]]


def flat(lists: list[list[Hypothesis]]) -> list[Hypothesis]:
    return list(itertools.chain.from_iterable(lists))


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2), (2, 0, 1, 1, 0)])
@pytest.mark.parametrize(("beam", "n_best", "penalty"), [(1, 1, 1.0), (4, 1, 1.0), (4, 4, 0.0), (4, 4, 1.0)])
def test_done_is_done_while_a_neighbour_runs_on(order, beam, n_best, penalty):
    model, rows = TableModel(TABLES), ROWS
    options = {"beam_size": beam, "n_best": n_best, "length_penalty": penalty, "min_length": 0, "max_length": 40}
    alone = [search(model, sources(row), **options)[0] for row in rows]
    together = search(model, sources(*(rows[i] for i in order)), **options)
    for i, answers in zip(order, together, strict=True):
        assert len(answers) == n_best
        assert_sound(answers, columns=len(rows[i]) + 1)
        for left, right in zip(alone[i], answers, strict=True):
            assert_same(left, right)
    assert alone[0][0].ids == (END,)
    assert penalty == 0 or len(alone[1][0].ids) == 31


@pytest.mark.parametrize("beam", [1, 4])
def test_what_is_done_is_not_advanced(beam):
    model = TableModel(TABLES)
    search(model, sources([SHORT], [LONG], [SHORT]), beam_size=beam, max_length=40)
    rows = model.decoder.rows_stepped
    assert rows[0] == 3
    assert set(rows[1:]) == {beam}  # only the long one is left, with its beam
    assert len(rows) >= 31


LINES = [[4], [5, 6, 7], [4 + i * i % 8 for i in range(39)], [6, 5, 4, 6, 5, 11, 10], [4]]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_order_and_padding_change_nothing(beam, penalty, seed):
    model = TinyModel(seed)

    def answers(batch, maxima):
        return search(model, batch, beam_size=beam, n_best=beam, length_penalty=penalty, max_length=maxima)

    maxima = [12, 20, 25, 15, 12]
    alone = flat([answers(sources(line), [maximum])[0] for line, maximum in zip(LINES, maxima, strict=True)])
    variants = {
        "together": flat(answers(sources(*LINES), maxima)),
        "reversed": flat(answers(sources(*LINES[::-1]), maxima[::-1])[::-1]),
        "wider": flat(answers(sources(*LINES, width=60), maxima)),
        "garbage": flat(answers(sources(*LINES, width=60, garbage=9), maxima)),
    }
    for name, others in variants.items():
        assert len(others) == len(alone), name
        for left, right in zip(alone, others, strict=True):
            assert_same(left, right, tolerance=1e-4)
    assert {len(answer.ids) for answer in alone} != {len(alone[0].ids)}  # they do end at different steps


def test_score_of_a_line_does_not_depend_on_its_neighbours():
    model = TinyModel(1)
    outputs = [answer.ids for answer in greedy(model, sources(*LINES), max_length=[12, 20, 25, 15, 12])]
    together = score(model, sources(*LINES, width=60, garbage=9), *forced(outputs), attention=True)
    for line, ids, answer in zip(LINES, outputs, together, strict=True):
        (alone,) = score(model, sources(line), *forced([ids]), attention=True)
        assert_same(alone, answer, tolerance=1e-4)
        assert answer.attention["source"].shape == (len(ids), len(line) + 1)


def test_the_global_random_state_is_neither_read_nor_changed():
    model, batch = TinyModel(2), sources(*LINES)
    torch.manual_seed(1)
    first = flat(search(model, batch, beam_size=3, n_best=3, max_length=9))
    state = torch.get_rng_state()
    second = flat(search(model, batch, beam_size=3, n_best=3, max_length=9))
    assert torch.equal(state, torch.get_rng_state())
    assert [(a.ids, a.token_scores) for a in first] == [(a.ids, a.token_scores) for a in second]


def test_answers_carry_no_gradient():
    model = TinyModel(2).requires_grad_(True)
    (answer,) = greedy(model, sources([4, 5]), max_length=3)
    assert not answer.attention["source"].requires_grad
