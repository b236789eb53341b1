"""Where a run is: what must be remembered, beside weights and optimiser, to go on as if it had never stopped. Knows numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from eyeline.config import TrainingSettings
from eyeline.data.corpus import Corpus
from eyeline.training.precision import LossScale
from eyeline.training.schedules import Progress


@dataclass
class Position:
    """How far a run has come."""

    step: int = 0  # windows of batches used; an update each, but for those skipped
    epoch: int = 0
    batch: int = 0  # batches of this epoch already used
    target_tokens: int = 0  # real target tokens seen, END counted
    seconds: float = 0.0  # of training, over all sessions, validations and saving included
    skipped: int = 0  # updates left out because a loss or gradient was not finite
    skipped_in_a_row: int = 0
    rescaled: int = 0  # updates left out because the loss was scaled too high for fp16
    split: int = 0  # batches worked through in parts because the memory was full
    warm_tokens: int = 0  # target tokens seen when the warm-up ended
    warm_seconds: float = 0.0  # of training when it did


@dataclass
class Meter:
    """Sums over the updates since it was last emptied."""

    nll: float = 0.0  # plain, natural log
    tokens: int = 0  # real target tokens
    seconds: float = 0.0  # spent in the updates themselves
    coverage: float = 0.0  # the coverage loss, without its weight
    alignment: float = 0.0  # the cross-entropy of attention against gold links, without its weight
    consistency: float = 0.0  # the divergence of two passes with different dropout, without its weight
    risk: float = 0.0  # what outputs drawn from the model cost in expectation, without its weight

    def add(self, other: Meter) -> None:
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))

    @property
    def loss(self) -> float:
        """Plain cross-entropy a token."""
        return self.nll / self.tokens

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / max(1e-9, self.seconds)


@dataclass
class Order:
    """What the order of batches follows from, beside the seed."""

    batch_tokens: int = 0
    pairs: int = 0  # a checksum of all ids of the training pairs

    @classmethod
    def of(cls, corpus: Corpus, settings: TrainingSettings) -> Order:
        return cls(settings.batch_tokens, corpus.checksum())


@dataclass
class State:
    """All of it, as it stands in a checkpoint's state.json."""

    position: Position
    progress: Progress
    meter: Meter
    order: Order
    snapshots: list[tuple[int, float]] = field(default_factory=list)  # (step, score) of weights that are kept for their mean
    scale: LossScale = field(default_factory=LossScale)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> State:
        """Raises ValueError where `values` are not what `to_dict` made."""
        try:
            return cls(
                _numbers(Position, values["position"]),
                Progress(**values["progress"]),
                _numbers(Meter, values["meter"]),
                _numbers(Order, values["order"]),
                [(int(step), float(score)) for step, score in values.get("snapshots", [])],
                _numbers(LossScale, values.get("scale", {})),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a state: {error}") from None


def share(settings: TrainingSettings, position: Position, total: int | None) -> float:
    """How much of a run is done, by what bounds it, in 0…1; 0 where nothing does. `total`: its updates, where that is known."""
    if total is not None:
        done = position.step / total
    elif settings.target_tokens is not None:
        done = position.target_tokens / settings.target_tokens
    elif settings.for_ is not None:
        done = position.seconds / settings.for_
    else:
        return 0.0
    return min(1.0, done)


def share_since_warm_up(settings: TrainingSettings, position: Position) -> float:
    """The same of what comes after the warm-up, for a run that target tokens or a duration bound."""
    if settings.target_tokens is not None:
        done, whole = position.target_tokens - position.warm_tokens, float(settings.target_tokens - position.warm_tokens)
        return min(1.0, max(0.0, done / max(1.0, whole)))
    assert settings.for_ is not None, "a run whose updates are not known beforehand"
    return min(1.0, max(0.0, (position.seconds - position.warm_seconds) / max(1e-9, settings.for_ - position.warm_seconds)))


def reached(settings: TrainingSettings, position: Position, progress: Progress) -> str | None:
    """Why a run that stands at `position` is over, or None."""
    if settings.steps is not None and position.step >= settings.steps:
        return f"{settings.steps} steps"
    if settings.epochs is not None and position.epoch >= settings.epochs:
        return f"{settings.epochs} epochs"
    if settings.target_tokens is not None and position.target_tokens >= settings.target_tokens:
        return f"{settings.target_tokens:,} target tokens"
    if settings.for_ is not None and position.seconds >= settings.for_:
        return f"{settings.for_:g} s"
    if progress.exhausted(settings.patience):
        return f"{settings.patience} validations in a row without improvement of {settings.metric}"
    return None


Made = TypeVar("Made", Position, Meter, Order, LossScale)


def _numbers(kind: type[Made], values: Mapping[str, Any]) -> Made:
    made = kind(**values)
    for part in fields(made):
        value = getattr(made, part.name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ValueError(f"{part.name} is {value!r}")
    return made
