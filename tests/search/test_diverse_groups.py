"""Groups of a beam that shun each other's words: against the rules in plain lists, and what they promise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import A, B, C, TableModel, TinyModel, assert_same, assert_sound, forced, sources
from test_brute_force import tables

from eyeline.contracts import END
from eyeline.errors import ConfigError
from eyeline.search import beam_search, score

LINES = ([4, 5, 6], [7], [8, 9, 4, 4], [7])


def plain_groups(table, words, groups, size, strength, n_best, penalty, maximum):
    """The documented rules for one source in lists, without ever stopping early."""
    live = [[((), 0.0)] for _ in range(groups)]
    finished = [[] for _ in range(groups)]
    for length in range(maximum + 1):
        said, over, grown = [], set(), []
        before = live
        for group in range(groups):
            candidates = []
            for prefix, before_it in live[group]:
                for token in [END, *words]:
                    p = table(prefix).get(token, 0)
                    if p > 0:
                        total = before_it + math.log(p)
                        candidates.append((total - strength * said.count(token), (*prefix, token), total))
            candidates.sort(key=lambda candidate: -candidate[0])
            closing = [(ids, total) for _, ids, total in candidates[:size] if ids[-1] == END and ids not in over]
            finished[group] = sorted(finished[group] + closing, key=lambda c: -c[1] / len(c[0]) ** penalty)[:size]
            over |= {ids for ids, _ in closing}
            next_ = [(ids, total) for _, ids, total in candidates[: 2 * size] if ids[-1] != END][:size]
            said += [ids[-1] for ids, _ in next_]
            grown.append(next_)
        if length == maximum or not any(grown):
            break
        live = grown
    share, answers, seen = -(-n_best // groups), [], set()
    for group in range(groups):
        own = [(False, -total / len(ids) ** penalty, ids) for ids, total in finished[group]]
        rest = sorted(before[group], key=lambda one: -one[1])
        own += [
            (True, -total / max(1, length) ** penalty, ids) for ids, total in rest if (*ids, END) not in over and ids not in seen
        ]
        seen |= {ids for ids, _ in before[group]}
        answers += own[:share]
    return [ids for _, _, ids in sorted(answers, key=lambda answer: answer[:2])[:n_best]]


@settings(max_examples=80, deadline=None)
@given(
    tables((A, B), 4),
    st.sampled_from([(2, 1), (2, 2), (3, 1), (3, 2)]),
    st.sampled_from([0.0, 0.3, 1.7]),
    st.sampled_from([0.0, 1.0]),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_groups_keep_the_documented_rules(drawn, shape, strength, penalty, maximum, n_best):
    groups, size = shape

    def table(prefix):  # nothing is impossible: a group of which nothing is left is another matter
        return {token: max(p, 0.01) for token, p in drawn(prefix).items()}

    n_best = min(n_best, groups * size)
    wanted = plain_groups(table, (A, B), groups, size, strength, n_best, penalty, maximum)
    options = {"length_penalty": penalty, "max_length": maximum, "diverse_groups": groups, "diversity": strength}
    answers = beam_search(TableModel(table), sources([7, 8]), beam_size=groups * size, n_best=n_best, **options)[0]
    assert [answer.ids for answer in answers] == wanted


def test_one_group_is_a_plain_beam():
    model = TinyModel(1)
    plain = beam_search(model, sources(*LINES), beam_size=4, n_best=4, max_length=12)
    one = beam_search(model, sources(*LINES), beam_size=4, n_best=4, max_length=12, diverse_groups=1, diversity=9.0)
    for left, right in zip(plain, one, strict=True):
        for mine, other in zip(left, right, strict=True):
            assert_same(mine, other)


@pytest.mark.parametrize("groups", [2, 3, 6])
def test_lists_are_distinct_sorted_scored_and_independent_of_neighbours(groups):
    model = TinyModel(2, sharpness=1.0)
    options = {"beam_size": 6, "n_best": 6, "max_length": 12, "diverse_groups": groups, "diversity": 0.7}
    found = beam_search(model, sources(*LINES), **options)
    for row, answers in zip(LINES, found, strict=True):
        assert_sound(answers, columns=len(row) + 1)
        alone = beam_search(model, sources(row), **options)[0]
        assert len(alone) == len(answers)
        for left, right in zip(answers, alone, strict=True):
            assert_same(left, right, tolerance=1e-4)
        batch = sources(*[row] * len(answers))
        for said, scored in zip(answers, score(model, batch, *forced([a.ids for a in answers]), attention=True), strict=True):
            assert_same(said, scored, tolerance=1e-4)


def test_groups_differ_more_than_a_beam_does():
    model = TinyModel(0, sharpness=1.0)

    def first_tokens(**options):
        answers = beam_search(model, sources(*LINES), beam_size=4, n_best=4, max_length=10, **options)
        return sum(len({answer.ids[0] for answer in several}) for several in answers)

    assert first_tokens(diverse_groups=4, diversity=5.0) == 16 > first_tokens()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"diverse_groups": 0}, "diverse_groups=0"),
        ({"diverse_groups": 3}, "diverse_groups=3, beam_size=4"),
        ({"diverse_groups": 2, "diversity": -1.0}, r"diversity=-1\.0"),
        ({"diverse_groups": 2, "diversity": math.nan}, "diversity=nan"),
    ],
)
def test_groups_that_cannot_be(options, named):
    with pytest.raises(ConfigError, match=named):
        beam_search(
            TableModel(lambda prefix: {A: 0.5, B: 0.2, C: 0.1, END: 0.2}, vocabulary=7), sources([7]), beam_size=4, **options
        )
