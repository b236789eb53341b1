"""How a model's numbers are held while it predicts. Knows models and devices; no text."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

import torch
from torch import nn

from eyeline.errors import ConfigError, nearest
from eyeline.nn.packed import pack, round_weights

PRECISIONS: Mapping[str, Callable[[nn.Module], nn.Module]] = {"fp32": pack, "int8": round_weights}


def check_precision(name: str, device: torch.device) -> None:
    """Raises ConfigError for a precision that is none, or that `device` does not have."""
    if name not in PRECISIONS:
        raise ConfigError("not a precision of prediction", f"precision={name}", nearest(name, PRECISIONS))
    if name == "int8" and device.type != "cpu":
        raise ConfigError("8-bit weights are for CPUs", f"precision={name}", f"leave it out on {device}")


def keep_freed_memory() -> None:
    """Tells the C library, where it is glibc, to keep the memory of tensors that are gone for the next ones.

    Otherwise it gives back what is larger than 128 kB, and the system clears every page anew: a tenth of the time of a beam
    search over a vocabulary of thousands. The process is the smaller for it never again; its peak stays what it is.
    """
    trim, mapped = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of <malloc.h>
    try:
        change = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library
        return
    change(mapped, 32 * 2**20)  # the greatest that it takes
    change(trim, 2**31 - 1)
