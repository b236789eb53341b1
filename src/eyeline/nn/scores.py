"""How a query meets the keys: the score functions of the attention papers. Knows tensors; not masks, not softmax.

A score is in two halves, so that what depends on the source alone is computed once a source:
`project(keys)` and `forward(query, projected)`. Shapes: query [N, T, Dq], keys [N, S, Dk], scores [N, T, S].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from eyeline.errors import ConfigError
from eyeline.nn.additive import additive_scores
from eyeline.products import Linear, linear


@dataclass(frozen=True)
class Form:
    """A score as the tensors it is made of: with q = W x + b it is vᵀ tanh(q + k), or scale · qᵀ k where there is no v."""

    weight: Tensor | None = None  # W [A, Dq]; None: the identity
    bias: Tensor | None = None  # b [A]
    vector: Tensor | None = None  # v [A]
    scale: float = 1.0


class Score(nn.Module, ABC):
    """A score function."""

    size: int  # A, the width of projected keys

    @property
    @abstractmethod
    def form(self) -> Form | None:
        """What `forward` computes, for those who write its derivatives themselves; None where it is of no such form."""

    @abstractmethod
    def project(self, keys: Tensor) -> Tensor:
        """[N, S, A] from [N, S, Dk]: the half that depends on the source alone."""

    @abstractmethod
    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        """[N, T, S] from [N, T, Dq] and `project(keys)`."""


class AdditiveScore(Score):
    """vᵀ tanh(W q + U k + b): Bahdanau et al. 2015, appendix A.1.2, with the bias that its equations leave out for brevity.

    Args:
        size: width A of the hidden layer.
    """

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__()
        self.query = Linear(query_size, size)
        self.key = Linear(key_size, size, bias=False)
        self.vector = Linear(size, 1, bias=False)
        self.size = size

    def project(self, keys: Tensor) -> Tensor:
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        return additive_scores(self.query(query), projected, self.vector.weight[0])

    @property
    def form(self) -> Form:
        return Form(self.query.weight, self.query.bias, self.vector.weight[0])


class ConcatScore(Score):
    """vᵀ tanh(W [q; k]): Luong et al. 2015, equation 8. W is applied to its two halves apart, which is the same sum."""

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__()
        self.mix = Linear(query_size + key_size, size, bias=False)
        self.vector = Linear(size, 1, bias=False)
        self.query_size, self.size = query_size, size

    def project(self, keys: Tensor) -> Tensor:
        return linear(keys, self.mix.weight[:, self.query_size :])

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        mixed = linear(query, self.mix.weight[:, : self.query_size])
        return additive_scores(mixed, projected, self.vector.weight[0])

    @property
    def form(self) -> Form:
        return Form(self.mix.weight[:, : self.query_size], None, self.vector.weight[0])


def _of_one_width(score: str, instead: str, query_size: int, key_size: int) -> None:
    if query_size != key_size:
        raise ConfigError(
            f"the {score} score multiplies vectors of one width, but the query has {query_size} and the keys {key_size}",
            f"score={score}",
            f"use score={instead}, which maps one onto the other, or make the widths equal",
        )


class DotScore(Score):
    """qᵀ k: Luong et al. 2015, equation 8. Has no parameters, so both widths must be equal.

    Raises:
        ConfigError: when the widths differ.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        _of_one_width("dot", "general", query_size, key_size)
        self.size = key_size

    def project(self, keys: Tensor) -> Tensor:
        return keys

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        return query @ projected.transpose(1, 2)

    @property
    def form(self) -> Form:
        return Form()


class GeneralScore(Score):
    """qᵀ W k: Luong et al. 2015, equation 8."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.key = Linear(key_size, query_size, bias=False)
        self.size = query_size

    def project(self, keys: Tensor) -> Tensor:
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        return query @ projected.transpose(1, 2)

    @property
    def form(self) -> Form:
        return Form()


class ScaledDotScore(Score):
    """qᵀ k / √D: Vaswani et al. 2017, equation 1. Has no parameters, so both widths must be equal.

    Raises:
        ConfigError: when the widths differ.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        _of_one_width("scaled-dot", "projected-dot", query_size, key_size)
        self.size = key_size

    def project(self, keys: Tensor) -> Tensor:
        return keys

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        return query @ projected.transpose(1, 2) / math.sqrt(self.size)

    @property
    def form(self) -> Form:
        return Form(scale=self.size**-0.5)


class ProjectedDotScore(Score):
    """(W_Q q)ᵀ (W_K k) / √r: the general score with its W in two factors, W = W_Qᵀ W_K / √r, of rank r at most.

    It is what one head of Vaswani et al. 2017, section 3.2.2, scores with. The scale keeps the spread of the scores apart from r.

    Args:
        rank: width r of the space that both are projected into.
    """

    def __init__(self, query_size: int, key_size: int, rank: int) -> None:
        super().__init__()
        self.query = Linear(query_size, rank, bias=False)
        self.key = Linear(key_size, rank, bias=False)
        self.size = rank

    def project(self, keys: Tensor) -> Tensor:
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        return self.query(query) @ projected.transpose(1, 2) / math.sqrt(self.size)  # type: ignore[no-any-return]

    @property
    def form(self) -> Form:
        return Form(self.query.weight, scale=self.size**-0.5)
