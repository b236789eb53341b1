"""No n-gram twice: the report's numbers, against brute force and plain lists, in batches and beams; and that the checks bite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import A, B, C, Table, TableModel, TinyModel, assert_same, assert_sound, forced, sources
from search_oracles import all_answers, plain_beam, ranked
from test_brute_force import PENALTIES, compare, tables

from eyeline.contracts import END, PAD, UNKNOWN
from eyeline.errors import ConfigError
from eyeline.search import beam_search, candidates, greedy, rules, score, search
from eyeline.search.repeats import Said

ONE = sources([7, 8])


def grams(ids: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Every n-gram of an output, END apart."""
    said = [i for i in ids if i != END]
    return [tuple(said[first : first + size]) for first in range(len(said) - size + 1)]


def repeats(ids: Sequence[int], size: int) -> bool:
    return len(set(grams(ids, size))) < len(grams(ids, size))


def without_repeats(table: Table, size: int) -> Table:
    """The same probabilities, not renormalised, less the tokens that would complete a repeat: END is never one of them."""

    def rows(prefix: tuple[int, ...]) -> Mapping[int, float]:
        return {token: p for token, p in table(prefix).items() if token == END or not repeats((*prefix, token), size)}

    return rows


# ---- the numbers of the report (O22) ----


def stateless(prefix: tuple[int, ...]) -> Mapping[int, float]:
    return {A: 0.6, B: 0.3, END: 0.1}


def check_the_numbers_of_the_report() -> None:
    for size, ids in ((2, (A, A, B, A, END)), (1, (A, B, END))):
        (answer,) = greedy(TableModel(stateless), ONE, no_repeat_ngram=size)
        assert answer.ids == ids
        assert answer.finished
        assert answer.token_scores == pytest.approx([math.log(stateless(())[i]) for i in ids], abs=1e-6)
    for answer in beam_search(TableModel(stateless), ONE, beam_size=3, n_best=3, no_repeat_ngram=2)[0]:
        assert not repeats(answer.ids, 2)


def test_the_numbers_of_the_report() -> None:
    check_the_numbers_of_the_report()


def test_a_minimum_that_cannot_be_reached_leaves_what_was_said_unfinished_and_finite() -> None:
    """Bigrams of two words end after 5 tokens at most; greedy is stuck after 4."""
    (plain,) = greedy(TableModel(stateless), ONE, min_length=7, no_repeat_ngram=2)
    assert (plain.ids, plain.finished) == ((A, A, B, A), False)
    assert plain.score == pytest.approx(math.log(0.6**3 * 0.3), abs=1e-6)
    answers = beam_search(TableModel(stateless), ONE, beam_size=3, n_best=3, min_length=7, no_repeat_ngram=2)[0]
    assert_sound(answers, columns=3)
    assert answers
    for answer in answers:
        assert not answer.finished
        assert not repeats(answer.ids, 2)
        assert len(answer.ids) <= 5


@pytest.mark.parametrize("minimum", [3, 5])
def test_a_minimum_that_can_be_reached_is_kept(minimum: int) -> None:
    for answer in beam_search(
        TableModel(stateless), ONE, beam_size=8, n_best=4, min_length=minimum, no_repeat_ngram=2, length_penalty=0.0
    )[0]:
        assert answer.finished
        assert len(answer.ids) - 1 >= minimum
        assert not repeats(answer.ids, 2)


def test_the_end_comes_however_unlikely_and_never_counts_as_a_repeat() -> None:
    faint = 1e-30

    def table(prefix: tuple[int, ...]) -> Mapping[int, float]:
        return {A: 0.7, B: 0.2, UNKNOWN: 0.1, END: faint}

    for (answer,) in (
        greedy(TableModel(table), ONE, no_repeat_ngram=1),
        beam_search(TableModel(table), ONE, beam_size=1, no_repeat_ngram=1)[0],
    ):
        assert answer.ids == (A, B, UNKNOWN, END)  # a token of no word is a token
        assert answer.token_scores[-1] == pytest.approx(math.log(faint), rel=1e-5)
    answers = beam_search(TableModel(table), ONE, beam_size=40, n_best=40, no_repeat_ngram=1)[0]
    assert len(answers) == 16  # every order of every choice of three tokens
    assert all(answer.finished for answer in answers)


def test_where_even_the_end_is_impossible_the_output_stops_unfinished() -> None:
    (plain,) = greedy(TableModel(lambda prefix: {A: 0.6, B: 0.4}), ONE, no_repeat_ngram=1)
    ((answer,),) = beam_search(TableModel(lambda prefix: {A: 0.6, B: 0.4}), ONE, beam_size=3, no_repeat_ngram=1)
    for found in (plain, answer):
        assert (found.ids, found.finished) == ((A, B), False)
        assert found.score == pytest.approx(math.log(0.24), abs=1e-6)


# ---- every sequence there is ----


@settings(max_examples=40, deadline=None)
@given(
    st.data(), st.sampled_from([(A, B), (A, B, C)]), PENALTIES, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2),
    st.sampled_from([1, 3, 60]),
)  # fmt: skip
def test_a_beam_that_holds_everything_finds_every_sequence_without_repeats(data, words, penalty, size, maximum, minimum, n_best):
    minimum = min(minimum, maximum)
    table = data.draw(tables(words, maximum))
    oracle = ranked(all_answers(without_repeats(table, size), words, minimum, maximum), penalty)
    answers = beam_search(
        TableModel(table, vocabulary=7),
        ONE,
        beam_size=120,
        n_best=n_best,
        length_penalty=penalty,
        min_length=minimum,
        max_length=maximum,
        no_repeat_ngram=size,
    )[0]
    assert_sound(answers, columns=3)
    assert not any(repeats(answer.ids, size) for answer in answers)
    compare(answers, oracle[:n_best], penalty, table)


@settings(max_examples=40, deadline=None)
@given(st.data(), PENALTIES, st.integers(1, 3), st.integers(1, 5), st.integers(0, 3), st.integers(1, 4), st.integers(1, 4))
def test_a_narrow_beam_keeps_the_documented_rules(data, penalty, size, maximum, minimum, width, n_best):
    """A blocked search is a search of a model that gives repeats no probability; and the first of n is the only one of one."""
    minimum, n_best = min(minimum, maximum), min(n_best, width)
    table = data.draw(tables((A, B), maximum))
    wanted = plain_beam(without_repeats(table, size), (A, B), width, n_best, penalty, minimum, maximum)
    options = {"beam_size": width, "length_penalty": penalty, "min_length": minimum, "max_length": maximum}
    answers = beam_search(TableModel(table), ONE, n_best=n_best, no_repeat_ngram=size, **options)[0]
    assert_sound(answers, columns=3)
    compare(answers, wanted, penalty, table)
    assert_same(answers[0], beam_search(TableModel(table), ONE, no_repeat_ngram=size, **options)[0][0])
    for left, right in zip(
        answers, beam_search(TableModel(without_repeats(table, size)), ONE, n_best=n_best, **options)[0], strict=True
    ):
        assert_same(left, right)
    (plain,) = greedy(TableModel(table), ONE, min_length=minimum, max_length=maximum, no_repeat_ngram=size)
    (other,) = greedy(TableModel(without_repeats(table, size)), ONE, min_length=minimum, max_length=maximum)
    assert_same(plain, other)


# ---- batches ----

BATCH = ([4, 5, 6, 7, 6, 5, 4], [7], [6, 5], [5, 4, 4], [7])
MAXIMA = [5, 12, 9, 14, 12]


def answers_of(model: TinyModel, size: int, width: int, **options):
    found = search(model, sources(*BATCH), beam_size=width, n_best=width, max_length=MAXIMA, no_repeat_ngram=size, **options)
    return [answer for answers in found for answer in answers]


def check_nothing_repeats() -> None:
    without = []
    for seed in range(2):
        model = TinyModel(seed, vocabulary=8, sharpness=2.0)
        for size in (1, 2, 3):
            for width in (1, 4):
                assert not any(repeats(answer.ids, size) for answer in answers_of(model, size, width))
                without += [repeats(answer.ids, size) for answer in answers_of(model, 0, width)]
    assert sum(without) > 25  # the model does repeat itself where it may


def test_nothing_repeats() -> None:
    check_nothing_repeats()


def check_scores_agree() -> None:
    """What a blocked search says of an output is what `score` says: nothing is renormalised."""
    for seed in range(3):
        model = TinyModel(seed, vocabulary=8, sharpness=2.0)
        for size, width in ((1, 1), (2, 1), (2, 4), (3, 4)):
            found = search(model, sources(*BATCH), beam_size=width, max_length=MAXIMA, no_repeat_ngram=size)
            answers = [answers[0] for answers in found]
            scored = score(model, sources(*BATCH), *forced([a.ids for a in answers]), attention=True)
            for said, wanted in zip(answers, scored, strict=True):
                assert_same(said, wanted, tolerance=1e-4)


def test_scores_agree() -> None:
    check_scores_agree()


def check_neighbours() -> None:
    model = TinyModel(1, vocabulary=8, sharpness=2.0)
    for width in (1, 3):
        options = {"beam_size": width, "n_best": width, "no_repeat_ngram": 2}
        together = search(model, sources(*BATCH, width=20, garbage=6), max_length=MAXIMA, **options)
        for row, maximum, answers in zip(BATCH, MAXIMA, together, strict=True):
            alone = search(model, sources(row), max_length=maximum, **options)[0]
            for left, right in zip(alone, answers, strict=True):
                assert_same(left, right, tolerance=1e-4)


def test_neighbours_order_and_padding_change_nothing() -> None:
    check_neighbours()


def test_no_block_and_one_that_never_binds_change_nothing() -> None:
    model = TinyModel(2)
    for width in (1, 4):
        plain, other = answers_of(model, 0, width), answers_of(model, 50, width)
        for left, right in zip(plain, other, strict=True):
            assert_same(left, right)


def test_what_is_said_is_kept_only_where_it_is_needed() -> None:
    assert Said.nothing(3, 0).tokens is None
    assert Said.nothing(3, 0).bans(0) is None
    said = Said(2, torch.tensor([[[A, B, A, C, A], [A, A, B, B, C]]]))
    assert said.bans(0).tolist() == [[B, PAD, C, PAD], [PAD] * 4]  # A was followed by B and C; C by nothing
    assert Said(1, said.tokens).bans(0).tolist() == [[A, B, A, C, A], [A, A, B, B, C]]
    assert Said(6, said.tokens).bans(0) is None


@pytest.mark.parametrize("width", [1, 2])
def test_lengths_that_cannot_be(width: int) -> None:
    with pytest.raises(ConfigError, match="no_repeat_ngram=-1"):
        search(TableModel(stateless), ONE, beam_size=width, no_repeat_ngram=-1)


# ---- planted faults ----


def after_the_repeat(self, position, real=Said.bans):
    """Only what has come twice already is forbidden, as of an n-gram one longer."""
    return real(Said(self.size + 1, self.tokens), position) if self.tokens is not None else None


def one_too_strict(self, position, real=Said.bans):
    return real(Said(max(1, self.size - 1), self.tokens), position) if self.tokens is not None else None


def parents_forgotten(self, keep, parents, tokens, real=Said.select):
    return real(self, keep, torch.zeros_like(parents), tokens)


def sources_mixed(self, keep, parents, tokens, real=Said.select):
    return real(self, keep.flip(0), parents, tokens)


def end_blocked(self, position, real=Said.bans):
    found = real(self, position)
    return None if found is None else torch.cat([found, torch.full_like(found[:, :1], END)], 1)


def last_token_forgotten(self, keep, parents, tokens, real=Said.select):
    return real(self, keep, parents, torch.full_like(tokens, PAD))


def renormalised(log_probs, count, forbidden, repeating=None, real=candidates.best_allowed):
    if repeating is not None:
        log_probs = log_probs.scatter(-1, repeating, -torch.inf).log_softmax(-1)
    return real(log_probs, count, forbidden)


def twenty_zeros(log_probs, count, forbidden, repeating=None, real=candidates.best_allowed):
    if repeating is not None:
        log_probs = log_probs.scatter(-1, repeating, -1e20)
    return real(log_probs, count, forbidden)


def check_the_fallback() -> None:
    for width in (1, 3):
        for answer in search(
            TableModel(stateless), ONE, beam_size=width, n_best=width, min_length=7, max_length=9, no_repeat_ngram=2
        )[0]:
            assert not repeats(answer.ids, 2)
            assert answer.score > -100


def test_the_fallback_is_finite_and_holds_no_repeat() -> None:
    check_the_fallback()


@pytest.mark.parametrize(
    ("where", "name", "fault", "check"),
    [
        (Said, "bans", after_the_repeat, check_the_numbers_of_the_report),
        (Said, "bans", one_too_strict, check_the_numbers_of_the_report),
        (Said, "bans", end_blocked, check_the_numbers_of_the_report),
        (Said, "select", last_token_forgotten, check_nothing_repeats),
        (Said, "select", parents_forgotten, check_nothing_repeats),
        (Said, "select", sources_mixed, check_neighbours),
        (rules, "best_allowed", renormalised, check_scores_agree),
        (rules, "best_allowed", twenty_zeros, check_the_fallback),
    ],
)
def test_a_fault_is_caught(where, name, fault, check, monkeypatch):
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(AssertionError):
        check()
