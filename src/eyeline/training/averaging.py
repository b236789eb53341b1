"""Weights that are judged and kept in place of those of the last update: averages over updates. Knows tensors by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from eyeline.config import TrainingSettings
from eyeline.errors import RunError
from eyeline.runs import part
from eyeline.training.optimizers import ScheduleFree


class Averaging(Protocol):
    """What is judged in place of the weights that are trained."""

    def after_update(self) -> None:
        """Takes in the weights that an update has made."""

    def averages(self) -> Sequence[tuple[Tensor, Tensor]]:
        """(parameter, what it is judged by) of those that differ."""

    def tensors(self) -> dict[str, Tensor]:
        """What must be remembered to go on, by name."""

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The reverse, once the weights are loaded. Raises KeyError or ValueError for tensors that are not of this average."""


class Unaveraged:
    """The weights themselves."""

    def after_update(self) -> None: ...

    def averages(self) -> list[tuple[Tensor, Tensor]]:
        return []

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


class MovingAverage:
    """w̄ ← d w̄ + (1 - d) w after each update, with d = min(decay, (1 + t) / (10 + t)) at update t, so that the weights at the
    start, which were drawn by chance, are soon forgotten."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.updates = decay, 0
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.shadows = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def after_update(self) -> None:
        self.updates += 1
        stays = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(list(self.shadows.values()), [p.detach() for p in self.parameters.values()], 1 - stays)

    def averages(self) -> list[tuple[Tensor, Tensor]]:
        return [(parameter, self.shadows[name]) for name, parameter in self.parameters.items()]

    def tensors(self) -> dict[str, Tensor]:
        return {**self.shadows, "updates": torch.tensor(self.updates)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        if not tensors:  # the run has not averaged so far
            tensors = {**{name: p.detach() for name, p in self.parameters.items()}, "updates": torch.tensor(0)}
        for name, shadow in self.shadows.items():
            if tensors[name].shape != shadow.shape:
                raise ValueError(f"the average of {name} has shape {tuple(tensors[name].shape)}")
        for name, shadow in self.shadows.items():
            shadow.copy_(part(tensors[name], shadow))
        self.updates = int(tensors["updates"])


class Stepping:
    """The mean that the schedule-free optimiser keeps by itself."""

    def __init__(self, optimizer: ScheduleFree) -> None:
        self.optimizer = optimizer

    def after_update(self) -> None: ...

    def averages(self) -> list[tuple[Tensor, Tensor]]:
        return self.optimizer.averages()

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


def averaging(model: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings) -> Averaging:
    """The average that the settings ask for."""
    if isinstance(optimizer, ScheduleFree):
        return Stepping(optimizer)
    return MovingAverage(model, settings.ema_decay) if settings.average == "ema" else Unaveraged()


@contextmanager
def judged(averaging: Averaging) -> Iterator[None]:
    """Inside, the model has the weights that it is judged by; afterwards, bit for bit, those that it had."""
    pairs = averaging.averages()
    kept = [parameter.detach().clone() for parameter, _ in pairs]
    with torch.no_grad():
        for parameter, average in pairs:
            parameter.copy_(average)
    try:
        yield
    finally:
        with torch.no_grad():
            for (parameter, _), value in zip(pairs, kept, strict=True):
                parameter.copy_(value)


def mean_of_files(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the tensors in several safetensors files, taken in double precision.

    Raises:
        RunError: a file is absent or damaged, or has other tensors than the first.
    """
    sums: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for path in paths:
        try:
            with safe_open(str(path), "pt") as file:
                names = set(file.keys())
                if sums and names != sums.keys():
                    raise RunError("other weights than in the first", str(path), "average what one run has made")
                for name in names:
                    tensor = file.get_tensor(name)
                    kinds.setdefault(name, tensor.dtype)
                    sums[name] = tensor.double() if name not in sums else sums[name] + tensor
        except RunError:
            raise
        except (OSError, ValueError, SafetensorError) as error:
            raise RunError(
                f"damaged, or not in the safetensors format: {' '.join(str(error).split())[:200]}", str(path)
            ) from None
        except RuntimeError:  # shapes that do not go together
            raise RunError("weights of other shapes than in the first", str(path)) from None
    return {name: (total / len(paths)).to(kinds[name]) for name, total in sums.items()}
