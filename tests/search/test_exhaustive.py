"""The property that search stands on: a beam that holds everything finds what going through every sequence finds, for every
length penalty, prefix, required and forbidden phrase, ban on repeats and bound on the length, all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import A, B, TableModel, assert_same, assert_sound, sources
from search_oracles import Answer
from test_brute_force import tables

from eyeline.contracts import END
from eyeline.search import WORTHS, Demands, beam_search, greedy

Ids = tuple[int, ...]
WORDS = (A, B)
DEEPEST = 4


@dataclass(frozen=True)
class Wish:
    """What is asked of one source's outputs."""

    prefix: Ids = ()
    required: Sequence[Ids] = ()
    forbidden: Sequence[Ids] = ()
    repeats: int = 0
    minimum: int = 0
    maximum: int = DEEPEST
    power: float = 1.0
    worth: str = "average"
    demands: Demands = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "demands", Demands([self.prefix], [self.required], [self.forbidden]))

    @property
    def options(self):
        return {
            "length_penalty": self.power,
            "worth": WORTHS[self.worth],
            "min_length": self.minimum,
            "max_length": self.maximum,
            "no_repeat_ngram": self.repeats,
            "demands": self.demands,
        }


def holds(said: Ids, phrase: Ids) -> bool:
    return any(said[first : first + len(phrase)] == phrase for first in range(len(said)))


def may_follow(said: Ids, token: int, wish: Wish) -> bool:
    if len(said) < len(wish.prefix):
        return token == wish.prefix[len(said)]
    if token == END:
        return len(said) >= wish.minimum and all(holds(said, phrase) for phrase in wish.required)
    grown = (*said, token)
    size = wish.repeats
    grams = [grown[first : first + size] for first in range(len(grown) - size + 1)] if size else []
    if size and grams and grams[-1] in grams[:-1]:
        return False
    return not any(grown[-len(phrase) :] == phrase for phrase in wish.forbidden)


def every_answer(table, wish: Wish) -> list[Answer]:
    """All finished outputs, and the longest possible beginnings that END cannot close."""
    finished: list[Answer] = []
    stuck: list[Answer] = []
    layer: list[tuple[Ids, float]] = [((), 0.0)]
    for _ in range(max(wish.maximum, len(wish.prefix)) + 1):
        stuck, grown = [], []
        for said, score in layer:
            row = {token: p for token, p in table(said).items() if p > 0 and may_follow(said, token, wish)}
            if END in row:
                finished.append(((*said, END), score + math.log(row[END]), True))
            else:
                stuck.append((said, score, False))
            grown += [((*said, word), score + math.log(row[word])) for word in WORDS if word in row]
        if not grown:
            break
        layer = grown
    return finished + stuck


def divisor(length: int, wish: Wish) -> float:
    length = max(length, 1)
    return length**wish.power if wish.worth == "average" else ((5 + length) / 6) ** wish.power


def lacking(said: Ids, wish: Wish) -> int:
    """Tokens of required phrases that are missing, less those of the longest that an output is in the middle of."""
    missing = {phrase for phrase in wish.required if not holds(said, phrase)}
    begun = (
        size
        for phrase in missing
        for size in range(len(phrase))
        if size <= len(said) and said[len(said) - size :] == phrase[:size]
    )
    return sum(map(len, missing)) - max(begun, default=0)


def in_order(answers: list[Answer], wish: Wish) -> list[Answer]:
    """Finished ones by normalised score; then the others, those that lack less first."""

    def key(answer: Answer):
        ids, score, finished = answer
        return not finished, 0 if finished else lacking(ids, wish), -score / divisor(len(ids), wish)

    return sorted(answers, key=key)


phrases = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(tuple), max_size=2)
wishes = st.builds(
    Wish,
    prefix=st.lists(st.sampled_from(WORDS), max_size=3).map(tuple),
    required=phrases,
    forbidden=phrases,
    repeats=st.sampled_from([0, 0, 1, 2]),
    minimum=st.integers(0, 2),
    maximum=st.integers(2, DEEPEST),
    power=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    worth=st.sampled_from(["average", "wu"]),
)


@settings(max_examples=150, deadline=None)
@given(tables(WORDS, DEEPEST), wishes, st.sampled_from([1, 3, 60]))
def test_a_beam_that_holds_everything_is_exhaustive_search(table, wish, n_best):
    wanted = in_order(every_answer(table, wish), wish)[:n_best]
    answers = beam_search(TableModel(table), sources([7, 8]), beam_size=64, n_best=n_best, **wish.options)[0]
    assert [answer.finished for answer in answers] == [finished for _, _, finished in wanted]
    if not wish.required:
        assert_sound(answers, columns=3)
    for answer, (ids, score, _) in zip(answers, wanted, strict=True):
        assert math.isclose(answer.normalized_score, score / divisor(len(ids), wish), abs_tol=1e-5)
        own = sum(math.log(table(answer.ids[:t])[token]) for t, token in enumerate(answer.ids))
        assert math.isclose(answer.score, own, abs_tol=1e-5)


@settings(max_examples=60, deadline=None)
@given(tables(WORDS, DEEPEST), st.lists(wishes, min_size=2, max_size=4), st.integers(1, 4))
def test_what_is_asked_of_one_line_is_nothing_to_its_neighbours(table, several, beam):
    """Prefixes of any length, phrases and bounds of many lines in one batch: each line is answered as alone."""
    first = several[0]
    together = {
        "length_penalty": first.power,
        "worth": WORTHS[first.worth],
        "min_length": [wish.minimum for wish in several],
        "max_length": [wish.maximum for wish in several],
        "no_repeat_ngram": first.repeats,
    }
    demands = Demands([w.prefix for w in several], [w.required for w in several], [w.forbidden for w in several])
    batch = sources(*([7] * length for length in range(1, len(several) + 1)))
    answers = beam_search(TableModel(table), batch, beam_size=beam, n_best=beam, demands=demands, **together)
    for number, (wish, found) in enumerate(zip(several, answers, strict=True), 1):
        own = {**together, "min_length": wish.minimum, "max_length": wish.maximum}
        alone = beam_search(TableModel(table), sources([7] * number), beam_size=beam, n_best=beam, demands=wish.demands, **own)[0]
        assert len(found) == len(alone)
        for left, right in zip(found, alone, strict=True):
            assert_same(left, right)


@settings(max_examples=60, deadline=None)
@given(tables(WORDS, DEEPEST), wishes)
def test_greedy_search_obeys_as_a_beam_of_one_does(table, wish):
    options = {**wish.options, "demands": Demands([wish.prefix], (), [wish.forbidden]), "length_penalty": 0.0}
    (left,) = greedy(TableModel(table), sources([7, 8]), **options)
    ((right,),) = beam_search(TableModel(table), sources([7, 8]), beam_size=1, **options)
    assert_same(left, right)
