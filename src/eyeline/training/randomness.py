"""The generators that training draws from: their states taken and given back. Knows devices; no models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

_GENERATORS: dict[str, Callable[[], Any]] = {"cuda": lambda: torch.cuda, "mps": lambda: torch.mps}


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states of the CPU's generator and of the device's own, by the kind of device."""
    states = {"cpu": torch.get_rng_state()}
    if device.type in _GENERATORS:
        states[device.type] = _GENERATORS[device.type]().get_rng_state(*_index(device))
    return states


def restore(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Gives back what `random_states` took; the state of another kind of device is left out."""
    torch.set_rng_state(states["cpu"])
    if device.type in states and device.type in _GENERATORS:
        _GENERATORS[device.type]().set_rng_state(states[device.type], *_index(device))


def own_seed(seed: int, rank: int) -> int:
    """A seed of its own for each of several processes, from that of the run."""
    return int(np.random.SeedSequence((seed, rank)).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Inside, drawing leaves no trace."""
    states = random_states(device)
    try:
        yield
    finally:
        restore(states, device)


def _index(device: torch.device) -> tuple[torch.device, ...]:
    """What names one of several devices of a kind; there is only one MPS."""
    return (device,) if device.type == "cuda" else ()
