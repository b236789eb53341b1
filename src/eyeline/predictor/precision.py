"""How a model's numbers are held while it predicts. Knows models and devices; no text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from eyeline.errors import ConfigError, nearest
from eyeline.nn.packing import pack, round_weights

PRECISIONS: Mapping[str, Callable[[nn.Module], nn.Module]] = {"fp32": pack, "int8": round_weights}


def check_precision(name: str, device: torch.device) -> None:
    """Raises ConfigError for a precision that is none, or that `device` does not have."""
    if name not in PRECISIONS:
        raise ConfigError("not a precision of prediction", f"precision={name}", nearest(name, PRECISIONS))
    if name == "int8" and device.type != "cpu":
        raise ConfigError("8-bit weights are for CPUs", f"precision={name}", f"leave it out on {device}")
