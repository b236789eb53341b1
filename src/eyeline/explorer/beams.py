"""The hypotheses that a beam search keeps at each step, as a tree. Knows the contracts' Model and hypotheses; no text.

The search is not changed for it: it is given a model that notes what it is asked, and from that the tree follows. What is fed at
a step are the hypotheses that live, what the state is reordered by are their parents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Hypothesis, Model, Source, Step


@dataclass(frozen=True)
class Kept:
    """A hypothesis that lived on after a step."""

    id: int  # its last token
    parent: int  # its place among those of the step before
    score: float  # summed log-probability


@dataclass
class Tree:
    """The levels of one search, filled as it goes on. Level t has the hypotheses of t + 1 tokens; a score of -inf cannot be."""

    prefix: Sequence[int] = ()  # what every hypothesis has to begin with
    levels: list[list[Kept]] = field(default_factory=list)
    _said: Tensor | None = None  # [W, X] what the model said after each hypothesis of the last level
    _parents: list[int] = field(default_factory=list)

    def reordered(self, rows: Tensor) -> None:
        self._parents = rows.tolist()

    def said(self, log_probs: Tensor) -> None:
        self._said = log_probs

    def fed(self, tokens: Tensor) -> None:
        """The tokens [K] of the hypotheses that live on; the first ones that are fed stand before every hypothesis."""
        if self._said is None:
            self._parents = list(range(len(tokens)))
            return
        parents = torch.tensor(self._parents, device=self._said.device)
        gained = self._said[parents, tokens].double().tolist()
        before = [kept.score for kept in self.levels[-1]] if self.levels else [0.0]
        level: list[Kept] = []
        for token, parent, gain in zip(tokens.tolist(), self._parents, gained, strict=True):
            cannot = self._cannot(token) or any((one.id, one.parent) == (token, parent) for one in level)
            level.append(Kept(token, parent, -math.inf if cannot else before[parent] + gain))
        self.levels.append(level)
        self._parents = list(range(len(tokens)))

    def _cannot(self, token: int) -> bool:
        """Whether a token at this level fills a place that no hypothesis has: where fewer are possible than the beam holds."""
        depth = len(self.levels)
        return token in (PAD, BEGIN) or (depth < len(self.prefix) and token != self.prefix[depth])

    def place(self, hypothesis: Hypothesis) -> tuple[int, int] | None:
        """(level, place) of the last token before END; None for an output of no token, or one whose last token was never fed."""
        ids = hypothesis.ids[:-1] if hypothesis.ids[-1:] == (END,) else hypothesis.ids
        place = 0
        for level, token in enumerate(ids):
            kept = self.levels[level] if level < len(self.levels) else []
            ways = (at for at, one in enumerate(kept) if one.id == token and (level == 0 or one.parent == place))
            found = max(ways, key=lambda at: kept[at].score, default=None)
            if found is None or kept[found].score == -math.inf:
                return None
            place = found
        return (len(ids) - 1, place) if ids else None


class Watched:
    """A model that notes in `tree` what a search of one source asks it."""

    def __init__(self, model: Model, prefix: Sequence[int] = ()) -> None:
        self.tree = Tree(prefix)
        self.decoder = _Decoder(model.decoder, self.tree)
        self._model = model

    def encode(self, source: Source) -> Any:
        return self._model.encode(source)

    def head(self, step: Step, source: Source) -> Tensor:
        log_probs: Tensor = self._model.head(step, source)
        self.tree.said(log_probs)
        return log_probs


@dataclass(frozen=True)
class _State:
    """Another state that tells how it is reordered."""

    inner: Any
    tree: Tree

    def select(self, rows: Tensor) -> _State:
        self.tree.reordered(rows)
        return _State(self.inner.select(rows), self.tree)


@dataclass(frozen=True)
class _Decoder:
    inner: Any
    tree: Tree

    def start(self, memory: Any) -> _State:
        return _State(self.inner.start(memory), self.tree)

    def step(self, token: Tensor, state: _State, memory: Any) -> tuple[Step, _State]:
        self.tree.fed(token)
        step, after = self.inner.step(token, state.inner, memory)
        return step, _State(after, self.tree)

    def __call__(self, tokens: Tensor, memory: Any) -> Step:
        step: Step = self.inner(tokens, memory)
        return step
