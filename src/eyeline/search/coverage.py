"""How much of its source a hypothesis has looked at, and what a ranking takes off for the rest. Knows attention; no search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from eyeline.contracts import Source
from eyeline.errors import ConfigError

LEAST_LOOK = (
    1e-4  # a position that had less counts as this: one that was never looked at costs log 10,000 = 9.21, and not infinity
)


def coverage_penalty(looked: Tensor, mask: Tensor, weight: float) -> Tensor:
    """β Σ_j log min(Σ_t α_tj, 1) over real source positions, END's with them: Wu et al. 2016, equation 14. At most 0.

    Args:
        looked: [..., S] the attention that each position had, summed over all steps, END's step with them.
        mask: [..., S] True where hidden, broadcastable.
        weight: β.

    Returns:
        [...] float64 on the CPU.
    """
    shares = looked.double() if looked.device.type == "cpu" else looked.cpu().double()
    logs = shares.clamp(LEAST_LOOK, 1.0).log().masked_fill(mask.cpu(), 0.0)
    return weight * logs.sum(-1)


@dataclass(frozen=True)
class Looked:
    """What the W hypotheses of each of n sources have looked at. Without a penalty nothing is kept, or asked of a model."""

    weight: float  # β; 0 for no penalty
    sums: Tensor | None  # [n, W, S]

    @classmethod
    def none(cls, source: Source, weight: float) -> Looked:
        """Before the first step, where each source has one hypothesis."""
        if not weight:
            return cls(weight, None)
        return cls(weight, torch.zeros(source.ids.shape[0], 1, source.ids.shape[1], device=source.ids.device))

    def after(self, attention: Mapping[str, Tensor]) -> Looked:
        """With a step's attention, name -> [n·W, S]. Raises ConfigError where there is none to the source."""
        if self.sums is None:
            return self
        return Looked(self.weight, self.sums + attended(attention, self.weight).view_as(self.sums))

    def penalties(self, source: Source, width: int) -> Tensor:
        """[n, W] float64 on the CPU: the penalty of each hypothesis, should it end here."""
        if self.sums is None:
            return torch.zeros(source.ids.shape[0], width, dtype=torch.float64)
        return coverage_penalty(self.sums, source.mask[:, None], self.weight)

    def select(self, keep: Tensor, parents: Tensor) -> Looked:
        """Of the sources `keep` [n'] the hypotheses that continue `parents` [n', K]."""
        if self.sums is None:
            return self
        keep, parents = keep.to(self.sums.device), parents.to(self.sums.device)
        return Looked(self.weight, self.sums[keep[:, None], parents])


def attended(attention: Mapping[str, Tensor], weight: float) -> Tensor:
    """The attention to the source. Raises ConfigError where a model has none to measure coverage by."""
    if "source" not in attention:
        raise ConfigError("this architecture has no attention to the source", f"coverage_penalty={weight:g}", "set it to 0")
    return attention["source"]
