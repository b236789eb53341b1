"""One token after the other, without a beam: the way that greedy search and samples share. Knows courses; no model."""

from __future__ import annotations

from typing import Protocol, Self

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, Hypothesis, Source
from eyeline.search.course import Course, Turn
from eyeline.search.coverage import Looked
from eyeline.search.history import Ends, History
from eyeline.search.limits import Limits
from eyeline.search.rules import Rules


class Pick(Protocol):
    """Picks what each row says next. A value with a row for each output."""

    def pick(self, log_probs: Tensor, position: int, rules: Rules) -> tuple[Tensor, Tensor]:
        """tokens [R] long and their log-probabilities [R] float64, -inf where nothing can follow, of `log_probs` [R, X]; both on
        the CPU."""
        ...

    def select(self, keep: Tensor) -> Self: ...


def walk(source: Source, pick: Pick, rules: Rules, limits: Limits, attention: bool, times: int = 1) -> Course[list[Hypothesis]]:
    """`times` outputs of each source, one behind the other. An output leaves the batch when it ends, so that its neighbours
    cannot change it. `pick`, `rules` and `limits` have a row for each output."""
    rows = None
    if times > 1:
        rows = torch.arange(source.ids.shape[0]).repeat_interleave(times)
        source = source.select(rows)
    history = History(source, attention)
    ends = yield from _run(source, rows, history, pick, rules, limits)
    return [hypothesis for (hypothesis,) in history.hypotheses(ends, limits)]


def _run(source: Source, rows: Tensor | None, history: History, pick: Pick, rules: Rules, limits: Limits) -> Course[Ends]:
    ends = list[Ends]()
    alive = torch.arange(source.ids.shape[0])
    turn = Turn(torch.full_like(alive, BEGIN), rows, rows)
    looked = Looked.none(source, limits.ranking.coverage_penalty)
    for position in range(int(limits.max_length.max()) + 1):
        said = yield turn
        looked = looked.after(said.attention)
        tokens, scores = pick.pick(said.log_probs, position, rules)
        only = torch.zeros_like(tokens)[:, None]  # each output goes on from itself
        history.add(alive, tokens[:, None], scores[:, None], only, said.attention)
        possible = scores > -torch.inf
        finished = (tokens == END) & possible
        done = finished | ~possible | (limits.max_length[alive] == position)
        keep, left = (~done).nonzero()[:, 0], None
        if bool(done.any()):
            gone, left = done.nonzero()[:, 0], keep
            at = torch.full_like(gone, position)
            penalties = looked.penalties(source, 1)[:, 0].masked_fill(~finished, 0.0)
            ends.append(Ends(alive[gone], at, torch.zeros_like(gone), scores[gone], finished[gone], penalties[gone]))
            if not len(keep):
                break
            source = source.select(keep.to(source.ids.device))
        alive, tokens, only = alive[keep], tokens[keep], only[keep]
        turn = Turn(tokens, left, left)
        looked, rules, pick = looked.select(keep, only), rules.select(keep, only, tokens[:, None]), pick.select(keep)
    return Ends.join(ends)
