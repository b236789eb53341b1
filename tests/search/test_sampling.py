"""Samples: the distribution they are drawn from, what they follow from and what they do not."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from search_fakes import A, B, C, TableModel, TinyModel, assert_same, forced, sources

from eyeline.contracts import END
from eyeline.errors import ConfigError, RunError
from eyeline.search import Demands, drawn_from, sample, score
from eyeline.search.sampling import FIRST, in_nucleus, likeliest, typical

LINES = ([4, 5, 6], [7], [8, 9, 4, 4], [7, 7])
ROW = {A: 0.4, B: 0.3, C: 0.2, END: 0.1}


def stateless(prefix):
    return ROW


def drawn(**options):
    """How often each first token comes of 4,000."""
    filters = drawn_from(**options)
    answers = sample(TableModel(stateless, vocabulary=7), sources([7]), samples=4000, seed=3, filters=filters, max_length=1)[0]
    return Counter(answer.ids[0] for answer in answers)


def assert_drawn_as(counts, wanted):
    """Each count within four standard deviations; what has no probability never comes."""
    total = sum(counts.values())
    for token, p in wanted.items():
        assert abs(counts[token] - total * p) <= 4 * math.sqrt(total * p * (1 - p))
    assert not set(counts) - set(wanted)


def shares(*tokens, power=1.0):
    raw = {token: ROW[token] ** power for token in tokens}
    return {token: value / sum(raw.values()) for token, value in raw.items()}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, shares(A, B, C, END)),
        ({"temperature": 0.5}, shares(A, B, C, END, power=2.0)),
        ({"temperature": 3.0}, shares(A, B, C, END, power=1 / 3)),
        ({"top_k": 2}, shares(A, B)),
        ({"top_p": 0.39}, shares(A)),
        ({"top_p": 0.41}, shares(A, B)),
        ({"top_p": 0.71}, shares(A, B, C)),
        # the entropy is 1.28: of -log p = 0.92, 1.20, 1.61, 2.30 the nearest are B (0.08), C (0.33), A (0.36)
        ({"typical_p": 0.29}, shares(B)),
        ({"typical_p": 0.31}, shares(B, C)),
        ({"typical_p": 0.6}, shares(A, B, C)),
        ({"top_k": 3, "temperature": 0.5, "top_p": 0.8}, shares(A, B, power=2.0)),
    ],
)
def test_what_is_drawn_has_the_probability_that_filters_leave(options, wanted):
    assert_drawn_as(drawn(**options), wanted)


def kept_by_sorting(log_probs, keys, mass):
    """Ids of the first ones by `keys`, in pure Python: the lowest first, of equal ones the lower id, until `mass` is reached."""
    shares = (log_probs - log_probs.logsumexp(0)).exp().tolist()
    kept, reached = [], 0.0
    for token in sorted(range(len(keys)), key=lambda token: (keys[token], token)):
        if reached >= mass and kept:
            break
        kept.append(token)
        reached += shares[token]
    return set(kept)


@pytest.mark.parametrize("width", [5, FIRST, FIRST + 1, 3001])
@pytest.mark.parametrize("sharpness", [0.0, 0.1, 1.0, 5.0])  # from all alike to a few likely ones
def test_filters_keep_what_sorting_the_whole_row_would_keep(width, sharpness):
    torch.manual_seed(1)
    logits = (sharpness * torch.randn(6, width, dtype=torch.float64)).round(decimals=1)  # many equal ones
    logits[0, width // 2 :] = -torch.inf
    rows = logits.log_softmax(-1)
    mass = 0.737  # which no sum of equal shares hits
    entropy = -(rows.exp() * rows.masked_fill(rows == -torch.inf, 0.0)).sum(-1, keepdim=True)
    for found, keys in ((in_nucleus(rows, mass), -rows), (typical(rows, mass), (-rows - entropy).abs())):
        for row, kept, key in zip(rows, found, keys, strict=True):
            assert set((kept > -torch.inf).nonzero()[:, 0].tolist()) == kept_by_sorting(row, key.tolist(), mass)
            assert torch.equal(kept[kept > -torch.inf], row[kept > -torch.inf])
    for row, kept in zip(rows, likeliest(rows, 4), strict=True):
        first = sorted(range(width), key=lambda token: (-float(row[token]), token))[:4]
        assert set((kept > -torch.inf).nonzero()[:, 0].tolist()) == {token for token in first if row[token] > -torch.inf}


def test_whole_outputs_have_the_probability_of_the_model():
    table = {(): {A: 0.5, END: 0.5}, (A,): {A: 0.2, B: 0.7, END: 0.1}}
    answers = sample(TableModel(lambda prefix: table.get(prefix, {END: 1.0})), sources([7]), samples=3000, seed=1)[0]
    counts = Counter(answer.ids for answer in answers)
    assert_drawn_as(counts, {(END,): 0.5, (A, A, END): 0.1, (A, B, END): 0.35, (A, END): 0.05})


def test_neighbours_order_padding_and_the_number_of_samples_change_nothing():
    model, filters = TinyModel(1, sharpness=1.0), drawn_from(top_k=8, temperature=0.9)
    options = {"seed": 7, "filters": filters}
    together = sample(model, sources(*LINES, width=15, garbage=9), samples=3, max_length=[20, 12, 25, 12], **options)
    backwards = sample(model, sources(*LINES[::-1]), samples=3, max_length=[12, 25, 12, 20], **options)[::-1]
    for row, maximum, several, others in zip(LINES, [20, 12, 25, 12], together, backwards, strict=True):
        alone = sample(model, sources(row), samples=3, max_length=maximum, **options)[0]
        ((first,),) = sample(model, sources(row), samples=1, max_length=maximum + 5, **options)
        for left, other, right in zip(several, others, alone, strict=True):
            assert_same(left, right, tolerance=1e-4)
            assert_same(other, right, tolerance=1e-4)
        assert first.ids[:maximum] == alone[0].ids[:maximum]
    assert len({answer.ids for several in together for answer in several}) > 6


def test_a_seed_fixes_what_is_drawn_and_the_global_random_state_is_left_alone():
    model = TinyModel(2, sharpness=1.0)

    def ids(seed):
        return [
            answer.ids for several in sample(model, sources(*LINES), samples=2, seed=seed, max_length=9) for answer in several
        ]

    torch.manual_seed(1)
    np.random.seed(1)
    state, other = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = ids(5)
    torch.manual_seed(2)
    assert first == ids(5) != ids(6)
    torch.manual_seed(1)
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(other, np.random.get_state()[1])


def test_scores_are_the_models_own_whatever_is_drawn_from():
    model = TinyModel(3, sharpness=1.0)
    found = sample(
        model, sources(*LINES), seed=2, filters=drawn_from(temperature=0.5, top_k=3), max_length=12, length_penalty=0.5
    )
    answers = [one for (one,) in found]
    scored = score(model, sources(*LINES), *forced([one.ids for one in answers]), attention=True, length_penalty=0.5)
    for said, wanted in zip(answers, scored, strict=True):
        assert_same(said, wanted, tolerance=1e-4)


def test_samples_obey_prefixes_bans_and_bounds():
    demands = Demands([(B, A), ()], (), [[(C,)], [(A, A), (B, B)]])
    found = sample(
        TableModel(stateless, vocabulary=7),
        sources([7], [7, 8]),
        samples=50,
        demands=demands,
        min_length=[3, 2],
        max_length=[6, 4],
    )
    for answer in found[0]:
        assert answer.ids[:2] == (B, A)
        assert C not in answer.ids
        assert 3 <= len(answer.ids) - answer.finished <= 6
    for answer in found[1]:
        assert not any(pair in ((A, A), (B, B)) for pair in zip(answer.ids, answer.ids[1:], strict=False))
        assert 2 <= len(answer.ids) - answer.finished <= 4
    for answer in sample(TableModel(stateless, vocabulary=7), sources([7]), samples=20, no_repeat_ngram=1)[0]:
        assert len(set(answer.ids)) == len(answer.ids)


def test_where_nothing_can_follow_a_sample_stops_unfinished():
    table = {(): {A: 1.0}}
    ((answer,),) = sample(TableModel(lambda prefix: table.get(prefix, {B: 0.0})), sources([7]))
    assert (answer.ids, answer.finished) == ((A,), False)


def test_a_model_that_answers_no_number_is_refused():
    model = TinyModel(0)
    model.project.bias[:] = math.nan
    with pytest.raises(RunError, match="NaN"):
        sample(model, sources([4]))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"temperature": 0.0}, r"temperature=0\.0"),
        ({"temperature": math.nan}, "temperature=nan"),
        ({"top_k": -1}, "top-k=-1"),
        ({"top_p": 0.0}, r"top-p=0\.0"),
        ({"typical_p": 1.5}, r"typical=1\.5"),
    ],
)
def test_filters_that_cannot_be(options, named):
    with pytest.raises(ConfigError, match=named):
        drawn_from(**options)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"samples": 0}, "samples=0"), ({"seed": -1}, "seed=-1"), ({"demands": Demands((), [[(A,)]])}, "want a beam")],
)
def test_samples_that_cannot_be(options, named):
    with pytest.raises(ConfigError, match=named):
        sample(TableModel(stateless, vocabulary=7), sources([7]), **options)
