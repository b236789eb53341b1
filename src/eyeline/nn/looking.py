"""One look at the source with its derivatives written by hand: scores, their distribution, the weighted sum. Knows no cells.

Shapes: query [B, A] as the score wants it, keys [B, S, A], values [B, S, Dk], hidden [B, S] (True), weights [B, S].

A product of one vector with each source's matrix is written with the vector as a row: as a column it takes ten times as long in
PyTorch on a CPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

SLICE = 2**20  # numbers of tanh(q + k) that stand at a time: few enough to stay in the cache from one operation to the next


def of_each(rows: Tensor, matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """[B, N]: each of `rows` [B, M] times its own of `matrices` [B, M, N]."""
    return torch.bmm(rows[:, None], matrices, out=None if out is None else out[:, None]).squeeze(1)


class Scoring(ABC):
    """Scores of looks one after the other, and what they leave for the gradients of the keys and the vector."""

    @abstractmethod
    def forward(self, query: Tensor) -> Tensor:
        """[B, S], up to a number that is the same for all of a row, which no softmax notices."""

    @abstractmethod
    def backward(self, query: Tensor, slope: Tensor, out: Tensor) -> Tensor:
        """Fills `out` with the gradient of `query`, from that of its scores, `slope`, whose rows sum to zero after a softmax."""

    @abstractmethod
    def finish(self, queries: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of keys and vector, once `backward` was called for each of `queries` [T', B, A]."""


class Products(Scoring):
    """qᵀ k."""

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys

    def forward(self, query: Tensor) -> Tensor:
        return of_each(query, self.keys.transpose(1, 2))

    def backward(self, query: Tensor, slope: Tensor, out: Tensor) -> Tensor:
        of_each(slope, self.keys, out)
        return out

    def finish(self, queries: Tensor, slopes: Tensor) -> tuple[Tensor, None]:
        return torch.bmm(slopes.permute(1, 2, 0), queries.transpose(0, 1)), None


class Additive(Scoring):
    """vᵀ tanh(q + k), with s = σ(2q + 2k) for tanh(q + k) = 2s - 1: the scores are 2 vᵀ s, less Σ v, which is left out."""

    def __init__(self, keys: Tensor, vector: Tensor) -> None:
        B, S, A = keys.shape
        self.twice, self.vector, self.size = 2 * keys, vector, A
        self.rows = max(1, min(B, SLICE // max(1, S * A)))
        self.buffer = keys.new_empty(self.rows * S * A)
        self.of_keys: Tensor | None = None
        self.of_vector = torch.zeros_like(vector)

    def _squashed(self, query: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """(rows of B, s there: [b, S, A], overwritten by the next)."""
        doubled = 2 * query
        for start in range(0, len(query), self.rows):
            rows = slice(start, start + self.rows)
            keys = self.twice[rows]
            part = self.buffer[: keys.numel()].view(keys.shape)
            yield rows, torch.add(keys, doubled[rows, None], out=part).sigmoid_()

    def forward(self, query: Tensor) -> Tensor:
        scores, vector = query.new_empty(self.twice.shape[:2]), 2 * self.vector
        for rows, squashed in self._squashed(query):
            torch.mv(squashed.view(-1, self.size), vector, out=scores[rows].view(-1))
        return scores

    def backward(self, query: Tensor, slope: Tensor, out: Tensor) -> Tensor:
        """∂q = 4 v ∘ Σ_s g (s - s²), ∂k_s = 4 v ∘ Σ_t g (s - s²), ∂v = 2 Σ g s."""
        if self.of_keys is None:
            self.of_keys = torch.zeros_like(self.twice)
        for rows, squashed in self._squashed(query):
            given = slope[rows]
            self.of_vector.addmv_(squashed.view(-1, self.size).t(), given.reshape(-1), alpha=2)
            torch.addcmul(squashed, squashed, squashed, value=-1, out=squashed)
            of_each(given, squashed, out[rows])
            self.of_keys[rows].addcmul_(squashed, given[..., None])
        return out.mul_(4 * self.vector)

    def finish(self, queries: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        of_keys = torch.zeros_like(self.twice) if self.of_keys is None else self.of_keys
        return of_keys.mul_(4 * self.vector), self.of_vector


class Look:
    """A look at one batch of sources."""

    def __init__(self, keys: Tensor, values: Tensor, hidden: Tensor, vector: Tensor | None) -> None:
        self.score: Scoring = Products(keys) if vector is None else Additive(keys, vector)
        self.values, self.hidden = values, hidden
        self.lowest = torch.finfo(keys.dtype).min

    def forward(self, query: Tensor, weights: Tensor, context: Tensor) -> None:
        """Fills `weights` [B, S], zero where hidden, and `context` [B, Dk]."""
        scores = self.score.forward(query).masked_fill_(self.hidden, self.lowest)
        torch.softmax(scores, -1, out=weights).masked_fill_(self.hidden, 0.0)
        of_each(weights, self.values, context)

    def backward(self, weights: Tensor, of_context: Tensor, of_weights: Tensor | None, slope: Tensor) -> None:
        """Fills `slope` [B, S] with the gradient of the scores."""
        total = of_each(of_context, self.values.transpose(1, 2))
        if of_weights is not None:
            total += of_weights
        torch.mul(weights, total - (weights * total).sum(-1, keepdim=True), out=slope)
