"""Local attention: a window of the source instead of all of it (Luong et al. 2015, section 3.2). Knows scores and masks.

The window holds the real positions s with |s − p| ≤ D around a centre p; positions count from 0, as everywhere here. Scores are
computed for every position and those outside are hidden, so a window spares no time: it says where to look.
Shapes: K = R/N rows a source, query [R, T, Dq] folded to [N, K·T, Dq].
"""

from __future__ import annotations

import torch
from torch import Tensor

from eyeline.nn.attention import Attention, Keys, masked_softmax
from eyeline.nn.scores import Score
from eyeline.products import Linear


class WindowedAttention(Attention):
    """What both kinds of window share.

    Args:
        window: D, how many positions are seen to either side of the centre; at least 1.
    """

    def __init__(self, score: Score, window: int) -> None:
        super().__init__(score)
        assert window >= 1, "a narrower window may fall between two positions"
        self.window = window

    @property
    def form(self) -> None:
        """It does not look at all of its source."""
        return None

    def weigh(self, query: Tensor, keys: Keys, centre: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of the positions around `centre` [N, K·T], which sum to one, and their distances from it: both [N, K·T, S]."""
        distance = torch.arange(keys.mask.shape[1], device=centre.device) - centre[..., None]
        hidden = keys.mask[:, None] | (distance.abs() > self.window)
        return masked_softmax(self.score(query, keys.projected), hidden), distance


class LocalMonotonic(WindowedAttention):
    """local-m: the t-th look is at the t-th source position and around it, p_t = t.

    Beyond the end of a shorter source the window stays at its last position, which the paper leaves open, so that every look
    sees something. What is remembered from look to look is t, [R] whole numbers.
    """

    def start(self, keys: Keys) -> Tensor:
        return torch.zeros(len(keys.mask), dtype=torch.long, device=keys.mask.device)

    def attend(self, query: Tensor, keys: Keys, looked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, length = query.shape[:2]
        sources = len(keys.mask)
        position = looked[:, None] + torch.arange(length, device=looked.device)  # [R, T]
        last = (~keys.mask).sum(1) - 1  # [N]
        centre = torch.minimum(position.reshape(sources, -1), last[:, None])  # [N, K·T]
        weights, _ = self.weigh(query.reshape(sources, -1, query.shape[-1]), keys, centre)
        context = weights @ keys.values  # [N, K·T, Dk]
        return context.view(rows, length, -1), weights.view(rows, length, -1), looked + length

    def look(self, query: Tensor, keys: Keys) -> tuple[Tensor, Tensor]:
        """The first T looks, one after the other."""
        context, weights, _ = self.attend(query, keys, torch.zeros(len(query), dtype=torch.long, device=query.device))
        return context, weights


class LocalPredictive(WindowedAttention):
    """local-p: the decoder says where to look, p_t = S · sigmoid(v_pᵀ tanh(W_p h_t)), and a Gaussian favours what is near.

    a_t(s) = align(h_t, h̄_s) exp(−(s − p_t)² / 2σ²) with σ = D/2 (equations 9 and 10), where align sums to one over the window.
    As in the paper the product is not normalised again, so weights sum to less than one. S counts END.
    """

    def __init__(self, score: Score, window: int, query_size: int) -> None:
        super().__init__(score, window)
        self.hidden = Linear(query_size, query_size, bias=False)
        self.place = Linear(query_size, 1, bias=False)

    def look(self, query: Tensor, keys: Keys) -> tuple[Tensor, Tensor]:
        rows, length = query.shape[:2]
        folded = query.reshape(len(keys.mask), -1, query.shape[-1])
        share = self.place(torch.tanh(self.hidden(folded))).squeeze(-1).sigmoid()  # [N, K·T]
        centre = share * (~keys.mask).sum(1, keepdim=True).float()  # of single precision at least, so that it is exact enough
        weights, distance = self.weigh(folded, keys, centre)
        weights = weights * torch.exp(-2 * (distance / self.window) ** 2).to(weights.dtype)
        context = weights @ keys.values  # [N, K·T, Dk]
        return context.view(rows, length, -1), weights.view(rows, length, -1)
