"""What outputs may and must say next, as small values that search asks at every position. Knows ids; no model, no search.

A rule has a row for each hypothesis: W of each of n sources, rows of one source together. It is asked which ids these may not say
next, and is told what they said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD
from eyeline.errors import ConfigError
from eyeline.search.candidates import best_allowed, put_in_front, with_wanted
from eyeline.search.limits import Limits
from eyeline.search.phrases import Avoided
from eyeline.search.repeats import Said

Ids = Sequence[int]
T = TypeVar("T")


class Rule(Protocol):
    """Forbids ids before anything is chosen. A value; what is left is never renormalised."""

    def bans(self, position: int) -> Tensor | None:
        """[n·W, b] long on the CPU: ids that the hypotheses of `position` tokens may not say next, PAD in the place of none."""
        ...

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Self:
        """Of the sources `keep` [n'] the hypotheses that say `tokens` [n', K] after `parents` [n', K]."""
        ...


@dataclass(frozen=True)
class NotBefore:
    """END does not come before each source's minimum. Only for minima that differ: what is the same for all costs nothing."""

    minimum: Tensor  # [n, W] long

    def bans(self, position: int) -> Tensor | None:
        return torch.where(self.minimum > position, END, PAD).flatten()[:, None]

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> NotBefore:
        return NotBefore(self.minimum[keep[:, None], parents])


@dataclass(frozen=True)
class Prefixes:
    """The ids that the output of each of n sources begins with. They come however unlikely, and whatever rules say."""

    ids: Tensor  # [n, P] long, -1 behind each one's end

    @classmethod
    def of(cls, prefixes: Sequence[Ids], sources: int) -> Prefixes:
        """Of one prefix a source, or of none at all. Raises ConfigError for another number of them, or ids that no output has."""
        each = _one_each(prefixes, sources, "prefix")
        for prefix in each:
            if {PAD, BEGIN} & set(prefix) or END in prefix[:-1]:
                raise ConfigError("a prefix is made of outputs, END its last if at all", f"prefix={list(prefix)}")
        longest = max(map(len, each), default=0)
        rows = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in each]
        return cls(torch.tensor(rows, dtype=torch.long).view(len(each), longest))

    @property
    def lengths(self) -> Tensor:
        """[n] tokens of each, END apart."""
        return ((self.ids >= 0) & (self.ids != END)).sum(1)

    def at(self, position: int) -> Tensor | None:
        """[n] the id that comes after `position` tokens, -1 where any may; None where all may."""
        return self.ids[:, position] if position < self.ids.shape[1] else None

    def select(self, keep: Tensor) -> Prefixes:
        return Prefixes(self.ids[keep]) if self.ids.shape[1] else self


@dataclass(frozen=True)
class Demands:
    """What the outputs of a batch's sources have to say: one entry a source, or none at all."""

    prefixes: Sequence[Ids] = ()  # what each output begins with
    required: Sequence[Sequence[Ids]] = ()  # phrases that each output has somewhere
    forbidden: Sequence[Sequence[Ids]] = ()  # phrases that no output has

    def repeated(self, times: int) -> Demands:
        """As many times of each source."""

        def each(given: Sequence[T]) -> list[T]:
            return [one for one in given for _ in range(times)]

        return Demands(each(self.prefixes), each(self.required), each(self.forbidden))

    def needed(self, sources: int) -> list[list[int]]:
        """The ids that each source's output has to say somewhere. Raises ConfigError for another number of entries."""
        begun = _one_each(self.prefixes, sources, "prefix")
        phrases = _one_each(self.required, sources, "list of required phrases")
        return [[*prefix, *chain(*several)] for prefix, several in zip(begun, phrases, strict=True)]

    def begun(self, sources: int) -> list[int]:
        """Tokens of each source's prefix. Raises ConfigError for prefixes that cannot be."""
        return [int(length) for length in Prefixes.of(self.prefixes, sources).lengths]

    def required_of(self, sources: int) -> list[Sequence[Ids]]:
        """The required phrases of each source; an empty list where none has any. Raises ConfigError for another number."""
        return _one_each(self.required, sources, "list of required phrases") if any(self.required) else []


@dataclass(frozen=True)
class Rules:
    """All that a search asks before it chooses: in one place, so that greedy search, beams and samples obey alike."""

    prefixes: Prefixes
    rules: tuple[Rule, ...]
    least: int  # the smallest minimum length of all sources of the call

    @classmethod
    def of(cls, demands: Demands, no_repeat_ngram: int, limits: Limits) -> Rules:
        """Before the first token, where each source has one hypothesis. Raises ConfigError for demands that cannot be."""
        sources = len(limits.max_length)
        if no_repeat_ngram < 0:
            raise ConfigError("an n-gram has a length", f"no_repeat_ngram={no_repeat_ngram}", "0 allows repeats")
        rules: list[Rule] = []
        if no_repeat_ngram:
            rules.append(Said.nothing(sources, no_repeat_ngram))
        if any(demands.forbidden):
            rules.append(Avoided.of(_one_each(demands.forbidden, sources, "list of forbidden phrases")))
        least = int(limits.min_length.min()) if sources else 0
        if sources and int(limits.min_length.max()) > least:
            rules.append(NotBefore(limits.min_length[:, None]))
        return cls(Prefixes.of(demands.prefixes, sources), tuple(rules), least)

    def forbidden(self, position: int) -> list[int]:
        """The ids that no output can have after `position` tokens: PAD and BEGIN never, END not before the least minimum."""
        return [PAD, BEGIN] if position >= self.least else [PAD, BEGIN, END]

    def bans(self, position: int, more: Tensor | None = None) -> Tensor | None:
        """[n·W, b] what each hypothesis may not say besides, `more` of it included."""
        found = [*(rule.bans(position) for rule in self.rules), more]
        given = [each for each in found if each is not None]
        return torch.cat(given, 1) if given else None

    def offer(
        self, log_probs: Tensor, count: int, position: int, bans: Tensor | None = None, wanted: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What hypotheses may say after `position` tokens: `values` and `ids` [n·W, C] as of `best_allowed`.

        Args:
            log_probs: [n·W, X].
            count: how many of each row's best are wanted.
            bans: [n·W, b] further ids that each may not say, PAD for none.
            wanted: [n·W, w] ids that are offered however unlikely they are, PAD for none; behind the others.
        """
        forbidden, banned = self.forbidden(position), self.bans(position, bans)
        values, ids = best_allowed(log_probs, count, forbidden, banned)
        if wanted is not None:
            values, ids = with_wanted(values, ids, log_probs, wanted, forbidden, banned)
        only = self.prefixes.at(position)
        if only is not None:
            values, ids = put_in_front(values, ids, log_probs, only.repeat_interleave(len(values) // max(1, len(only))))
        return values, ids

    def forced(self, tokens: Tensor, scores: Tensor, log_probs: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """`tokens` and `scores` [R], with what prefixes say in the place of others; `log_probs` [R, X]."""
        only = self.prefixes.at(position)
        if only is None:
            return tokens, scores
        values, ids = put_in_front(scores[:, None], tokens[:, None], log_probs, only)
        return ids[:, 0], values[:, 0]

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Rules:
        rules = tuple(rule.select(keep, parents, tokens) for rule in self.rules)
        return Rules(self.prefixes.select(keep), rules, self.least)


def _one_each(given: Sequence[Sequence[T]], sources: int, what: str) -> list[Sequence[T]]:
    """One entry a source, all empty where none are given. Raises ConfigError for another number of them."""
    if not given:
        return [()] * sources
    if len(given) != sources:
        raise ConfigError(f"one {what} a source is wanted: {sources}", f"{len(given)} given")
    return list(given)
