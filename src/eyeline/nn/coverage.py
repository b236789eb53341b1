"""Coverage: attention that remembers where it has looked. Knows scores and masks; not decoders, not losses.

The coverage of a step holds the steps BEFORE it, and nothing at the first. Columns that are hidden have none.
Shapes: K = R/N rows a source; coverage [N, K, S, C] inside the parts, [R, S, C] where decoders hand it on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from eyeline.contracts import Along, Rows
from eyeline.nn.attention import Keys, masked_softmax
from eyeline.nn.scores import Score
from eyeline.products import Linear

LEAST_FERTILITY = 1e-3  # a sigmoid that saturates at 0 would divide by it


class Coverage(nn.Module, ABC):
    """What is remembered of earlier looks: `size` numbers (C) for each source position."""

    size: int

    @abstractmethod
    def know(self, states: Tensor) -> Tensor | None:
        """What `forward` needs of the source, computed once a source: [N, S, F] from states [N, S, Dk]; None for nothing."""

    @abstractmethod
    def forward(self, coverage: Tensor, weights: Tensor, query: Tensor, known: Tensor | None) -> Tensor:
        """Coverage [N, K, S, C] after a look with `weights` [N, K, S] and `query` [N, K, Dq], from the coverage before it."""

    def amount(self, coverage: Tensor) -> Tensor:
        """[...] from `coverage` [..., C]: one number for people to look at, here the first."""
        return coverage[..., 0]


class SumCoverage(Coverage):
    """c_t = Σ_{t'<t} α_t': See et al. 2017, equation 10."""

    size = 1

    def know(self, states: Tensor) -> None:
        return None

    def forward(self, coverage: Tensor, weights: Tensor, query: Tensor, known: Tensor | None) -> Tensor:
        return coverage + weights[..., None]


class FertilityCoverage(Coverage):
    """Σ_{t'<t} α_t'j / Φ_j with the fertility Φ_j = N σ(U h_j): the linguistic coverage of Tu et al. 2016, section 3.1.

    A word that will be looked at often is filled up slowly. Φ is at least `LEAST_FERTILITY` here, so that a saturated sigmoid
    divides nothing by zero.

    Args:
        most: N, the most target symbols that a source symbol is thought to make; 2 in the paper.
    """

    size = 1

    def __init__(self, key_size: int, most: float = 2.0) -> None:
        super().__init__()
        self.fertility = Linear(key_size, 1, bias=False)
        self.most = most

    def know(self, states: Tensor) -> Tensor:
        """Φ [N, S, 1]."""
        fertility: Tensor = self.most * self.fertility(states).sigmoid()
        return fertility.clamp(min=LEAST_FERTILITY)

    def forward(self, coverage: Tensor, weights: Tensor, query: Tensor, known: Tensor | None) -> Tensor:
        assert known is not None
        return coverage + weights[..., None] / known[:, None]


class LocationCoverage(Coverage):
    """Σ_{t'<t} α_t'j, and beside it the last look around j: α_{t-1,j-r} … α_{t-1,j+r}, of which those beyond the source are 0.

    Chorowski et al. 2015, section 2.2: a score that knows where its neighbours were looked at can move on by one. Equations 8 and
    9 map these windows twice, by filters F and by U; both are linear, and here one map. They have no sum.

    Args:
        reach: r.
    """

    def __init__(self, reach: int = 2) -> None:
        super().__init__()
        self.reach, self.size = reach, 2 + 2 * reach

    def know(self, states: Tensor) -> None:
        return None

    def forward(self, coverage: Tensor, weights: Tensor, query: Tensor, known: Tensor | None) -> Tensor:
        around = pad(weights, (self.reach, self.reach)).unfold(-1, 2 * self.reach + 1, 1)  # [N, K, S, 2r + 1]
        return torch.cat([coverage[..., :1] + weights[..., None], around], -1)


class GatedCoverage(Coverage):
    """C_tj = GRU(C_{t-1,j}; α_{t-1,j}, h_j, query): the neural coverage of Tu et al. 2016, section 3.1, a vector for each h_j.

    The query is the decoder state that looked: s_{t-1} in Bahdanau's order, as in the paper, and s_t in Luong's. The gates are
    those of PyTorch's GRU, which resets after the product, r ∘ (U c + b).

    Args:
        size: C; 10 in the paper.
    """

    def __init__(self, query_size: int, key_size: int, size: int = 10) -> None:
        super().__init__()
        self.look = Linear(1, 3 * size, bias=False)
        self.key = Linear(key_size, 3 * size)
        self.query = Linear(query_size, 3 * size, bias=False)
        self.before = Linear(size, 3 * size)
        for block in torch.split(self.before.weight.detach(), size):
            nn.init.orthogonal_(block)
        self.size = size

    def know(self, states: Tensor) -> Tensor:
        """[N, S, 3C]: the gates' share of the source."""
        return self.key(states)  # type: ignore[no-any-return]

    def forward(self, coverage: Tensor, weights: Tensor, query: Tensor, known: Tensor | None) -> Tensor:
        assert known is not None
        given = self.look(weights[..., None]) + known[:, None] + self.query(query)[:, :, None]  # [N, K, S, 3C]
        reset, update, new = given.chunk(3, -1)
        old_reset, old_update, old = self.before(coverage).chunk(3, -1)
        reset, update = (reset + old_reset).sigmoid(), (update + old_update).sigmoid()
        after: Tensor = update * coverage + (1 - update) * (new + reset * old).tanh()
        return after

    def amount(self, coverage: Tensor) -> Tensor:
        """The length of the vector."""
        return coverage.norm(dim=-1)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class CoveredKeys(Rows):
    """What attention with coverage needs of a source, computed once."""

    keys: Keys
    known: Annotated[Tensor | None, Along(1)]  # see `Coverage.know`

    @property
    def mask(self) -> Tensor:
        """[N, S], True = hidden."""
        return self.keys.mask


class CoveredAttention(nn.Module):
    """A score function made into attention that remembers where it has looked. See `Attention` for the seam.

    The coverage, mapped linearly to the width of the projected keys, is added to them, for each row its own. With the additive
    and the concat score that is the term inside the tanh, V C (Tu et al. 2016, section 3.2) or w_c c (See et al. 2017, equation
    11). The products (dot, general and their kin) have no tanh and no such paper: there it shifts the key, and qᵀ(k_j + V c_j)
    says how much this very query shuns or seeks what has been covered.
    """

    def __init__(self, score: Score, coverage: Coverage) -> None:
        super().__init__()
        self.score, self.coverage = score, coverage
        self.term = Linear(coverage.size, score.size, bias=False)

    @property
    def form(self) -> None:
        """No look is apart from those before it."""
        return None

    def remember(self, states: Tensor, mask: Tensor) -> CoveredKeys:
        """What is needed of a batch of sources, once. What is hidden is zeroed, so that not even NaN there can leak."""
        values = states.masked_fill(mask[..., None], 0.0)
        return CoveredKeys(Keys(self.score.project(values), values, mask), self.coverage.know(values))

    def start(self, keys: CoveredKeys) -> Tensor:
        """The coverage before the first look, [N, S, C]: nothing."""
        return keys.keys.values.new_zeros(*keys.mask.shape, self.coverage.size)

    def attend(self, query: Tensor, keys: CoveredKeys, looked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """context [R, T, Dk], weights [R, T, S] and the coverage after these T looks, one after the other.

        Args:
            query: [R, T, Dq].
            looked: [R, S, C], the coverage before the first of them.
        """
        rows, length = query.shape[:2]
        N, S = keys.mask.shape
        queries, coverage = query.reshape(N, -1, length, query.shape[-1]), looked.view(N, -1, S, self.coverage.size)
        contexts, weights = [], []
        for position in range(length):
            now = queries[:, :, position]  # [N, K, Dq]
            looks = self._look(now, coverage, keys.keys)  # [N, K, S]
            contexts.append(looks @ keys.keys.values)
            weights.append(looks)
            coverage = self.coverage(coverage, looks, now, keys.known).masked_fill(keys.mask[:, None, :, None], 0.0)
        context = torch.stack(contexts, 2).view(rows, length, -1)
        return context, torch.stack(weights, 2).view(rows, length, S), coverage.reshape(rows, S, -1)

    def _look(self, query: Tensor, coverage: Tensor, keys: Keys) -> Tensor:
        """weights [N, K, S] of one look from each row."""
        shifted = keys.projected[:, None] + self.term(coverage)  # [N, K, S, A]
        scores = self.score(query.flatten(0, 1)[:, None], shifted.flatten(0, 1))  # [R, 1, S]
        return masked_softmax(scores.view(coverage.shape[:3]), keys.mask[:, None])

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Context [B, T, Dk] and weights [B, T, S] of T looks one after the other, [B, T, Dq], at states [B, S, Dk]."""
        if mask is None:
            mask = torch.zeros(keys.shape[:2], dtype=torch.bool, device=keys.device)
        remembered = self.remember(keys, mask)
        context, weights, _ = self.attend(query, remembered, self.start(remembered))
        return context, weights
