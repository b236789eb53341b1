"""Proof that the checks of this folder bite: faults that others met, planted one at a time, each of which must be caught."""

from __future__ import annotations

import itertools

import pytest
import torch
from search_fakes import Keys, Prefix, Recurrent, TableModel, TinyModel, assert_same, assert_sound, forced, sources, toy
from test_search_batches import ROWS, TABLES

from eyeline.contracts import Source, select
from eyeline.search import beam, beam_search, greedy, rules, score, search
from eyeline.search.candidates import best_allowed
from eyeline.search.continuations import Continuations
from eyeline.search.history import History
from eyeline.search.limits import Ranking
from eyeline.search.rules import Rules


def check_scorer_t() -> None:
    for penalty, length, normalized in [(0.0, 1, -0.9163), (0.5, 4, -0.6019), (1.0, 4, -0.3009)]:
        best = beam_search(TableModel(toy), sources([7, 8]), beam_size=2, length_penalty=penalty, max_length=6)[0][0]
        assert (len(best.ids), round(best.normalized_score, 4)) == (length, normalized)


def check_scores_agree() -> None:
    batch = sources([4, 5, 6, 7, 8, 9, 10], [7], [8, 9], [11, 4, 4], [7])
    for seed, size in itertools.product(range(3), (1, 4)):
        model = TinyModel(seed)
        answers = [answers[0] for answers in search(model, batch, beam_size=size, max_length=[5, 12, 9, 12, 12])]
        for said, scored in zip(answers, score(model, batch, *forced([a.ids for a in answers]), attention=True), strict=True):
            assert_same(said, scored, tolerance=1e-4)


def check_neighbours() -> None:
    model = TableModel(TABLES)
    for n_best in (1, 4):
        together = beam_search(model, sources(*ROWS), beam_size=4, n_best=n_best, max_length=40)
        for row, answers in zip(ROWS, together, strict=True):
            alone = beam_search(model, sources(row), beam_size=4, n_best=n_best, max_length=40)[0]
            for left, right in zip(alone, answers, strict=True):
                assert_same(left, right)


def check_lists() -> None:
    for seed in range(4):
        model, batch = TinyModel(seed, sharpness=1.0), sources([4, 5, 6], [7], [8, 9])
        for maximum in (1, 3, 12):
            for answers, (best,) in zip(
                beam_search(model, batch, beam_size=4, n_best=4, max_length=maximum),
                beam_search(model, batch, beam_size=4, max_length=maximum),
                strict=True,
            ):
                assert len(answers) == 4
                assert_sound(answers, columns=answers[0].attention["source"].shape[1])
                assert_same(best, answers[0])
                for answer in answers:
                    assert len(answer.ids) - answer.finished == maximum or answer.finished


CHECKS = [check_scorer_t, check_scores_agree, check_neighbours, check_lists]


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_pass_where_nothing_is_planted(check):
    check()


# ---- models whose select is wrong ----


def keeps_the_order(self, rows):
    """As many rows as asked for, but not those asked for."""
    size = len(next(iter(vars(self).values())))
    return select(self, torch.arange(len(rows)) % size)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Recurrent, check_scores_agree),  # beams are reordered, their states are not
        (Keys, check_scores_agree),  # a source leaves, the memory of another one is dropped
        (Prefix, check_neighbours),
        (Source, check_neighbours),
    ],
)
def test_a_select_that_ignores_its_rows_is_caught(kind, check, monkeypatch):
    monkeypatch.setattr(kind, "select", keeps_the_order)
    with pytest.raises(AssertionError):
        check()


# ---- searches that are wrong ----


def stops_at_the_first_end(finished, live, max_length, position, share, enough, limits):
    return (finished.normalized[:, 0] > -torch.inf) | (max_length == position) | (live.amax(1) == -torch.inf)


def stops_by_the_length_so_far(finished, live, max_length, position, share, enough, limits):
    last = finished.normalized[:, share - 1]
    won = (last > -torch.inf) & (last >= live.amax(1) / limits.divisors[position + 1])
    return won | (max_length == position) | (live.amax(1) == -torch.inf)


def stops_one_too_early(finished, live, max_length, position, share, enough, limits):
    return max_length == position + 1


def does_not_count_the_end(length_penalty, worth, coverage_penalty):
    return Ranking(length_penalty, lambda length, power: float(max(1, length - 1)) ** power, coverage_penalty)


def lives_on_after_the_end(self, size):
    return Continuations(*(value[:, :size] for value in vars(self).values()))


def forgets_parents(self, alive, tokens, scores, parents, attention, add=History.add):
    add(self, alive, tokens, scores, torch.zeros_like(parents), attention)


def forgets_who_is_alive(self, alive, tokens, scores, parents, attention, add=History.add):
    add(self, torch.arange(len(alive)), tokens, scores, parents, attention)


def one_continuation_short(log_probs, count, forbidden, repeating=None):
    """The best tokens of each row, without what they were worth before."""
    values, ids = best_allowed(log_probs, count, forbidden, repeating)
    return values * 0.5, ids


@pytest.mark.parametrize(
    ("where", "name", "fault", "check"),
    [
        (beam, "done", stops_at_the_first_end, check_scorer_t),
        (beam, "done", stops_by_the_length_so_far, check_scorer_t),
        (beam, "done", stops_one_too_early, check_lists),
        (Continuations, "live", lives_on_after_the_end, check_lists),
        (
            Continuations,
            "closed",
            lambda self, closing, width: torch.zeros(len(closing), width, dtype=torch.bool),
            check_lists,
        ),
        (rules, "best_allowed", one_continuation_short, check_scores_agree),
        (beam, "Ranking", does_not_count_the_end, check_scorer_t),
        (Rules, "forbidden", lambda self, position: [], check_lists),
        (History, "add", forgets_parents, check_scores_agree),
        (History, "add", forgets_who_is_alive, check_neighbours),
    ],
)
def test_a_faulty_search_is_caught(where, name, fault, check, monkeypatch):
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(AssertionError):
        check()


def test_greedy_is_caught_too_when_a_state_stays_behind(monkeypatch):
    monkeypatch.setattr(Recurrent, "select", keeps_the_order)
    model, batch = TinyModel(0), sources([4, 5, 6, 7, 8, 9, 10], [7], [8, 9])
    answers = greedy(model, batch, max_length=[1, 12, 12])
    scored = score(model, batch, *forced([answer.ids for answer in answers]))
    assert any(abs(left.score - right.score) > 1e-3 for left, right in zip(answers, scored, strict=True))
