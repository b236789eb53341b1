"""Searches as courses: what is to be stepped next, what became of it, and so on to the answer. Knows the contracts' Model only.

A search of a batch never asks a model itself. So it may run alone, or be stepped together with others that began earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor

from eyeline.contracts import PAD, Along, Deferred, Model, Source, Step, Unlike, fitted

NONE = torch.empty(0, dtype=torch.long)
LEFT = 0.125  # of the rows that are stepped may be wanted no more
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Turn:
    """What a search asks: the step after each of `tokens`. Before the first turn each source has one row, in its own order."""

    tokens: Tensor  # [R] long on the CPU
    rows: Tensor | None = None  # [R] long on the CPU: the row before from which each goes on; None: each from its own
    sources: Tensor | None = None  # [n] long on the CPU: the sources before that are still searched; None: all of them


@dataclass(frozen=True)
class Said:
    """The answer to a turn."""

    log_probs: Tensor  # [R, X], as of a head; what is beyond the search's own extended ids is impossible
    attention: Mapping[str, Tensor]  # name -> [R, S], as of a step


Course = Generator[Turn, Said, T]


class Searching(Generic[P, T]):
    """A search as a function of a model, a batch of sources and what else `course` takes, which is the way that it goes."""

    def __init__(self, course: Callable[Concatenate[Source, P], Course[T]]) -> None:
        self.course = course
        update_wrapper(self, course)

    def __call__(self, model: Model, source: Source, *args: P.args, **kwargs: P.kwargs) -> T:
        return alone(model, source, self.course(source, *args, **kwargs))


def alone(model: Model, source: Source, course: Course[T]) -> T:
    """The answer of a search without neighbours."""
    member = Member(source, course)
    with torch.no_grad():
        together = None if member.turn is None else Together(model, source, member)
        while together is not None and together.members:
            together.step()
    return member.answer


class Member(Generic[T]):
    """A search among others."""

    answer: T  # when `turn` is None

    def __init__(self, source: Source, course: Course[T], each: int = 1) -> None:
        """`each` is what a source costs until it is finished."""
        self.course, self.width, self.each = course, source.ids.shape[1], each
        self.rows = self.sources = source.ids.shape[0]  # of the last turn
        self.turn: Turn | None = None  # what it asks next
        self.hear(None)

    def hear(self, said: Said | None) -> None:
        """Goes on to the next turn, the first where nothing is said yet, or to the answer."""
        try:
            self.turn = next(self.course) if said is None else self.course.send(said)
        except StopIteration as end:
            self.turn, self.answer = None, end.value


class _Stepped:
    """States and memories of rows, as a model steps them. Rows that are wanted no more stay where they are until they are some
    share of all: to take out one of them copies all others."""

    def __init__(self, model: Model, source: Source) -> None:
        self.decoder, self.held = model.decoder, source.ids.shape[0]
        self.memory = model.encode(source)
        self.state = self.decoder.start(self.memory)
        self.live: Tensor | None = None  # the places of those that are wanted; None: of all

    def step(self, tokens: Tensor) -> Step:
        """Of the wanted rows, from `tokens` of them."""
        if self.live is None:
            step, self.state = self.decoder.step(tokens, self.state, self.memory)
            return step
        every = tokens.new_full((self.held,), PAD).index_copy_(0, self.live, tokens)
        step, self.state = self.decoder.step(every, self.state, self.memory)
        return step.at(self.live)

    def take(self, rows: Tensor, sources: Tensor | None, at_once: bool) -> None:
        """Goes on with `rows` of `sources`, all of them where that is None. What is not wanted goes `at_once`, or when it is
        much."""
        fewer = sources is not None and len(sources) < self.held and torch.equal(rows, sources)  # of one row a source
        if fewer:
            self.live = rows if self.live is None else self.live[rows]
            if at_once or len(self.live) < (1 - LEFT) * self.held:
                self.let_go()
            return
        self.let_go()
        self.state, self.held = self.state.select(rows), len(rows)
        if sources is not None:
            self.memory = self.memory.select(sources)

    def let_go(self) -> None:
        """Of all that is not wanted."""
        if self.live is not None:
            self.state, self.memory, self.held = self.state.select(self.live), self.memory.select(self.live), len(self.live)
            self.live = None

    def narrow(self, width: int) -> None:
        """Cuts off what is beyond the longest source."""
        self.let_go()
        self.state, self.memory = self.state.joined([], width), self.memory.joined([], width)

    def join(self, other: _Stepped, width: int) -> None:
        """Takes in those of `other`, behind its own. Raises Unlike, and is what it was, where that cannot be yet."""
        self.let_go()
        other.let_go()
        state = self.state.joined([other.state], width)
        self.memory = self.memory.joined([other.memory], width)
        self.state, self.held = state, self.held + other.held


class Together(Generic[T]):
    """Searches that are stepped as one: the rows of each behind those of the one before it, as many a source in all of them."""

    def __init__(self, model: Model, source: Source, member: Member[T]) -> None:
        """Before the first step of one search."""
        self.model, self.members, self.source = model, [member], source
        self.mixed = False  # whether sources may have another width than at first
        self.stepped = _Stepped(model, source)
        self._follow()

    def step(self) -> None:
        """One step of each; who ends with it leaves."""
        turns = [member.turn for member in self.members]
        tokens = torch.cat([turn.tokens for turn in turns if turn is not None])
        step = self.stepped.step(tokens.to(self.device))
        log_probs = self.model.head(step, self.source)
        split = torch.split_with_sizes(log_probs, [member.rows for member in self.members])
        for member, own, attention in zip(self.members, split, self._looks(step), strict=True):
            member.hear(Said(own, attention))
        self._follow()

    def join(self, other: Together[T]) -> bool:
        """Takes in the members of `other`, behind its own, where both can be stepped as one."""
        if self.rows * other.sources != other.rows * self.sources:
            return False
        width = max(int(each.source.lengths.max()) for each in (self, other))
        try:
            self.stepped.join(other.stepped, width)
        except Unlike:
            return False
        self.source = self.source.joined([other.source], width)
        self.members += other.members
        self.mixed = True
        return True

    @property
    def cost(self) -> int:
        return sum(member.sources * member.each for member in self.members)

    @property
    def device(self) -> torch.device:
        return self.source.ids.device

    @property
    def rows(self) -> int:
        return sum(member.rows for member in self.members)

    @property
    def sources(self) -> int:
        return sum(member.sources for member in self.members)

    def _follow(self) -> None:
        """Puts rows and sources where the next turns want them, and lets go of who has none."""
        turns = [(member, member.turn) for member in self.members]
        rows = _places([(NONE if turn is None else turn.rows, member.rows) for member, turn in turns])
        sources = _places([(NONE if turn is None else turn.sources, member.sources) for member, turn in turns])
        self.members = [member for member, turn in turns if turn is not None]
        for member, turn in turns:
            if turn is not None:
                member.rows = len(turn.tokens)
                member.sources = member.sources if turn.sources is None else len(turn.sources)
        if not self.members or rows is None:
            return
        rows, sources = rows.to(self.device), None if sources is None else sources.to(self.device)
        # who has gone altogether must not be stepped beyond the longest output that it may have
        self.stepped.take(rows, sources, at_once=len(self.members) < len(turns))
        if sources is not None:
            self.source = self.source.select(sources)
        if self.mixed and len(self.members) < len(turns):
            width = int(self.source.lengths.max())
            if width < self.source.ids.shape[1]:
                self.stepped.narrow(width)
                self.source = self.source.joined([], width)

    def _looks(self, step: Step) -> list[Mapping[str, Tensor]]:
        """The attention of each member's rows, as wide as its sources were at first."""
        if not self.mixed:
            return [step.attention]
        whole = {name: cache(partial(step.attention.__getitem__, name)) for name in step.attention}
        looks, first = list[Mapping[str, Tensor]](), 0
        for member in self.members:
            rows = slice(first, first + member.rows)
            first = rows.stop
            looks.append(Deferred({name: partial(_look, look, rows, member.width) for name, look in whole.items()}))
        return looks


def _look(look: Callable[[], Tensor], rows: slice, width: int) -> Tensor:
    return fitted(look()[rows], Along(1), width)


def _places(wanted: Sequence[tuple[Tensor | None, int]]) -> Tensor | None:
    """Which of the places that lie behind one another are wanted; None: all, as they are.

    Args:
        wanted: of each part which of its places, None for all, and how many it has.
    """
    if all(own is None for own, _ in wanted):
        return None
    first, found = 0, list[Tensor]()
    for own, count in wanted:
        found.append(first + (torch.arange(count) if own is None else own))
        first += count
    return torch.cat(found)
