"""Beam and greedy search on models whose every probability is known."""

from __future__ import annotations

import math

import pytest
import torch
from search_fakes import A, B, C, TableModel, TinyModel, assert_same, assert_sound, forced, gaze, sources, toy

from eyeline.contracts import BEGIN, END, PAD, UNKNOWN
from eyeline.errors import ConfigError, RunError
from eyeline.search import beam_search, default_max_length, greedy, normalize, score, search

ONE = sources([7, 8])


# ---- scorer T (O19, O21) ----


@pytest.mark.parametrize(
    ("penalty", "ids", "normalized"),
    [(0.0, (END,), -0.9163), (0.5, (A, A, A, END), -0.6019), (1.0, (A, A, A, END), -0.3009)],
)
@pytest.mark.parametrize("n_best", [1, 2])
def test_a_finished_output_ends_the_search_only_when_nothing_live_can_beat_it(penalty, ids, normalized, n_best):
    best = beam_search(TableModel(toy), ONE, beam_size=2, n_best=n_best, length_penalty=penalty, max_length=6)[0][0]
    assert best.ids == ids
    assert best.normalized_score == pytest.approx(normalized, abs=5e-5)
    assert best.finished


def test_scores_count_the_end_and_are_natural_logarithms():
    best = beam_search(TableModel(toy), ONE, beam_size=2, length_penalty=1.0, max_length=6)[0][0]
    assert best.token_scores == pytest.approx([math.log(p) for p in (0.35, 0.95, 0.95, 0.95)], abs=1e-6)
    assert best.score == pytest.approx(math.log(0.35 * 0.95**3), abs=1e-6)


def test_four_best_of_scorer_t_are_distinct_and_ordered():
    answers = beam_search(TableModel(toy), ONE, beam_size=4, n_best=4, length_penalty=1.0, max_length=6)[0]
    assert len(answers) == 4
    assert_sound(answers, columns=3)
    assert answers[0].ids == beam_search(TableModel(toy), ONE, beam_size=4, length_penalty=1.0, max_length=6)[0][0].ids


def test_the_search_stops_as_soon_as_nothing_can_win():
    model = TableModel(toy)
    beam_search(model, ONE, beam_size=2, length_penalty=0.0, max_length=60)
    assert len(model.decoder.rows_stepped) == 1
    model = TableModel(toy)
    beam_search(model, ONE, beam_size=2, length_penalty=1.0, max_length=60)
    assert len(model.decoder.rows_stepped) < 25  # -0.3009 · 61 is reached long before 60 tokens


def late(prefix):
    """END at once has 0.8; the other way says A eight times, nearly sure of each, so that its mean grows with its length."""
    if not prefix:
        return {END: 0.8, A: 0.2}
    return {A: 0.98, END: 0.02} if len(prefix) < 8 else {END: 0.98, A: 0.02}


@pytest.mark.parametrize(
    ("patience", "steps", "ids"), [(1.0, 2, (END,)), (3.0, 6, (END,)), (3.5, 9, (*[A] * 8, END)), (None, 9, (*[A] * 8, END))]
)
def test_a_beam_without_patience_stops_when_enough_have_ended(patience, steps, ids):
    """One ends at each position. What lives would be better with END after the sixth: (ln 0.2 + 6 ln 0.98) / 8 > ln 0.8."""
    model = TableModel(late)
    best = beam_search(model, ONE, beam_size=2, length_penalty=1.0, max_length=12, patience=patience)[0][0]
    assert (len(model.decoder.rows_stepped), best.ids) == (steps, ids)


@pytest.mark.parametrize("patience", [0.5, 1.0, 2.0])
def test_what_would_be_best_if_it_ended_now_is_waited_for(patience):
    """Ends that hardly any model means count as ended; a way that is better than all of them goes on."""

    def table(prefix):
        return {A: 0.9, END: 0.1} if len(prefix) < 8 else {END: 0.9, A: 0.1}

    best = beam_search(TableModel(table), ONE, beam_size=2, length_penalty=1.0, max_length=12, patience=patience)[0][0]
    assert best.ids == (*[A] * 8, END)


@pytest.mark.parametrize("patience", [1.0, 2.0, 5.0])
def test_patience_costs_nothing_where_scores_are_not_divided(patience):
    for seed in range(20):
        asked = {"beam_size": 3, "length_penalty": 0.0, "max_length": 8}
        one, other = (beam_search(TinyModel(seed), ONE, patience=p, **asked)[0][0] for p in (patience, None))
        assert_same(one, other)


# ---- greedy and beam ----


def test_every_beam_follows_where_one_way_is_forced():
    way = (A, B, B, A, C, A)

    def table(prefix):
        right = way[len(prefix)] if prefix == way[: len(prefix)] and len(prefix) < len(way) else END
        return {token: 0.99 if token == right else 0.01 / 3 for token in (A, B, C, END)}

    model = TableModel(table, vocabulary=7)
    (plain,) = greedy(model, ONE)
    assert plain.ids == (*way, END)
    for beam in (1, 2, 5, 40):
        assert_same(plain, beam_search(model, ONE, beam_size=beam)[0][0])


# ---- lengths ----


def never_ends(prefix):
    return {A: 0.7, B: 0.29, END: 0.01}


@pytest.mark.parametrize("maximum", [1, 2, 5])
def test_unfinished_outputs_keep_all_their_tokens_and_are_marked(maximum):
    (plain,) = greedy(TableModel(never_ends), ONE, max_length=maximum)
    assert plain.ids == (A,) * maximum
    assert not plain.finished
    assert plain.normalized_score == pytest.approx(math.log(0.7), abs=1e-6)
    answers = beam_search(TableModel(never_ends), ONE, beam_size=2, n_best=2, max_length=maximum)[0]
    assert answers[0].ids == (A,) * maximum
    assert [answer.finished for answer in answers] == [False, False]
    assert [len(answer.ids) for answer in answers] == [maximum] * 2


def test_finished_outputs_stand_before_better_unfinished_ones():
    def table(prefix):
        return {A: 0.8, END: 0.15, B: 0.05} if prefix == () else {A: 0.9, B: 0.099, END: 0.001}

    answers = beam_search(TableModel(table), ONE, beam_size=3, n_best=3, max_length=4)[0]
    assert [answer.finished for answer in answers] == [True, False, False]
    assert answers[0].ids == (END,)
    assert answers[0].normalized_score < answers[1].normalized_score


def test_an_output_as_long_as_the_maximum_may_still_end():
    def table(prefix):
        return {A: 0.95, END: 0.05} if len(prefix) < 3 else {A: 0.05, END: 0.95}

    (plain,) = greedy(TableModel(table), ONE, max_length=3)
    assert plain.ids == (A, A, A, END)
    assert plain.finished
    assert_same(plain, beam_search(TableModel(table), ONE, beam_size=2, max_length=3)[0][0])


@pytest.mark.parametrize("minimum", [0, 1, 3, 6])
def test_no_output_is_shorter_than_the_minimum(minimum):
    answers = beam_search(TableModel(toy), ONE, beam_size=4, n_best=4, length_penalty=0.0, min_length=minimum, max_length=6)[0]
    (plain,) = greedy(TableModel(toy), ONE, min_length=minimum, max_length=6)
    for answer in [*answers, plain]:
        assert len(answer.ids) - answer.finished >= minimum
    assert (
        min(len(answer.ids) - 1 for answer in answers if answer.finished) == minimum
    )  # and it binds: penalty 0 likes short ones


def test_each_source_has_its_own_maximum():
    batch = sources([7], [8], [9])
    for maxima in ([2, 5, 3], torch.tensor([2, 5, 3])):
        assert [len(answer.ids) for answer in greedy(TableModel(never_ends), batch, max_length=maxima)] == [2, 5, 3]
        lists = beam_search(TableModel(never_ends), batch, beam_size=2, n_best=2, max_length=maxima)
        assert [[len(answer.ids) for answer in answers] for answers in lists] == [[2, 2], [5, 5], [3, 3]]


def test_the_default_maximum_is_twice_the_source_and_thirty():
    assert default_max_length(7) == 44
    assert [len(answer.ids) for answer in greedy(TableModel(never_ends), sources([7], [8, 8, 8]))] == [34, 38]
    assert len(greedy(TableModel(never_ends), ONE, min_length=50)[0].ids) == 50


# ---- what cannot be generated ----


def test_padding_and_begin_never_come_and_scores_stay_the_models_own():
    def table(prefix):
        return {PAD: 0.4, BEGIN: 0.3, A: 0.15, END: 0.1, B: 0.05}

    (plain,) = greedy(TableModel(table), ONE, max_length=2)
    assert plain.ids == (A, A)
    assert plain.token_scores == pytest.approx([math.log(0.15)] * 2, abs=1e-6)  # not renormalised
    answers = beam_search(TableModel(table), ONE, beam_size=3, n_best=3, max_length=2)[0]
    assert_sound(answers, columns=3)


@pytest.mark.parametrize("beam", [1, 5, 50])
def test_a_vocabulary_smaller_than_the_beam(beam):
    def table(prefix):
        return {A: 0.6, END: 0.4}

    answers = beam_search(TableModel(table, vocabulary=5), ONE, beam_size=beam, n_best=beam, max_length=8)[0]
    assert_sound(answers, columns=3)
    assert len(answers) == min(beam, 9)  # 0 to 8 times A, END after each: there are no more


def test_where_nothing_can_follow_the_output_stops_unfinished_and_finite():
    def table(prefix):
        return {A: 1.0} if len(prefix) < 2 else {}

    for answer in [greedy(TableModel(table), ONE)[0], beam_search(TableModel(table), ONE, beam_size=3)[0][0]]:
        assert (answer.ids, answer.finished, answer.score) == ((A, A), False, 0.0)
    only_end = TableModel(lambda prefix: {END: 1.0})
    for answer in [
        greedy(only_end, ONE, min_length=2)[0],
        beam_search(only_end, ONE, beam_size=3, n_best=3, min_length=2)[0][0],
    ]:
        assert (answer.ids, answer.finished, answer.score, answer.normalized_score) == ((), False, 0.0, 0.0)
        assert answer.attention["source"].shape == (0, 3)


def test_unknown_words_may_be_generated():
    assert greedy(TableModel(lambda prefix: {UNKNOWN: 0.9, END: 0.1}), ONE, max_length=1)[0].ids == (UNKNOWN,)


def test_equal_scores_are_ordered_by_id_whatever_topk_takes():
    flat = TableModel(lambda prefix: dict.fromkeys(range(3, 300), 1 / 297), vocabulary=300)
    answers = beam_search(flat, ONE, beam_size=4, n_best=4, min_length=1, max_length=1)[0]
    assert [answer.ids for answer in answers] == [(4, END), (5,), (6,), (7,)]
    assert greedy(flat, ONE, min_length=2, max_length=2)[0].ids == (4, 4, END)


# ---- refusals ----


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beam_size": 4, "n_best": 5}, ["n_best=5", "beam_size=4"]),
        ({"beam_size": 0}, ["beam_size=0"]),
        ({"n_best": 0}, ["n_best=0"]),
        ({"length_penalty": -1.0}, ["length_penalty=-1"]),
        ({"length_penalty": math.nan}, ["length_penalty=nan"]),
        ({"length_penalty": 1e4}, ["length_penalty=10000"]),
        ({"min_length": -1}, ["min_length=-1"]),
        ({"max_length": 0}, ["max_length=0"]),
        ({"min_length": 5, "max_length": 4}, ["min_length=5", "max_length=4"]),
        ({"max_length": [3, 3]}, ["max_length", "2"]),
        ({"beam_size": 2, "patience": 0}, ["patience=0"]),
        ({"beam_size": 2, "patience": math.nan}, ["patience=nan"]),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(options, words):
    with pytest.raises(ConfigError) as caught:
        search(TableModel(toy), ONE, **options)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_answers_nan_is_named_and_not_searched(beam):
    with pytest.raises(RunError, match="NaN"):
        search(TableModel(lambda prefix: {A: 0.5, END: math.inf}), ONE, beam_size=beam)


# ---- searching and scoring (O23) ----


def test_search_is_greedy_for_one_and_beam_for_more():
    model, batch = TinyModel(seed=3), sources([4, 5, 6], [7], [8, 9])
    for plain, (answer,) in zip(greedy(model, batch), search(model, batch, beam_size=1), strict=True):
        assert_same(plain, answer)
    for left, right in zip(
        beam_search(model, batch, beam_size=4, n_best=2), search(model, batch, beam_size=4, n_best=2), strict=True
    ):
        assert len(left) == len(right) == 2
        assert_same(left[0], right[0])
        assert_same(left[1], right[1])
    assert search(model, batch.select(torch.tensor([], dtype=torch.long))) == []


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_score_of_an_answer_is_what_the_search_said(penalty, beam, seed):
    model, batch = TinyModel(seed), sources([4, 5, 6, 7, 8, 9, 10], [7], [8, 9], [11, 4, 4], [7])
    lists = search(model, batch, beam_size=beam, n_best=beam, length_penalty=penalty, max_length=12)
    for rank in range(beam):
        answers = [answers[rank] for answers in lists]
        for said, scored in zip(
            answers, score(model, batch, *forced([a.ids for a in answers]), length_penalty=penalty, attention=True), strict=True
        ):
            assert_same(said, scored, tolerance=1e-4)


def test_the_attention_of_an_answer_is_that_of_its_own_prefixes():
    batch = sources([7, 8], [9, 9, 9, 9])
    tables = {7: toy, 9: never_ends}
    for answers, columns in zip(beam_search(TableModel(tables), batch, beam_size=4, n_best=4, max_length=6), (3, 5), strict=True):
        for answer in answers:
            wanted = [gaze(answer.ids[:t], columns) for t in range(len(answer.ids))]
            assert torch.allclose(answer.attention["source"], torch.tensor(wanted))


def test_leaving_the_attention_out_changes_nothing_else():
    model, batch = TinyModel(5), sources([4, 5, 6], [7])
    for beam in (1, 3):
        for (left, *_), (right, *_) in zip(
            search(model, batch, beam_size=beam), search(model, batch, beam_size=beam, attention=False), strict=True
        ):
            assert right.attention == {}
            assert (left.ids, left.token_scores) == (right.ids, right.token_scores)


def test_normalize_counts_what_it_is_given_and_survives_nothing():
    assert normalize(-1.2, 4, 1.0) == pytest.approx(-0.3)
    assert normalize(-1.2, 4, 0.0) == -1.2
    assert normalize(0.0, 0, 1.0) == 0.0
