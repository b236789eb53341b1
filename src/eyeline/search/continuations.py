"""Continuations of a beam's hypotheses, and which of them finish and live on. Knows scores and ids; no model.

Letters: n sources still running, G groups of size k, K = G·k the beam, W the hypotheses a source before a position (1 at the
first one, K afterwards), C continuations.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from eyeline.contracts import END


@dataclass(frozen=True)
class Continuations:
    """Continuations of each source's (or group's) hypotheses, best first; every field [n, C], on the CPU."""

    totals: Tensor  # float64; -inf where there is none
    tokens: Tensor
    token_scores: Tensor  # float64
    parents: Tensor  # which of the W hypotheses each continues

    def take(self, columns: Tensor) -> Continuations:
        """Those at `columns` [n, C'] of each source."""
        return Continuations(*(getattr(self, field.name).gather(1, columns) for field in fields(self)))

    def closing(self, first: int) -> Tensor:
        """[n, C] True for those that finish: END, among the `first` ones, and possible."""
        among = torch.arange(self.tokens.shape[1]) < first
        return (self.tokens == END) & among & (self.totals > -torch.inf)

    def closed(self, closing: Tensor, width: int) -> Tensor:
        """[n, W] True for the hypotheses that one of `closing` finishes."""
        counts = torch.zeros(closing.shape[0], width, dtype=torch.long)
        return counts.scatter_add(1, self.parents, closing.long()) > 0

    def live(self, size: int) -> Continuations:
        """The first `size` without END. Where there are fewer, the first is repeated with a total of -inf, from which nothing
        grows: a decoder is thus only ever fed what a hypothesis really says."""
        out = (self.tokens == END) | ~(self.totals > -torch.inf)
        columns = out.sort(dim=1, stable=True).indices[:, :size]
        return self.only(columns, ~out.gather(1, columns))

    def only(self, columns: Tensor, good: Tensor) -> Continuations:
        """Those at `columns` [n, C'], the first in the place of those that are not `good`, with a total of -inf."""
        best = self.take(torch.where(good, columns, columns[:, :1]))
        return replace(best, totals=best.totals.masked_fill(~good, -torch.inf))


def expand(values: Tensor, ids: Tensor, totals: Tensor, count: int, less: Tensor | None = None) -> Continuations:
    """The best `count` continuations of each source from the best of each hypothesis, `values` and `ids` [n·W, C], of which no
    other can be among them, and `totals` [n, W]. `less` [n·W, C] is taken off where they are compared, and nowhere else."""
    n, width = totals.shape
    each = values.shape[1]
    missing = max(0, count - width * each)  # a vocabulary smaller than that
    values, ids = pad(values.view(n, -1), (0, missing), value=-torch.inf), pad(ids.view(n, -1), (0, missing))
    before = pad(totals.repeat_interleave(each, 1), (0, missing), value=-torch.inf)
    parents = pad(torch.arange(width).repeat_interleave(each), (0, missing)).expand(n, -1)
    sums = before + values
    compared = sums if less is None else sums - pad(less.view(n, -1), (0, missing))
    order = compared.sort(descending=True, stable=True).indices[:, :count]
    return Continuations(sums.gather(1, order), ids.gather(1, order), values.gather(1, order), parents.gather(1, order))


@dataclass(frozen=True)
class Chosen:
    """What becomes of a position's continuations."""

    found: Continuations  # [n·G, C]; parents are counted over all groups
    closing: Tensor  # [n·G, C] True for those that finish
    live: Continuations  # [n, K] those that live on, group by group


class Choice(Protocol):
    """Chooses among what hypotheses may say, at every position. A value, told what was said as a rule is."""

    @property
    def groups(self) -> int:
        """G: each has finished outputs of its own."""
        ...

    @property
    def size(self) -> int:
        """k: hypotheses of a group."""
        ...

    @property
    def depth(self) -> int:
        """How many of each hypothesis's best continuations have to be offered."""
        ...

    def bans(self) -> Tensor | None:
        """[n·W, b] ids that hypotheses may not say next, PAD for none."""
        ...

    def wanted(self) -> Tensor | None:
        """[n·W, w] ids that have to be offered however unlikely they are, PAD for none."""
        ...

    def choose(self, values: Tensor, ids: Tensor, totals: Tensor) -> Chosen:
        """Of what is offered, `values` and `ids` [n·W, C], after hypotheses of `totals` [n, W]."""
        ...

    def distinct(self, closed: Tensor) -> Tensor:
        """[n, W] True for hypotheses that END does not close, `closed` [n, W], and that say what no earlier or closed one
        says."""
        ...

    def lacking(self) -> Tensor | None:
        """[n, W] long: tokens that hypotheses still lack of what is required; None where nothing is."""
        ...

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Self:
        """Of the sources `keep` [n'] the hypotheses that say `tokens` [n', K] after `parents` [n', K]."""
        ...


@dataclass(frozen=True)
class Best:
    """The best K of all. One that ends in END and ranks among them is finished."""

    size: int
    groups: int = 1

    @property
    def depth(self) -> int:
        return 2 * self.size  # at most K of these end in END

    def bans(self) -> Tensor | None:
        return None

    def wanted(self) -> Tensor | None:
        return None

    def distinct(self, closed: Tensor) -> Tensor:
        return ~closed

    def lacking(self) -> Tensor | None:
        return None

    def choose(self, values: Tensor, ids: Tensor, totals: Tensor) -> Chosen:
        found = expand(values, ids, totals, 2 * self.size)
        return Chosen(found, found.closing(self.size), found.live(self.size))

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Best:
        return self


@dataclass(frozen=True)
class Diverse:
    """Groups that choose one after the other, each the best k of its own, and shun what earlier ones chose at this position.

    Vijayakumar et al. 2016, algorithm 1, with the Hamming diversity: a token costs `strength` for each time that an earlier group
    says it here, END apart. That decides what is chosen; scores are the model's own, and nothing of it is carried on. An output
    that two groups finish is the first one's.
    """

    groups: int
    size: int
    strength: float
    labels: Tensor  # [n, W] long: hypotheses of a source that say the same have the same one

    @classmethod
    def of(cls, sources: int, beam_size: int, groups: int, strength: float) -> Diverse:
        """Before the first token."""
        return cls(groups, beam_size // groups, strength, torch.zeros(sources, 1, dtype=torch.long))

    @property
    def depth(self) -> int:
        """2k of these cost nothing more, as the other groups chose K - k tokens at most."""
        return 2 * self.size + (self.groups - 1) * self.size

    def bans(self) -> Tensor | None:
        return None

    def wanted(self) -> Tensor | None:
        return None

    def distinct(self, closed: Tensor) -> Tensor:
        same = self.labels[:, :, None] == self.labels[:, None]
        return ~(same.tril(-1) | (same & closed[:, None])).any(-1)

    def lacking(self) -> Tensor | None:
        return None

    def choose(self, values: Tensor, ids: Tensor, totals: Tensor) -> Chosen:
        n, width = totals.shape
        values, ids = values.view(n, width, -1), ids.view(n, width, -1)
        said = torch.zeros(n, 0, dtype=torch.long)  # by earlier groups; -1 where nobody spoke
        over = torch.zeros(n, 0, dtype=torch.long)  # labels of what earlier groups finished; -1 where they did not
        chosen: list[Chosen] = []
        for group in range(self.groups):
            first = group * self.size if width > 1 else 0
            own = slice(first, first + self.size)
            costs = self.strength * (ids[:, own, :, None] == said[:, None, None]).sum(-1)
            found = expand(values[:, own].flatten(0, 1), ids[:, own].flatten(0, 1), totals[:, own], 2 * self.size, costs)
            found = replace(found, parents=found.parents + first)
            ends = self.labels.gather(1, found.parents)
            closing = found.closing(self.size) & ~(ends[:, :, None] == over[:, None]).any(-1)
            live = found.live(self.size)
            chosen.append(Chosen(found, closing, live))
            said = torch.cat([said, live.tokens.masked_fill(live.totals == -torch.inf, -1)], 1)
            over = torch.cat([over, ends.masked_fill(~closing, -1)], 1)
        live = _joined([one.live for one in chosen], 1)
        best = live.totals.argmax(1, keepdim=True)  # a group of which nothing is left is fed what another one says
        columns = torch.arange(live.totals.shape[1]).expand(n, -1)
        good = live.totals > -torch.inf
        fed = replace(live.take(torch.where(good, columns, best)), totals=live.totals)
        return Chosen(_stacked([one.found for one in chosen]), torch.stack([one.closing for one in chosen], 1).flatten(0, 1), fed)

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Diverse:
        before = self.labels[keep[:, None], parents]
        same = (before[:, :, None] == before[:, None]) & (tokens[:, :, None] == tokens[:, None])
        return replace(self, labels=same.long().argmax(-1))  # the first that says the same


def _joined(parts: list[Continuations], dim: int) -> Continuations:
    return Continuations(*(torch.cat([getattr(part, f.name) for part in parts], dim) for f in fields(Continuations)))


def _stacked(parts: list[Continuations]) -> Continuations:
    """[n·G, C] of G of them [n, C]."""
    return Continuations(*(torch.stack([getattr(p, f.name) for p in parts], 1).flatten(0, 1) for f in fields(Continuations)))
