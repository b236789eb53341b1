"""What each hypothesis has said, and what it may not say lest an n-gram of it come twice. Knows ids; no model, no search rule."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eyeline.contracts import PAD


@dataclass(frozen=True)
class Said:
    """The tokens of the W hypotheses of each of n sources, all of one length t. Where repeats are allowed nothing is kept.

    No END is among them, for a hypothesis that has said it lives no longer; so END never completes a repeat.
    """

    size: int  # tokens of an n-gram that may not come twice; 0: everything may
    tokens: Tensor | None  # [n, W, t] long, on the CPU

    @classmethod
    def nothing(cls, sources: int, size: int) -> Said:
        """Before the first token, where each source has one hypothesis."""
        return cls(size, torch.zeros(sources, 1, 0, dtype=torch.long) if size else None)

    def bans(self, position: int) -> Tensor | None:
        """[n·W, t - size + 1] the ids that would complete an n-gram which their hypothesis has said already, PAD in the place of
        others; None where there are none yet."""
        if self.tokens is None or self.tokens.shape[-1] < self.size:
            return None
        grams = self.tokens.flatten(0, 1).unfold(1, self.size, 1)  # [n·W, t - size + 1, size]
        context = grams[:, -1:, 1:]  # the last size - 1 tokens: what an n-gram that is completed now begins with
        known = (grams[..., :-1] == context).all(-1)
        return torch.where(known, grams[..., -1], PAD)

    def select(self, keep: Tensor, parents: Tensor, tokens: Tensor) -> Said:
        """Of the sources `keep` [n'] the hypotheses that say `tokens` [n', K] after `parents` [n', K]."""
        if self.tokens is None:
            return self
        return Said(self.size, torch.cat([self.tokens[keep[:, None], parents], tokens[..., None]], -1))
