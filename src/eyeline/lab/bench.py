"""Where an experiment is done: its chance, its device, who watches, and the run it is done on. Knows no experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, TypeVar

import torch
from pydantic import AfterValidator, BeforeValidator, Field

from eyeline.config_base import Settings, Whole
from eyeline.errors import ConfigError, nearest
from eyeline.lab.findings import Findings
from eyeline.predictor import Predictor
from eyeline.text.records import Pair

T = TypeVar("T")


def _parted(value: Any) -> Any:
    """`50,100` as a list, and a single number or name as a list of one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list | tuple) else [value]


def _rising(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))


Wholes = Annotated[
    tuple[Annotated[Whole, Field(ge=1)], ...], BeforeValidator(_parted), AfterValidator(_rising), Field(min_length=1)
]
Names = Annotated[tuple[str, ...], BeforeValidator(_parted), Field(min_length=1)]


class Watch(Protocol):
    """Sees items pass, to tell how fast they come."""

    def __call__(self, items: Iterator[T], unit: str, total: int) -> Iterator[T]: ...


def unwatched(items: Iterator[T], unit: str, total: int) -> Iterator[T]:
    return items


def _silent(text: str) -> None:
    pass


@dataclass(frozen=True)
class Bench:
    """What an experiment is given besides its settings."""

    seed: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    predictor: Predictor | None = None  # the run it is done on; None: on models of the experiment's own
    pairs: Sequence[Pair] = ()  # of the run, where there is one
    watch: Watch = unwatched
    note: Callable[[str], None] = _silent

    def each(self, items: Sequence[T], unit: str) -> Iterator[T]:
        """The items, watched."""
        return self.watch(iter(items), unit, len(items))

    def generator(self, *key: int) -> torch.Generator:
        """Chance of its own for a part of an experiment, on the CPU: the same `key`, the same draws, whatever came before."""
        number = self.seed
        for part in key:
            number = (number * 1_000_003 + part + 1) % (2**63 - 1)
        return torch.Generator().manual_seed(number)


@dataclass(frozen=True)
class Experiment:
    """A claim, and how it is measured."""

    name: str
    claim: str  # one sentence, and who says so
    settings: type[Settings]
    measure: Callable[[Any, Bench], Findings]
    run: Literal["none", "run", "pairs"] = "none"  # whether it can be done on a trained run, and needs its pairs for that
    links: bool = False  # whether those pairs have to have gold links


def chosen(items: Iterable[str], valid: Iterable[str], setting: str) -> list[str]:
    """The items, once it is sure that all of them are valid.

    Raises:
        ConfigError: one is not.
    """
    known, given = list(valid), list(items)
    for item in given:
        if item not in known:
            raise ConfigError("not a valid value", f"{setting}={item}", nearest(item, known))
    return given
