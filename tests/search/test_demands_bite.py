"""Proof that the checks of prefixes, phrases, groups and samples bite: faults planted one at a time, each must be caught."""

from __future__ import annotations

import pytest
import torch
from search_fakes import A, B, C, TableModel, TinyModel, assert_same, assert_sound, sources
from test_demands import BATCH, FORBIDDEN, PREFIXES, REQUIRED, table_of
from test_diverse_groups import plain_groups
from test_exhaustive import Wish, every_answer, holds, in_order
from test_sampling import LINES

from eyeline.contracts import END
from eyeline.search import Demands, beam_search, drawn_from, greedy, rules, sample, sampling, search
from eyeline.search.candidates import put_in_front, with_wanted
from eyeline.search.continuations import Diverse
from eyeline.search.phrases import Automaton, Avoided
from eyeline.search.required import Banks
from eyeline.search.rules import NotBefore, Prefixes, Rules
from eyeline.search.sampling import Drawn


def table(prefix):
    """Not quite equal anywhere."""
    raw = [1 + (17 * sum((i + 2) * token for i, token in enumerate((*prefix, each))) + 5 * each) % 11 for each in (END, A, B)]
    return {token: value / sum(raw) for token, value in zip((END, A, B), raw, strict=True)}


WISHES = [
    Wish(prefix=(B, A), required=[(A, A, B)], power=0.0),
    Wish(required=[(A, B), (B, B)], forbidden=[(B, A)]),
    Wish(forbidden=[(A, A), (B, A, B)], worth="wu"),
    Wish(required=[(A, A, B)], repeats=2, power=2.0),
    Wish(forbidden=[(A, B, B), (B, B, A), (A, A, A)], power=0.0),
]


def check_exhaustive() -> None:
    for wish in WISHES:
        answers = beam_search(TableModel(table), sources([7, 8]), beam_size=64, n_best=60, **wish.options)[0]
        assert [answer.ids for answer in answers] == [ids for ids, _, _ in in_order(every_answer(table, wish), wish)]


def check_narrow() -> None:
    """A beam of two in which much else is likelier than the phrases."""
    row = dict.fromkeys(range(7, 14), 0.1) | {A: 0.05, B: 0.01, C: 0.01, END: 0.23}
    found = search(
        TableModel(lambda prefix: row, vocabulary=14),
        sources([7], [7, 8]),
        beam_size=2,
        max_length=8,
        demands=Demands((), [[(B, C), (C, B, B)], [(C,)]]),
    )
    for (answer,), required in zip(found, [[(B, C), (C, B, B)], [(C,)]], strict=True):
        assert answer.finished
        assert all(holds(answer.ids, phrase) for phrase in required)


def check_batch() -> None:
    model = TinyModel(1)
    demands = Demands(PREFIXES, REQUIRED, FORBIDDEN)
    minima, maxima = [4, 0, 3, 12, 0], [12, 5, 9, 15, 3]
    found = beam_search(model, sources(*BATCH), beam_size=4, n_best=4, min_length=minima, max_length=maxima, demands=demands)
    for n, (row, answers) in enumerate(zip(BATCH, found, strict=True)):
        own = Demands([PREFIXES[n]], [REQUIRED[n]], [FORBIDDEN[n]])
        bounds = {"min_length": minima[n], "max_length": maxima[n]}
        alone = beam_search(model, sources(row), beam_size=4, n_best=4, demands=own, **bounds)[0]
        assert len(alone) == len(answers)
        for left, right in zip(answers, alone, strict=True):
            assert_same(left, right, tolerance=1e-4)
            assert left.ids[: len(PREFIXES[n])] == PREFIXES[n]
            said = left.ids[len(PREFIXES[n]) :]
            assert not any(holds(said, phrase) for phrase in FORBIDDEN[n])
            assert not left.finished or len(left.ids) > max(minima[n], len(PREFIXES[n]))


def check_groups() -> None:
    for groups, size, strength in ((2, 2, 0.3), (3, 1, 1.7), (3, 2, 0.0)):
        options = {"length_penalty": 1.0, "max_length": 4, "diverse_groups": groups, "diversity": strength}
        answers = beam_search(TableModel(table), sources([7, 8]), beam_size=groups * size, n_best=3, **options)[0]
        assert_sound(answers, columns=3)
        assert [a.ids for a in answers] == plain_groups(table, (A, B), groups, size, strength, 3, 1.0, 4)


def check_samples() -> None:
    model, filters = TinyModel(1, sharpness=1.0), drawn_from(top_k=6, top_p=0.9)
    state = torch.get_rng_state()
    together = sample(
        model, sources(*LINES, width=15, garbage=9), samples=3, seed=7, filters=filters, max_length=[20, 12, 25, 12]
    )
    again = sample(model, sources(*LINES), samples=3, seed=7, filters=filters, max_length=[20, 12, 25, 12])
    assert torch.equal(state, torch.get_rng_state())
    for row, several, others in zip(LINES, together, again, strict=True):
        alone = sample(model, sources(row), samples=3, seed=7, filters=filters, max_length=30)[0]
        assert [one.ids[:12] for one in several] == [one.ids[:12] for one in alone] == [one.ids[:12] for one in others]
    assert len({one.ids for several in together for one in several}) > 6
    several = sample(TableModel(table_of(a=0.6, b=0.3, end=0.1)), sources([7]), samples=2000, max_length=2)[0]
    assert abs(sum(one.ids[0] == A for one in several) / 2000 - 0.6) < 0.05
    assert abs(sum(one.ids[:2] == (A, B) for one in several) / 2000 - 0.18) < 0.05
    ending = TableModel(table_of(a=0.4, end=0.6))
    held, free = sample(ending, sources([7], [7, 8]), samples=30, min_length=[2, 0], max_length=5)
    assert min(len(one.ids) for one in held) > 2 > min(len(one.ids) for one in free)
    for one in sample(
        TableModel(table_of(a=0.6, b=0.3, c=0.1), vocabulary=7), sources([7]), samples=40, max_length=3, filters=filters
    )[0]:
        assert C not in one.ids  # 0.9 are A and B


@pytest.mark.parametrize("check", [check_exhaustive, check_narrow, check_batch, check_groups, check_samples])
def test_the_checks_pass_where_nothing_is_planted(check):
    check()


def same_place(self, keep, parents, tokens, real=Banks.select):
    return real(self, keep, torch.zeros_like(parents), tokens)


def same_node(self, keep, parents, tokens, real=Avoided.select):
    return real(self, keep, torch.zeros_like(parents), tokens)


def no_suffixes(self):
    """A phrase that breaks off is begun anew from nothing, though its end may begin it again."""


def met_once_begun(self, phrases, real=Automaton.__init__):
    real(self, phrases)
    self.ending = [through if depth else 0 for through, depth in zip(self.through, self.depth, strict=True)]


def one_off(self, position, real=Prefixes.at):
    return real(self, position + 1)


def whose_prefix(self, keep, real=Prefixes.select):
    return real(self, keep.flip(0))


def everywhere(values, ids, log_probs, only, real=put_in_front):
    return real(values, ids, log_probs, only.clamp(min=A))


def banned_all_the_same(values, ids, log_probs, wanted, forbidden, banned, real=with_wanted):
    return real(values, ids, log_probs, wanted, forbidden, None)


def twice_offered(values, ids, log_probs, wanted, forbidden, banned, real=with_wanted):
    return real(values, torch.zeros_like(ids), log_probs, wanted, forbidden, banned)[0], torch.cat([ids, wanted], 1)


def the_global_state(cls, source, seed, samples, positions, filters):
    return Drawn(torch.rand(len(source.ids) * samples, positions, dtype=torch.float64), filters)


def by_the_place_in_the_batch(cls, source, seed, samples, positions, filters):
    generator = torch.Generator().manual_seed(seed)
    return Drawn(torch.rand(len(source.ids) * samples, positions, dtype=torch.float64, generator=generator), filters)


def from_the_padding_too(cls, source, seed, samples, positions, filters, real=Drawn.of.__func__):
    wide = type(source)(source.ids, torch.full_like(source.lengths, source.ids.shape[1]))
    return real(cls, wide, seed, samples, positions, filters)


def one_chance(self, log_probs, position, rules, real=Drawn.pick):
    return real(self, log_probs, 0, rules)


def stays(self, keep):
    return Drawn(self.chances[: len(keep)], self.filters)


@pytest.mark.parametrize(
    ("where", "name", "fault", "check"),
    [
        (Banks, "select", same_place, check_exhaustive),
        (Banks, "wanted", lambda self: None, check_narrow),
        (Banks, "_banks", lambda self, tokens, parents, possible: torch.zeros_like(tokens), check_narrow),
        (Automaton, "_find_suffixes", no_suffixes, check_exhaustive),
        (Automaton, "__init__", met_once_begun, check_exhaustive),
        (Avoided, "select", same_node, check_exhaustive),
        (Avoided, "bans", lambda self, position: None, check_batch),
        (Prefixes, "at", one_off, check_exhaustive),
        (Prefixes, "select", whose_prefix, check_batch),
        (rules, "put_in_front", everywhere, check_batch),
        (rules, "with_wanted", banned_all_the_same, check_exhaustive),
        (rules, "with_wanted", twice_offered, check_exhaustive),
        (NotBefore, "bans", lambda self, position: None, check_samples),
        (Rules, "forbidden", lambda self, position: [], check_samples),
        (Diverse, "distinct", lambda self, closed: ~closed, check_groups),
        (Diverse, "select", lambda self, keep, parents, tokens: self, check_groups),
        (Drawn, "of", classmethod(the_global_state), check_samples),
        (Drawn, "of", classmethod(by_the_place_in_the_batch), check_samples),
        (Drawn, "of", classmethod(from_the_padding_too), check_samples),
        (Drawn, "pick", one_chance, check_samples),
        (Drawn, "select", stays, check_samples),
        (sampling, "in_nucleus", lambda log_probs, mass: log_probs, check_samples),
    ],
)
def test_a_fault_is_caught(where, name, fault, check, monkeypatch):
    from eyeline.search.phrases import automaton

    automaton.cache_clear()
    monkeypatch.setattr(where, name, fault)
    try:
        with pytest.raises((AssertionError, IndexError, RuntimeError)):
            check()
    finally:
        automaton.cache_clear()


def test_greedy_search_is_caught_too(monkeypatch):
    monkeypatch.setattr(Avoided, "bans", lambda self, position: None)
    (answer,) = greedy(TableModel(table_of(a=0.6, b=0.3, end=0.1)), sources([7]), max_length=3, demands=Demands((), (), [[(A,)]]))
    assert A in answer.ids
