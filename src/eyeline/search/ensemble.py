"""Several models that answer as one. Knows the contracts' Model and nothing of any architecture.

To a search an ensemble is a model: its memory and state are tuples of theirs, and the mean of what they say is made at every
step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eyeline.contracts import Model, Rows, Source, State, Step

Mean = Callable[[Tensor], Tensor]  # [M, …, X] log-probabilities of M models -> [… X] those of their mean


def arithmetic(log_probs: Tensor) -> Tensor:
    """log (1/M Σ p): a token is likely where one model holds it so."""
    return log_probs.logsumexp(0) - math.log(len(log_probs))


def geometric(log_probs: Tensor) -> Tensor:
    """1/M Σ log p, shared out anew, so that it is a distribution: a token is likely where no model holds it unlikely."""
    mean = log_probs.mean(0)
    whole = mean.logsumexp(-1, keepdim=True)
    return mean - whole.masked_fill(whole == -torch.inf, 0.0)  # where nothing is possible, it stays so


MEANS: Mapping[str, Mean] = {"log": geometric, "arithmetic": arithmetic}


@dataclass(frozen=True)
class Memories(Rows):
    """What each model remembers of the same sources, and these: the models' heads may look at them."""

    memories: tuple[Any, ...]
    source: Source

    @property
    def mask(self) -> Tensor:
        return self.source.mask


@dataclass(frozen=True)
class States(Rows):
    """Each model's state after the same tokens."""

    states: tuple[State, ...]


class EnsembleDecoder:
    """Its features are the mean's log-probabilities; its attention, under each name that all models have, the mean of theirs."""

    def __init__(self, models: Sequence[Model], mean: Mean) -> None:
        self.models, self.mean = tuple(models), mean

    def start(self, memory: Memories) -> States:
        return States(tuple(m.decoder.start(own) for m, own in zip(self.models, memory.memories, strict=True)))

    def step(self, token: Tensor, state: States, memory: Memories) -> tuple[Step, States]:
        steps, states = [], []
        for model, own, before in zip(self.models, memory.memories, state.states, strict=True):
            step, after = model.decoder.step(token, before, own)
            steps.append(step)
            states.append(after)
        return self._joined(steps, memory.source), States(tuple(states))

    def __call__(self, tokens: Tensor, memory: Memories) -> Step:
        return self._joined([m.decoder(tokens, own) for m, own in zip(self.models, memory.memories, strict=True)], memory.source)

    def _joined(self, steps: Sequence[Step], source: Source) -> Step:
        said = torch.stack([model.head(step, source) for model, step in zip(self.models, steps, strict=True)])
        names = set(steps[0].attention).intersection(*(step.attention for step in steps[1:]))
        attention = {name: torch.stack([step.attention[name] for step in steps]).mean(0) for name in sorted(names)}
        return Step(self.mean(said), attention)


class Ensemble:
    """M models with the same vocabularies, as one model.

    Args:
        models: what they say has to mean the same: equal ids on both sides, and equal meanings of outputs.
        mean: `geometric` (log-mean) or `arithmetic`.
    """

    def __init__(self, models: Sequence[Model], mean: Mean = geometric) -> None:
        self.models = tuple(models)
        self.decoder = EnsembleDecoder(models, mean)

    def encode(self, source: Source) -> Memories:
        return Memories(tuple(model.encode(source) for model in self.models), source)

    def head(self, step: Step, source: Source) -> Tensor:
        return step.features
