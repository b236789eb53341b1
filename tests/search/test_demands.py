"""Prefixes, required and forbidden phrases: what they promise at any beam, and what cannot be asked for."""

from __future__ import annotations

import random

import pytest
import torch
from search_fakes import A, B, C, TableModel, TinyModel, assert_same, assert_sound, forced, sources
from test_exhaustive import holds

from eyeline.contracts import BEGIN, END, PAD
from eyeline.errors import ConfigError
from eyeline.search import Demands, beam_search, greedy, score, search
from eyeline.search.phrases import Automaton

BATCH = ([4, 5, 6, 7, 6, 5, 4], [7], [6, 5], [5, 4, 4], [7])
PREFIXES = [(6, 6, 6), (), (11,), (4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 6, 7), (9, 9)]
REQUIRED = [((10, 11),), (), ((4,), (5, 6)), ((8, 8, 9), (9, 10)), ((7,),)]
FORBIDDEN = [((6,), (7, 8)), ((9,),), (), ((8, 7),), ((4,), (5,))]


def table_of(**probabilities: float):
    names = {"a": A, "b": B, "c": C, "end": END}
    return lambda prefix: {names[name]: p for name, p in probabilities.items()}


# ---- prefixes ----


@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_begin_with_prefixes_of_any_length_in_one_batch(beam):
    model = TinyModel(1)
    found = search(model, sources(*BATCH), beam_size=beam, n_best=beam, max_length=9, demands=Demands(PREFIXES))
    for answers, prefix, row in zip(found, PREFIXES, BATCH, strict=True):
        assert_sound(answers, columns=len(row) + 1)
        assert all(answer.ids[: len(prefix)] == prefix for answer in answers)
        assert all(len(answer.ids) - answer.finished <= max(9, len(prefix)) for answer in answers)
        alone = search(model, sources(row), beam_size=beam, n_best=beam, max_length=9, demands=Demands([prefix]))[0]
        for left, right in zip(answers, alone, strict=True):
            assert_same(left, right, tolerance=1e-4)


def test_a_prefix_may_say_what_is_forbidden_otherwise():
    demands = Demands([(A, B, A, B)], (), [[(A,), (B, A)]])
    (answer,) = greedy(TableModel(table_of(a=0.6, b=0.3, end=0.1)), sources([7]), no_repeat_ngram=1, demands=demands)
    assert answer.ids == (A, B, A, B, END)


def test_a_prefix_that_ends_is_the_whole_output():
    ((answer,),) = beam_search(TableModel(table_of(a=0.9, end=0.1)), sources([7]), beam_size=3, demands=Demands([(A, END)]))
    assert answer.ids == (A, END)
    assert answer.finished


def test_an_impossible_prefix_stops_where_it_cannot_go_on():
    for answers in (
        greedy(TableModel(table_of(a=0.9, end=0.1)), sources([7]), demands=Demands([(A, B, A)])),
        beam_search(TableModel(table_of(a=0.9, end=0.1)), sources([7]), beam_size=2, demands=Demands([(A, B, A)]))[0],
    ):
        assert [(answer.ids, answer.finished) for answer in answers] == [((A,), False)]


# ---- phrases ----


@pytest.mark.parametrize("beam", [1, 2, 5, 12])
def test_every_answer_holds_what_is_required_and_nothing_that_is_forbidden(beam):
    for seed in range(2):
        demands = Demands((), REQUIRED, FORBIDDEN)
        found = search(TinyModel(seed), sources(*BATCH), beam_size=beam, max_length=30, demands=demands)
        for (answer,), required, forbidden in zip(found, REQUIRED, FORBIDDEN, strict=True):
            assert all(holds(answer.ids, phrase) for phrase in required)
            assert not any(holds(answer.ids, phrase) for phrase in forbidden)


def test_scores_stay_the_models_own():
    model, demands = TinyModel(0), Demands(PREFIXES, REQUIRED, ())
    found = search(model, sources(*BATCH), beam_size=5, max_length=30, demands=demands)
    answers = [answers[0] for answers in found]
    for said, wanted in zip(
        answers, score(model, sources(*BATCH), *forced([a.ids for a in answers]), attention=True), strict=True
    ):
        assert_same(said, wanted, tolerance=1e-4)


def test_a_phrase_that_comes_too_late_leaves_the_output_unfinished():
    ((answer,),) = beam_search(
        TableModel(table_of(a=0.8, b=0.1, end=0.1)), sources([7]), beam_size=2, max_length=2, demands=Demands((), [[(B, B, B)]])
    )
    assert not answer.finished


def test_a_line_without_demands_is_answered_as_by_a_plain_beam():
    model = TinyModel(3)
    plain = search(model, sources(*BATCH), beam_size=4, n_best=4, max_length=12)
    held = search(model, sources(*BATCH), beam_size=4, n_best=4, max_length=12, demands=Demands((), [((9,),), (), (), (), ()]))
    for left, right in zip(plain[1:], held[1:], strict=True):
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)


def test_an_automaton_finds_what_a_search_of_the_text_finds():
    draw = random.Random(1)
    for _ in range(200):
        several = [tuple(draw.choices((A, B), k=draw.randint(1, 4))) for _ in range(draw.randint(1, 4))]
        automaton, node, said, held = Automaton(several), 0, (), 0
        for _ in range(12):
            completing = automaton.completing(node)
            for token in (A, B):
                assert (token in completing) == any((*said, token)[-len(phrase) :] == phrase for phrase in several)
            said = (*said, draw.choice((A, B)))
            node = automaton.after(node, said[-1])
            held |= automaton.ending[node]
            assert [bool(held >> number & 1) for number in range(len(several))] == [holds(said, phrase) for phrase in several]


@pytest.mark.parametrize(
    ("demands", "named"),
    [
        (Demands([(A,), (B,)]), "one prefix a source is wanted: 1"),
        (Demands((), [[(A,)], [(B,)]]), "one list of required phrases a source"),
        (Demands([(A, PAD)]), "a prefix is made of outputs"),
        (Demands([(END, A)]), "a prefix is made of outputs"),
        (Demands((), [[()]]), "a phrase has tokens"),
        (Demands((), (), [[(A, BEGIN)]]), "a phrase has tokens"),
    ],
)
def test_demands_that_cannot_be(demands, named):
    with pytest.raises(ConfigError, match=named):
        search(TableModel(table_of(a=0.9, end=0.1)), sources([7]), beam_size=2, demands=demands)


def test_one_token_after_the_other_cannot_look_for_required_phrases():
    with pytest.raises(ConfigError, match="a beam"):
        greedy(TableModel(table_of(a=0.9, end=0.1)), sources([7]), demands=Demands((), [[(A,)]]))


# ---- lengths, one a line ----


@pytest.mark.parametrize("beam", [1, 3])
def test_each_line_has_its_own_bounds(beam):
    model = TinyModel(2)
    minima, maxima = [3, 0, 7, 5, 1], [3, 4, 9, 5, 1]
    found = search(model, sources(*BATCH), beam_size=beam, n_best=beam, min_length=minima, max_length=torch.tensor(maxima))
    for answers, row, least, most in zip(found, BATCH, minima, maxima, strict=True):
        assert all(least <= len(answer.ids) - answer.finished <= most for answer in answers)
        alone = search(model, sources(row), beam_size=beam, n_best=beam, min_length=least, max_length=most)[0]
        for left, right in zip(answers, alone, strict=True):
            assert_same(left, right, tolerance=1e-4)
    with pytest.raises(ConfigError, match="one min_length a source is wanted: 5"):
        search(model, sources(*BATCH), beam_size=beam, min_length=[1, 2])
