"""Searches against every sequence there is, and against the documented rules in plain Python, on random models."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import A, B, C, TableModel, assert_same, assert_sound, sources
from search_oracles import all_answers, plain_beam, ranked, worth

from eyeline.contracts import END
from eyeline.search import beam_search, greedy

ONE = sources([7, 8])


@st.composite
def tables(draw, words, depth):
    """Random probabilities for every prefix up to `depth`, not quite equal anywhere; now and then one of them is 0."""
    rows = {}
    layer = [()]
    for _ in range(depth + 1):
        for prefix in layer:
            raw = [draw(st.sampled_from([0, 1, 2, 3, 5, 8, 13, 21, 34])) for _ in (END, *words)]
            raw = [
                value and value + (17 * hash((*prefix, token)) % 997) / 1e6
                for value, token in zip(raw, (END, *words), strict=True)
            ]
            total = sum(raw) + 0.5
            rows[prefix] = {token: value / total for token, value in zip((END, *words), raw, strict=True)}
        layer = [(*prefix, word) for prefix in layer for word in words]
    return rows.__getitem__


def compare(answers, oracle, penalty, table):
    """Scores equal in order, and each answer's score is that of its own ids (which may differ where two are equally good)."""
    assert len(answers) == len(oracle)
    for answer, wanted in zip(answers, oracle, strict=True):
        assert answer.finished == wanted[2]
        assert answer.normalized_score == pytest.approx(worth(wanted, penalty), abs=1e-5)
        own = sum(math.log(table(answer.ids[:t])[token]) for t, token in enumerate(answer.ids))
        assert answer.score == pytest.approx(own, abs=1e-5)


PENALTIES = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@settings(max_examples=60, deadline=None)
@given(
    st.data(), st.sampled_from([(A, B), (A, B, C)]), PENALTIES, st.integers(1, 3), st.integers(0, 2), st.sampled_from([1, 3, 60])
)
def test_a_beam_that_holds_everything_finds_every_sequence_in_order(data, words, penalty, maximum, minimum, n_best):
    minimum = min(minimum, maximum)
    table = data.draw(tables(words, maximum))
    oracle = ranked(all_answers(table, words, minimum, maximum), penalty)
    answers = beam_search(
        TableModel(table, vocabulary=7),
        ONE,
        beam_size=120,
        n_best=n_best,
        length_penalty=penalty,
        min_length=minimum,
        max_length=maximum,
    )[0]
    assert_sound(answers, columns=3)
    compare(answers, oracle[:n_best], penalty, table)


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    PENALTIES,
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([None, 0.3, 1.0, 2.0]),
)
def test_a_narrow_beam_keeps_the_documented_rules(data, penalty, maximum, minimum, beam, n_best, patience):
    minimum, n_best = min(minimum, maximum), min(n_best, beam)
    table = data.draw(tables((A, B), maximum))
    wanted = plain_beam(table, (A, B), beam, n_best, penalty, minimum, maximum, patience=patience)
    options = {"beam_size": beam, "length_penalty": penalty, "min_length": minimum, "max_length": maximum, "patience": patience}
    answers = beam_search(TableModel(table), ONE, n_best=n_best, **options)[0]
    assert_sound(answers, columns=3)
    compare(answers, wanted, penalty, table)
    if patience is None or patience >= 1:  # else the list may be waited for longer than the best of it
        assert_same(answers[0], beam_search(TableModel(table), ONE, n_best=1, **options)[0][0])


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(0, 3))
def test_greedy_is_the_beam_of_one_that_stops_at_the_first_end(data, maximum, minimum):
    minimum = min(minimum, maximum)
    table = data.draw(tables((A, B), maximum))
    (left,) = greedy(TableModel(table), ONE, min_length=minimum, max_length=maximum, length_penalty=0.0)
    ((right,),) = beam_search(TableModel(table), ONE, beam_size=1, min_length=minimum, max_length=maximum, length_penalty=0.0)
    assert_same(left, right)
