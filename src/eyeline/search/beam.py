"""Beam search. Knows courses; no model.

Letters: n sources still running, G groups of size k, K = G·k the beam, W the hypotheses a source before a position (1 at the
first one, K afterwards).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, Hypothesis, Source
from eyeline.search.continuations import Best, Choice, Diverse
from eyeline.search.course import Course, Searching, Turn
from eyeline.search.coverage import Looked
from eyeline.search.finished import Finished, done, ends
from eyeline.search.history import Ends, History
from eyeline.search.limits import Lengths, Limits, Ranking, Worth, average, check_beam, check_groups, check_patience
from eyeline.search.required import Banks
from eyeline.search.rules import Demands, Rules

NOTHING = Demands()


@Searching
def beam_search(
    source: Source,
    *,
    beam_size: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    min_length: Lengths = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    demands: Demands = NOTHING,
    worth: Worth = average,
    diverse_groups: int = 1,
    diversity: float = 0.5,
    patience: float | None = None,
) -> Course[list[list[Hypothesis]]]:
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
        length_penalty: the power of `worth`; 0 and up.
        min_length: tokens before END may come: one number, or one a source.
        max_length: most tokens, END apart: one number, one a source, or None for `default_max_length`. A longer prefix stays
        whole.
        attention: whether hypotheses carry the attention; it changes nothing else.
        coverage_penalty: β of Wu et al. 2016. What is finished has β Σ_j log min(Σ_t α_tj, 1), at most 0, in its
            `normalized_score`, never in its `score`; see `coverage.coverage_penalty`.
        no_repeat_ngram: the length of an n-gram of tokens that no output has twice; 0 allows repeats. The token that would
            complete one is left out before anything is chosen.
        demands: prefixes, and phrases that outputs must have or may not have. Where phrases are required
            the beam is shared out by how many of them a hypothesis has; see `required`.
        worth: what a score is divided by: `average` or `wu`.
        diverse_groups: G, by which the beam is divided; above 1 each group shuns what the ones before it say at the same
            position, and gives an equal share of the answers; see `continuations.Diverse`.
        diversity: what a token costs for each time that an earlier group says it, in natural logarithms.
        patience: a source, or each group of its beam, is also done when this many times as many hypotheses as it keeps have
            finished (Kasai et al. 2022, section 2) and no live one would be the best if END came next for nothing, though a
            better one might still come; None: only as above.

    Raises:
        ConfigError: a size, length, penalty or demand that cannot be, or a coverage penalty for a model without attention.
        RunError: the model answered NaN.
    """
    check_beam(beam_size, n_best)
    ranking = Ranking(length_penalty, worth, coverage_penalty)
    limits = Limits.of(source, min_length, max_length, ranking, demands.begun(source.ids.shape[0]))
    required = demands.required_of(len(limits.max_length))
    check_groups(beam_size, diverse_groups, diversity, bool(required))
    check_patience(patience)
    if not len(limits.max_length):
        return []
    choice: Choice = Best(beam_size)
    if diverse_groups > 1:
        choice = Diverse.of(len(limits.max_length), beam_size, diverse_groups, diversity)
    elif required:
        choice = Banks.of(beam_size, required)
    rules = Rules.of(demands, no_repeat_ngram, limits)
    history, found = yield from _run(source, choice, rules, n_best, patience, limits, attention)
    return history.hypotheses(found, limits)


def _run(
    source: Source,
    choice: Choice,
    rules: Rules,
    n_best: int,
    patience: float | None,
    limits: Limits,
    attention: bool,
) -> Course[tuple[History, Ends]]:
    history, found = History(source, attention), list[Ends]()
    device, groups = source.ids.device, choice.groups
    share, enough = -(-n_best // groups), None if patience is None else math.ceil(patience * choice.size)
    alive = torch.arange(source.ids.shape[0])  # [n] which sources of the call still run
    totals = torch.zeros(len(alive), 1, dtype=torch.float64)  # [n, W] summed log-probabilities; -inf: no hypothesis
    finished = Finished.none(len(alive) * groups, choice.size)
    turn = Turn(torch.full_like(alive, BEGIN))
    looked = Looked.none(source, limits.ranking.coverage_penalty)
    for position in range(int(limits.max_length.max()) + 1):
        said = yield turn
        looked = looked.after(said.attention)
        values, ids = rules.offer(said.log_probs, choice.depth, position, choice.bans(), choice.wanted())
        chosen = choice.choose(values, ids, totals)
        live = chosen.live
        finished = finished.joined(chosen, position, limits, looked.penalties(source, totals.shape[1]))
        history.add(alive, live.tokens, live.token_scores, live.parents, said.attention)
        over = done(finished, live.totals, limits.max_length[alive], position, share, enough, limits)
        if bool(over.any()):
            gone = over.nonzero()[:, 0]
            closed = chosen.found.closed(chosen.closing, totals.shape[1]).view(len(over), groups, -1).any(1)
            unfinished, lacking = (totals > -torch.inf) & choice.distinct(closed), choice.lacking()
            lacking = torch.zeros_like(closed, dtype=torch.long) if lacking is None else lacking
            lists = finished.select(_rows(gone, groups))
            found.append(ends(alive[gone], lists, unfinished[gone], totals[gone], lacking[gone], position, n_best, limits))
            if bool(over.all()):
                break
        keep = (~over).nonzero()[:, 0]
        parents, after = live.parents[keep], live.tokens[keep]
        left = None
        if len(keep) < len(alive):
            source, left = source.select(keep.to(device)), keep
        turn = Turn(after.flatten(), (keep[:, None] * totals.shape[1] + parents).flatten(), left)
        alive, finished, looked = alive[keep], finished.select(_rows(keep, groups)), looked.select(keep, parents)
        rules, choice = rules.select(keep, parents, after), choice.select(keep, parents, after)
        totals = live.totals[keep]
    return history, Ends.join(found)


def _rows(sources: Tensor, groups: int) -> Tensor:
    """The rows of all groups of `sources`."""
    return (sources[:, None] * groups + torch.arange(groups)).flatten()
