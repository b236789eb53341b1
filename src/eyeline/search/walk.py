"""One token after the other, without a beam: the way that greedy search and samples share. Knows the contracts' Model only."""

from __future__ import annotations

from typing import Any, Protocol, Self

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, Hypothesis, Model, Source
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


def walk(
    model: Model, source: Source, pick: Pick, rules: Rules, limits: Limits, attention: bool, times: int = 1
) -> list[Hypothesis]:
    """`times` outputs of each source, one behind the other. An output leaves the batch when it ends, so that its neighbours
    cannot change it. `pick`, `rules` and `limits` have a row for each output."""
    with torch.no_grad():
        memory = model.encode(source)
        if times > 1:
            rows = torch.arange(source.ids.shape[0], device=source.ids.device).repeat_interleave(times)
            memory, source = memory.select(rows), source.select(rows)
        history = History(source, attention)
        ends = _run(model, source, memory, history, pick, rules, limits)
        return [hypothesis for (hypothesis,) in history.hypotheses(ends, limits)]


def _run(model: Model, source: Source, memory: Any, history: History, pick: Pick, rules: Rules, limits: Limits) -> Ends:
    ends, device = list[Ends](), source.ids.device
    alive = torch.arange(source.ids.shape[0])
    state = model.decoder.start(memory)
    tokens = torch.full_like(alive, BEGIN)
    looked = Looked.none(source, limits.ranking.coverage_penalty)
    for position in range(int(limits.max_length.max()) + 1):
        step, state = model.decoder.step(tokens.to(device), state, memory)
        looked = looked.after(step.attention)
        tokens, scores = pick.pick(model.head(step, source), position, rules)
        only = torch.zeros_like(tokens)[:, None]  # each output goes on from itself
        history.add(alive, tokens[:, None], scores[:, None], only, step.attention)
        possible = scores > -torch.inf
        finished = (tokens == END) & possible
        done = finished | ~possible | (limits.max_length[alive] == position)
        keep = (~done).nonzero()[:, 0]
        if bool(done.any()):
            gone = done.nonzero()[:, 0]
            at = torch.full_like(gone, position)
            penalties = looked.penalties(source, 1)[:, 0].masked_fill(~finished, 0.0)
            ends.append(Ends(alive[gone], at, torch.zeros_like(gone), scores[gone], finished[gone], penalties[gone]))
            if not len(keep):
                break
            rows = keep.to(device)
            state, memory, source = state.select(rows), memory.select(rows), source.select(rows)
        alive, tokens, only = alive[keep], tokens[keep], only[keep]
        looked, rules, pick = looked.select(keep, only), rules.select(keep, only, tokens[:, None]), pick.select(keep)
    return Ends.join(ends)
