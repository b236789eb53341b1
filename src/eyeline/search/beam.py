"""Beam search. Knows the contracts' Model and nothing of any architecture.

Letters: n sources still running, K the beam, W the hypotheses a source before a position (1 at the first one, K afterwards).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import pad

from eyeline.contracts import BEGIN, END, Hypothesis, Model, Source
from eyeline.search.candidates import best_allowed
from eyeline.search.coverage import Looked
from eyeline.search.history import Ends, History
from eyeline.search.limits import Lengths, Limits, check_beam
from eyeline.search.repeats import Said


def beam_search(
    model: Model,
    source: Source,
    *,
    beam_size: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    min_length: int = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
) -> list[list[Hypothesis]]:
    """The `n_best` answers to each source, best first: finished ones by `normalized_score`, then unfinished ones by theirs.

    At every position the best 2K continuations of a source's K hypotheses are taken by summed log-probability. One that ends in
    END and ranks among the first K is finished and enters a list of the K best by normalised score; the best K others live on.
    A source is done when `n_best` are finished and no live hypothesis can still beat the last of them: a score only falls, it is
    worth most when divided by the greatest length allowed, and a coverage penalty only takes off from that. So the first of 5
    answers is always the only one of 1. What is done leaves the batch at once and never changes again. At the maximum length the
    live hypotheses that END did not close are kept as unfinished.

    The lists hold distinct id sequences. They have exactly `n_best` entries unless fewer outputs are possible (a tiny vocabulary
    and a small maximum, or a model that gives nearly everything probability 0). Equal scores: the earlier finished, the better
    parent, the lower id.

    Args:
        beam_size: hypotheses kept, K.
        n_best: answers wanted, at most `beam_size`.
        length_penalty: `normalized_score = score / length^length_penalty`, END counted; 0 and up.
        min_length: tokens before END may come.
        max_length: most tokens, END apart: one number, one a source, or None for `default_max_length`.
        attention: whether hypotheses carry the attention; it changes nothing else.
        coverage_penalty: β of Wu et al. 2016. What is finished has β Σ_j log min(Σ_t α_tj, 1), at most 0, in its
            `normalized_score`, never in its `score`; see `coverage.coverage_penalty`.
        no_repeat_ngram: the length of an n-gram of tokens that no output has twice; 0 allows repeats. The token that would
            complete one is left out before anything is chosen.

    Raises:
        ConfigError: a size, length or penalty that cannot be, or a coverage penalty for a model without attention.
        RunError: the model answered NaN.
    """
    check_beam(beam_size, n_best)
    limits = Limits.of(source, min_length, max_length, length_penalty, coverage_penalty, no_repeat_ngram)
    if not len(limits.max_length):
        return []
    with torch.no_grad():
        history, ends = _run(model, source, beam_size, n_best, limits, attention)
        return history.hypotheses(ends, limits)


def _run(model: Model, source: Source, beam_size: int, n_best: int, limits: Limits, attention: bool) -> tuple[History, Ends]:
    history, ends = History(source, attention), list[Ends]()
    device = source.ids.device
    alive = torch.arange(source.ids.shape[0])  # [n] which sources of the call still run
    totals = torch.zeros(len(alive), 1, dtype=torch.float64)  # [n, W] summed log-probabilities, descending; -inf: no hypothesis
    finished = _Finished.none(len(alive), beam_size)
    memory = model.encode(source)
    state = model.decoder.start(memory)
    tokens = torch.full_like(alive, BEGIN)
    looked = Looked.none(source, limits.coverage_penalty)
    said = Said.nothing(len(alive), limits.no_repeat_ngram)
    for position in range(int(limits.max_length.max()) + 1):
        step, state = model.decoder.step(tokens.to(device), state, memory)
        looked = looked.after(step.attention)
        values, ids = best_allowed(model.head(step, source), 2 * beam_size, limits.forbidden(position), said.repeating())
        found = _expand(values, ids, totals, beam_size)
        closing = found.closing(beam_size)
        finished = finished.joined(found, closing, position, limits, looked.penalties(source, totals.shape[1]))
        live = found.live(beam_size)
        history.add(alive, live.tokens, live.token_scores, live.parents, step.attention)
        done = _done(finished, live.totals[:, 0], limits.max_length[alive], position, n_best, limits)
        if bool(done.any()):
            gone = done.nonzero()[:, 0]
            unfinished = (totals > -torch.inf) & ~found.closed(closing, totals.shape[1])
            ends.append(_ends(alive[gone], finished.select(gone), unfinished[gone], position, n_best))
            if bool(done.all()):
                break
        keep = (~done).nonzero()[:, 0]
        state = state.select((keep[:, None] * totals.shape[1] + live.parents[keep]).flatten().to(device))
        if len(keep) < len(alive):
            memory, source = memory.select(keep.to(device)), source.select(keep.to(device))
        alive, finished, looked = alive[keep], finished.select(keep), looked.select(keep, live.parents[keep])
        said = said.select(keep, live.parents[keep], live.tokens[keep])
        totals, tokens = live.totals[keep], live.tokens[keep].flatten()
    return history, Ends.join(ends)


@dataclass(frozen=True)
class _Candidates:
    """Continuations of each source's hypotheses, best first; every field [n, C], on the CPU."""

    totals: Tensor  # float64; -inf where there is none
    tokens: Tensor
    token_scores: Tensor  # float64
    parents: Tensor  # which of the W hypotheses each continues

    def take(self, columns: Tensor) -> _Candidates:
        """Those at `columns` [n, C'] of each source."""
        return _Candidates(*(getattr(self, field.name).gather(1, columns) for field in fields(self)))

    def closing(self, beam_size: int) -> Tensor:
        """[n, C] True for those that finish: END, among the first K, and possible."""
        first = torch.arange(self.tokens.shape[1]) < beam_size
        return (self.tokens == END) & first & (self.totals > -torch.inf)

    def closed(self, closing: Tensor, width: int) -> Tensor:
        """[n, W] True for the hypotheses that one of `closing` finishes."""
        counts = torch.zeros(closing.shape[0], width, dtype=torch.long)
        return counts.scatter_add(1, self.parents, closing.long()) > 0

    def live(self, beam_size: int) -> _Candidates:
        """The best K without END. Where there are fewer, the first is repeated with a total of -inf, from which nothing grows:
        a decoder is thus only ever fed what a hypothesis really says."""
        totals, columns = self.totals.masked_fill(self.tokens == END, -torch.inf).sort(descending=True, stable=True)
        totals, columns = totals[:, :beam_size], columns[:, :beam_size]
        best = self.take(torch.where(totals > -torch.inf, columns, columns[:, :1]))
        return _Candidates(totals, best.tokens, best.token_scores, best.parents)


def _expand(values: Tensor, ids: Tensor, totals: Tensor, beam_size: int) -> _Candidates:
    """The best 2K continuations of each source from the best of each hypothesis, `values` and `ids` [n·W, C], of which no other
    can be among them, and `totals` [n, W]."""
    n, width = totals.shape
    each = values.shape[1]
    missing = max(0, 2 * beam_size - width * each)  # a vocabulary smaller than 2K
    values, ids = pad(values.view(n, -1), (0, missing), value=-torch.inf), pad(ids.view(n, -1), (0, missing))
    before = pad(totals.repeat_interleave(each, 1), (0, missing), value=-torch.inf)
    parents = pad(torch.arange(width).repeat_interleave(each), (0, missing)).expand(n, -1)
    sums, order = (before + values).sort(descending=True, stable=True)
    sums, order = sums[:, : 2 * beam_size], order[:, : 2 * beam_size]
    return _Candidates(sums, ids.gather(1, order), values.gather(1, order), parents.gather(1, order))


@dataclass(frozen=True)
class _Finished:
    """The K best finished hypotheses of each running source by normalised score, best first; every field [n, K], on the CPU."""

    normalized: Tensor  # float64; -inf where there is none yet
    position: Tensor  # tokens before END
    slot: Tensor  # its place in the beam that made them
    end_score: Tensor  # float64, log-probability of END
    penalty: Tensor  # float64, the coverage penalty, a part of `normalized`

    @classmethod
    def none(cls, sources: int, beam_size: int) -> _Finished:
        empty = torch.full((sources, beam_size), -torch.inf, dtype=torch.float64)
        nowhere = torch.zeros(sources, beam_size, dtype=torch.long)
        return cls(empty, nowhere, nowhere, empty, empty)

    def select(self, rows: Tensor) -> _Finished:
        return _Finished(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self, found: _Candidates, closing: Tensor, position: int, limits: Limits, penalties: Tensor) -> _Finished:
        """With the `closing` ones among `found` [n, C] added, `position` tokens long; of equal ones the older stays in front.

        `penalties` [n, W] are those of the hypotheses that they close.
        """
        if not bool(closing.any()):
            return self
        penalty = penalties.gather(1, found.parents)
        normalized = (found.totals / limits.divisors[position + 1] + penalty).masked_fill(~closing, -torch.inf)
        normalized, order = torch.cat([self.normalized, normalized], 1).sort(descending=True, stable=True)
        size = self.normalized.shape[1]
        order = order[:, :size]
        position_of_new = torch.full_like(found.parents, position)
        return _Finished(
            normalized[:, :size],
            torch.cat([self.position, position_of_new], 1).gather(1, order),
            torch.cat([self.slot, found.parents], 1).gather(1, order),
            torch.cat([self.end_score, found.token_scores], 1).gather(1, order),
            torch.cat([self.penalty, penalty], 1).gather(1, order),
        )


def _done(finished: _Finished, best_live: Tensor, max_length: Tensor, position: int, n_best: int, limits: Limits) -> Tensor:
    """[n] True for sources that are done: won, out of room, or with nothing live left (`best_live` [n] is -inf)."""
    last_wanted = finished.normalized[:, n_best - 1]
    bound = best_live / limits.divisors[max_length + 1]  # scores and penalties are at most 0: the longest would be worth most
    won = (last_wanted > -torch.inf) & (last_wanted >= bound)
    return won | (max_length == position) | (best_live == -torch.inf)


def _ends(sources: Tensor, finished: _Finished, unfinished: Tensor, position: int, n_best: int) -> Ends:
    """The first `n_best` of each of n done sources: finished ones, then `unfinished` [n, W], best first as the slots are."""
    valid = torch.cat([finished.normalized > -torch.inf, unfinished], 1)  # [n, K + W]
    order = valid.sort(dim=1, descending=True, stable=True).indices[:, :n_best]
    n, width = unfinished.shape
    size = finished.normalized.shape[1]
    slots = torch.arange(width).expand(n, -1)

    def chosen(of_finished: Tensor, of_unfinished: Tensor) -> Tensor:
        return torch.cat([of_finished, of_unfinished], 1).gather(1, order)[valid.gather(1, order)]

    return Ends(
        source=chosen(sources[:, None].expand(n, size), sources[:, None].expand(n, width)),
        position=chosen(finished.position, torch.full_like(slots, position)),
        slot=chosen(finished.slot, slots),
        end_score=chosen(finished.end_score, torch.zeros(n, width, dtype=torch.float64)),
        penalty=chosen(finished.penalty, torch.zeros(n, width, dtype=torch.float64)),
        finished=chosen(torch.ones(n, size, dtype=torch.bool), torch.zeros(n, width, dtype=torch.bool)),
    )
