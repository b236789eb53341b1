"""Planted faults: each breaks the real code as people have broken theirs, and names the check that must catch it.

A fault is planted before the model is built and lasts as long as the `MonkeyPatch` it was given.
"""

from . import (
    attention_losses,
    caches,
    copying,
    coverage,
    decoder,
    encoder,
    joining,
    learning,
    likelihood,
    local,
    masks,
    pointing,
    state_space,
    through_time,
    transformer,
)
from .registry import FAULTS, Fault

__all__ = [
    "FAULTS",
    "Fault",
    "attention_losses",
    "caches",
    "copying",
    "coverage",
    "decoder",
    "encoder",
    "joining",
    "learning",
    "likelihood",
    "local",
    "masks",
    "pointing",
    "state_space",
    "through_time",
    "transformer",
]
