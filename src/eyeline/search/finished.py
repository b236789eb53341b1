"""What a beam has finished, and when a source is done. Knows scores; no model, no ids.

Letters: n sources still running, G groups of size k, K = G·k the beam, W the hypotheses a source.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import pad

from eyeline.search.continuations import Chosen
from eyeline.search.history import Ends
from eyeline.search.limits import Limits


@dataclass(frozen=True)
class Finished:
    """The k best finished hypotheses of each group by normalised score, best first; every field [n·G, k] but one, on the CPU."""

    normalized: Tensor  # float64; -inf where there is none yet
    position: Tensor  # tokens before END
    slot: Tensor  # its place in the beam that made them
    end_score: Tensor  # float64, log-probability of END
    penalty: Tensor  # float64, the coverage penalty, a part of `normalized`
    count: Tensor  # [n·G] long: how many have finished, those that others have pushed out among them

    @classmethod
    def none(cls, groups: int, size: int) -> Finished:
        empty = torch.full((groups, size), -torch.inf, dtype=torch.float64)
        nowhere = torch.zeros(groups, size, dtype=torch.long)
        return cls(empty, nowhere, nowhere, empty, empty, torch.zeros(groups, dtype=torch.long))

    def select(self, rows: Tensor) -> Finished:
        return Finished(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self, chosen: Chosen, position: int, limits: Limits, penalties: Tensor) -> Finished:
        """With the closing ones among `chosen` added, `position` tokens long; of equal ones the older stays in front.

        `penalties` [n, W] are those of the hypotheses that they close.
        """
        if not bool(chosen.closing.any()):
            return self
        found = chosen.found
        penalty = penalties.repeat_interleave(len(found.parents) // len(penalties), 0).gather(1, found.parents)
        normalized = (found.totals / limits.divisors[position + 1] + penalty).masked_fill(~chosen.closing, -torch.inf)
        normalized, order = torch.cat([self.normalized, normalized], 1).sort(descending=True, stable=True)
        size = self.normalized.shape[1]
        order = order[:, :size]
        position_of_new = torch.full_like(found.parents, position)
        return Finished(
            normalized[:, :size],
            torch.cat([self.position, position_of_new], 1).gather(1, order),
            torch.cat([self.slot, found.parents], 1).gather(1, order),
            torch.cat([self.end_score, found.token_scores], 1).gather(1, order),
            torch.cat([self.penalty, penalty], 1).gather(1, order),
            self.count + chosen.closing.sum(1),
        )


def done(
    finished: Finished, live: Tensor, max_length: Tensor, position: int, share: int, enough: int | None, limits: Limits
) -> Tensor:
    """[n] True for sources that are done: out of room, or each of their groups has won, or has nothing live left, or has enough.

    Args:
        live: [n, K] totals of what lives on; -inf is nothing.
        max_length: [n].
        share: finished ones that each group owes.
        enough: finished ones after which a group waits only for what would win if it ended now; None: for all that can win.
    """
    n, groups = len(live), len(finished.normalized) // max(1, len(live))
    best_live = live.view(n * groups, -1).amax(1)

    def worth(length: Tensor) -> Tensor:
        return best_live / limits.divisors[length].repeat_interleave(groups)

    best, last_wanted = finished.normalized[:, 0], finished.normalized[:, share - 1]
    won = last_wanted >= worth(max_length + 1)  # scores and penalties are at most 0: the longest would be worth most
    if enough is not None:
        # of the first one, not of the last that is wanted: what that is may not change with how many are
        won |= (finished.count >= enough) & (best >= worth((max_length + 1).clamp(max=position + 2)))
    won &= last_wanted > -torch.inf
    return (won | (best_live == -torch.inf)).view(n, groups).all(1) | (max_length == position)


def ends(
    sources: Tensor,
    finished: Finished,
    unfinished: Tensor,
    totals: Tensor,
    lacking: Tensor,
    position: int,
    n_best: int,
    limits: Limits,
) -> Ends:
    """The best `n_best` of each of n done sources, of which each group gives its equal share at most.

    Args:
        sources: [n] which sources of the call they are.
        unfinished: [n, W] True for hypotheses of `position` tokens that are answers though END does not close them.
        totals: [n, W] their scores.
        lacking: [n, W] what each still lacks of what is required: fewer come first.
    """
    n, width = unfinished.shape
    size = finished.normalized.shape[1]
    groups = len(finished.normalized) // max(1, n)
    share = -(-n_best // groups)
    worth = totals / limits.divisors[position]
    normalized = torch.cat([finished.normalized, _by_group(worth.masked_fill(~unfinished, -torch.inf), groups, size)], 1)
    kind = torch.cat([torch.zeros_like(finished.slot), 1 + _by_group(lacking, groups, size)], 1)
    slots = _by_group(torch.arange(width).expand(n, -1), groups, size)
    columns = {
        "position": torch.cat([finished.position, torch.full_like(slots, position)], 1),
        "slot": torch.cat([finished.slot, slots], 1),
        "end_score": torch.cat([finished.end_score, torch.zeros_like(finished.end_score)], 1),
        "penalty": torch.cat([finished.penalty, torch.zeros_like(finished.penalty)], 1),
        "finished": kind == 0,
    }
    order = _order(normalized, kind)[:, :share]  # of each group

    def of_source(value: Tensor) -> Tensor:
        return value.gather(1, order).view(n, -1)

    normalized = of_source(normalized)
    final = _order(normalized, of_source(kind))[:, :n_best]
    real = normalized.gather(1, final) > -torch.inf
    taken = {name: of_source(value).gather(1, final)[real] for name, value in columns.items()}
    return Ends(source=sources[:, None].expand_as(final)[real], **taken)


def _order(normalized: Tensor, kind: Tensor) -> Tensor:
    """Columns of each row: by kind, those of one kind by normalised score, and behind all what is none."""
    by_worth = normalized.sort(dim=1, descending=True, stable=True).indices
    kind = kind.masked_fill(normalized == -torch.inf, torch.iinfo(torch.long).max).gather(1, by_worth)
    return by_worth.gather(1, kind.sort(dim=1, stable=True).indices)


def _by_group(value: Tensor, groups: int, size: int) -> Tensor:
    """[n·G, k] of `value` [n, W]; where there is one hypothesis yet, it is the first group's."""
    missing = groups * size - value.shape[1]
    filler = -torch.inf if value.is_floating_point() else 0
    return pad(value, (0, missing), value=filler).view(-1, size)
