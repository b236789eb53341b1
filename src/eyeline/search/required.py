"""Phrases that outputs must have: dynamic beam allocation (Post & Vilar 2018). Knows scores and ids; no model.

A hypothesis stands in the bank of as many tokens as it has of its source's phrases: those of the phrases that it holds, and those
of the longest one that it is in the middle of. The beam is shared out among the banks, so that some hypotheses always go on with
a phrase however unlikely that is, and END comes only where all phrases are held. See `phrases` for when a phrase is held: unlike
the paper's, ours may overlap, which makes the search exact where the beam holds everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eyeline.contracts import END, PAD
from eyeline.search.continuations import Chosen, expand
from eyeline.search.phrases import Automaton, automaton, padded


@dataclass(frozen=True)
class _Place:
    """Where an output stands: a node of its source's automaton, and the phrases that it holds, as a bit mask."""

    node: int = 0
    held: int = 0


@dataclass(frozen=True)
class _Phrases:
    """The required phrases of one source."""

    automaton: Automaton

    @property
    def all(self) -> int:
        return (1 << len(self.automaton.phrases)) - 1

    def after(self, place: _Place, token: int) -> _Place:
        node = self.automaton.after(place.node, token)
        return _Place(node, place.held | self.automaton.ending[node])

    def bank(self, place: _Place) -> int:
        """Tokens of phrases that are held or begun."""
        missing = self.all & ~place.held
        whole = sum(len(phrase) for number, phrase in enumerate(self.automaton.phrases) if place.held >> number & 1)
        begun = (self.automaton.depth[n] for n in self.automaton.ends_of(place.node) if self.automaton.through[n] & missing)
        return whole + next(begun, 0)

    def wanted(self, place: _Place) -> list[int]:
        """The tokens that begin or go on with a phrase that is still missing."""
        missing = self.all & ~place.held
        return sorted(self.automaton.continuations(place.node, missing)) if missing else []


@dataclass(frozen=True)
class Banks:
    """A beam shared out by how much each hypothesis has of what its source demands.

    The best of each bank come first, the fuller bank before the emptier; then the second of each, and so on, until K are chosen.
    A source without demands has one bank, and the beam is that of `Best`.
    """

    size: int
    phrases: tuple[_Phrases, ...]  # one a source
    places: tuple[tuple[_Place, ...], ...]  # [n][W]
    groups: int = 1

    @classmethod
    def of(cls, beam_size: int, required: Sequence[Sequence[Sequence[int]]]) -> Banks:
        """Before the first token. Raises ConfigError for phrases that are none."""
        phrases = tuple(_Phrases(automaton(tuple(sorted({tuple(phrase) for phrase in several})))) for several in required)
        return cls(beam_size, phrases, ((_Place(),),) * len(phrases))

    @property
    def depth(self) -> int:
        return 2 * self.size

    def bans(self) -> Tensor | None:
        ends = [
            [END if place.held != one.all else PAD] for one, row in zip(self.phrases, self.places, strict=True) for place in row
        ]
        return torch.tensor(ends, dtype=torch.long).view(-1, 1)

    def wanted(self) -> Tensor | None:
        return padded([one.wanted(place) for one, row in zip(self.phrases, self.places, strict=True) for place in row])

    def distinct(self, closed: Tensor) -> Tensor:
        return ~closed

    def lacking(self) -> Tensor:
        several = zip(self.phrases, self.places, strict=True)
        return torch.tensor([[one.bank(_Place(0, one.all)) - one.bank(place) for place in row] for one, row in several])

    def choose(self, values: Tensor, ids: Tensor, totals: Tensor) -> Chosen:
        found = expand(values, ids, totals, max(self.size, totals.shape[1] * values.shape[1]))
        possible = found.totals > -torch.inf
        banks = self._banks(found.tokens, found.parents, possible)
        # END competes with what the complete say, and not with those that become complete: these would often score more
        complete = possible & (self.lacking() == 0).gather(1, found.parents)
        closing = (found.tokens == END) & complete & (_ranks(torch.zeros_like(banks), complete) < self.size)
        lives = (found.tokens != END) & possible
        # first the best of each bank; of equal ranks the fuller bank; what cannot live stands behind all
        keys = (_ranks(banks, lives) * (int(banks.max()) + 1) - banks).masked_fill(~lives, torch.iinfo(torch.long).max)
        columns = keys.sort(dim=1, stable=True).indices[:, : self.size]
        best_first = found.totals.masked_fill(~lives, -torch.inf).gather(1, columns).sort(descending=True, stable=True).indices
        columns = columns.gather(1, best_first)
        return Chosen(found, closing, found.only(columns, lives.gather(1, columns)))

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Banks:
        phrases = tuple(self.phrases[row] for row in keep.tolist())
        places = tuple(
            tuple(one.after(self.places[row][parent], token) for parent, token in zip(before, said, strict=True))
            for one, row, before, said in zip(phrases, keep.tolist(), parents.tolist(), tokens.tolist(), strict=True)
        )
        return Banks(self.size, phrases, places)

    def _banks(self, tokens: Tensor, parents: Tensor, possible: Tensor) -> Tensor:
        """[n, C] the bank of each continuation; 0 for those that cannot be, and where nothing is demanded."""
        banks = torch.zeros_like(tokens)
        for row, (one, places) in enumerate(zip(self.phrases, self.places, strict=True)):
            if not one.all:
                continue
            full = one.bank(_Place(0, one.all))
            for column in possible[row].nonzero()[:, 0].tolist():
                token, place = int(tokens[row, column]), places[int(parents[row, column])]
                banks[row, column] = full if token == END else one.bank(one.after(place, token))
        return banks


def _ranks(banks: Tensor, counted: Tensor) -> Tensor:
    """[n, C] how many of the `counted` ones before each are in its bank."""
    same = (banks[:, :, None] == banks[:, None]) & counted[:, None]
    return same.tril(-1).sum(-1)
