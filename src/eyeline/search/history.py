"""What a search has done, as back-pointers, and the way back from an end to its hypothesis. Knows no model and no search rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from eyeline.contracts import END, Hypothesis, Source
from eyeline.search.limits import Limits, total


@dataclass(frozen=True)
class Ends:
    """Where M hypotheses end; those of one source stand in their rank's order. Every field is [M] on the CPU."""

    source: Tensor  # long: which source of the call
    position: Tensor  # long: tokens before END
    slot: Tensor  # long: its place in the beam that `position` tokens made
    end_score: Tensor  # float64: log-probability of END; of no meaning where unfinished
    finished: Tensor  # bool: END came
    penalty: Tensor  # float64: the coverage penalty, at most 0; 0 where unfinished

    @staticmethod
    def join(parts: list[Ends]) -> Ends:
        return Ends(*(torch.cat([getattr(part, f.name) for part in parts]) for f in fields(Ends)))


@dataclass(frozen=True)
class _Link:
    """One position: n sources still running, `width` hypotheses each before it and K after it."""

    row: Tensor  # [N] long: where each source of the call stands among the n; meaningless for those that are gone
    tokens: Tensor  # [n, K] long
    scores: Tensor  # [n, K] float64: log-probability of each token
    parents: Tensor  # [n, K] long: the hypothesis before it that each one continues
    width: int
    attention: Mapping[str, Tensor]  # name -> [n·width, S], of the hypotheses before


class History:
    """The links of one call, one a position.

    Nothing is copied when a beam is reordered or a source leaves: the way is walked back once, at the end, for all hypotheses
    together.
    """

    def __init__(self, source: Source, attention: bool) -> None:
        """`source` is that of the whole call; without `attention` none is kept."""
        self._lengths = source.lengths.tolist()
        self._attention = attention
        self._links: list[_Link] = []

    def add(self, alive: Tensor, tokens: Tensor, scores: Tensor, parents: Tensor, attention: Mapping[str, Tensor]) -> None:
        """One position more.

        Args:
            alive: [n] which sources of the call the rows are, ascending.
            tokens, scores, parents: [n, K] the hypotheses after this position.
            attention: name -> [n·width, S], what the decoder looked at from each hypothesis before.
        """
        row = torch.zeros(len(self._lengths), dtype=torch.long)
        row[alive] = torch.arange(len(alive))
        width = self._links[-1].tokens.shape[1] if self._links else 1
        self._links.append(_Link(row, tokens, scores, parents, width, attention if self._attention else {}))

    def hypotheses(self, ends: Ends, limits: Limits) -> list[list[Hypothesis]]:
        """The hypotheses of each source of the call, in the order of `ends`."""
        lengths = ends.position + ends.finished.long()
        ids = torch.zeros(len(lengths), max(1, int(lengths.max())), dtype=torch.long)
        scores = torch.zeros(ids.shape, dtype=torch.float64)
        slot = ends.slot
        visits: list[tuple[_Link, Tensor, Tensor]] = []  # a link, the hypotheses that passed it, their rows of its attention
        for position in range(ids.shape[1] - 1, -1, -1):
            link = self._links[position]
            row = link.row[ends.source]
            passing = ends.position > position
            here = slot * passing  # those that end here or have ended hold a slot of another beam
            closing = ends.finished & (ends.position == position)
            token = torch.where(passing, link.tokens[row, here], END)
            token_score = torch.where(passing, link.scores[row, here], ends.end_score)
            slot = torch.where(passing, link.parents[row, here], slot)
            on = (passing | closing).nonzero()[:, 0]
            ids[on, position], scores[on, position] = token[on], token_score[on]
            visits.append((link, on, (row * link.width + slot)[on]))
        attention = _attention_of(visits[::-1], lengths)
        result: list[list[Hypothesis]] = [[] for _ in self._lengths]
        penalties = ends.penalty.tolist()
        for m, (source, length) in enumerate(zip(ends.source.tolist(), lengths.tolist(), strict=True)):
            token_scores = scores[m, :length].tolist()
            score = total(token_scores)
            columns = self._lengths[source]
            result[source].append(
                Hypothesis(
                    ids=tuple(ids[m, :length].tolist()),
                    token_scores=tuple(token_scores),
                    score=score,
                    normalized_score=limits.ranking.normalize(score, length) + penalties[m],
                    finished=bool(ends.finished[m]),
                    attention={name: rows[m][:, :columns].clone() for name, rows in attention.items()},
                )
            )
        return result


def _attention_of(visits: list[tuple[_Link, Tensor, Tensor]], lengths: Tensor) -> dict[str, tuple[Tensor, ...]]:
    """name -> for each hypothesis [length, S], float32 on the CPU, from the rows it passed at each position."""
    order = torch.cat([passed for _, passed, _ in visits]).argsort(stable=True)
    result = {}
    for name in visits[0][0].attention:
        taken = [link.attention[name].index_select(0, rows.to(link.attention[name].device)) for link, _, rows in visits]
        result[name] = torch.split_with_sizes(torch.cat(taken).float().cpu()[order], lengths.tolist())
    return result
