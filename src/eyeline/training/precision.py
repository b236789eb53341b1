"""In which numbers a model is computed: single precision, or half as many bits where that is safe. Knows devices; no models.

Weights, their gradients, moments, sums and logarithms stay in single precision; products of matrices are taken in the chosen one
(automatic mixed precision, Micikevicius et al. 2018). Half precision (fp16) has so few small numbers that gradients vanish: there
the loss is scaled up, and gradients down again (section 3.2).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import torch

from eyeline.errors import ConfigError

Precision = Literal["fp32", "bf16", "fp16"]
Wanted = Literal["fp32", "bf16", "fp16", "auto"]
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
LARGEST, SMALLEST = 2.0**16, 1.0
PATIENCE = 1000  # updates without overflow after which twice the scale is tried
WIDTH = 384  # of the matrices that are multiplied to see how fast a device is


@dataclass
class LossScale:
    """What the loss is multiplied with, and gradients divided by. A value that travels in checkpoints."""

    value: float = 1.0
    sound: int = 0  # updates in a row without overflow

    @classmethod
    def of(cls, precision: Precision) -> LossScale:
        return cls(LARGEST if precision == "fp16" else 1.0)

    def update(self, finite: bool, precision: Precision) -> bool:
        """Takes in whether the gradients were finite; returns whether that they were not is the scale's own fault.

        It is halved when they were not, and doubled after a thousand updates in a row in which they were.
        """
        if precision != "fp16":
            return False
        if finite:
            self.sound += 1
            if self.sound >= PATIENCE:
                self.value, self.sound = min(LARGEST, self.value * 2), 0
            return False
        fault = self.value > SMALLEST
        self.value, self.sound = max(SMALLEST, self.value / 2), 0
        return fault

    def carried_to(self, precision: Precision) -> LossScale:
        """This scale for a run that goes on in a precision, which may be another than before."""
        return self if precision == "fp16" and self != LossScale() else LossScale.of(precision)


def chosen(wanted: Wanted, device: torch.device) -> Precision:
    """The precision that a setting means on a device: `auto` is bf16 on a GPU that computes in it, and fp32 elsewhere.

    Raises:
        ConfigError: it cannot be had here.
    """
    if wanted == "auto":
        fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return "bf16" if fast else "fp32"
    _refuse(wanted, device)
    return wanted


def cast(precision: Precision, device: torch.device) -> torch.autocast:
    """Inside, products are computed in the chosen precision."""
    return torch.autocast(device.type, TYPES.get(precision, torch.bfloat16), enabled=precision != "fp32")


def warning(precision: Precision, device: torch.device) -> str:
    """Whether a precision is not worth its loss on this device: in words, or nothing. Takes some hundredths of a second."""
    if precision == "fp32" or device.type != "cpu":
        return ""
    ratio = slowness(TYPES[precision])
    return f"a product of matrices in {precision} takes {ratio:.1f} times as long as in fp32 on this CPU" if ratio > 1 else ""


def _refuse(precision: Precision, device: torch.device) -> None:
    where = f"training.precision={precision}"
    if device.type == "cpu" and precision == "fp16":
        raise ConfigError("fp16 is for GPUs", where, "use bf16 or fp32")
    if device.type == "cuda" and precision == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ConfigError(f"{torch.cuda.get_device_name(device)} does not compute in bf16", where, "use fp16 or fp32")


def check_cell(cell: str | None, precision: Precision, device: torch.device) -> None:
    """Raises ConfigError for an LSTM in numbers for which the CPU has none: PyTorch would fail in the first step."""
    if cell != "lstm" or precision == "fp32" or device.type != "cpu":
        return
    try:
        with torch.random.fork_rng(devices=[]), cast(precision, device):
            torch.nn.LSTM(8, 8)(torch.zeros(1, 1, 8))
    except RuntimeError as error:
        where, hint = f"training.precision={precision}", "use fp32, which is faster here, or model.cell=gru"
        raise ConfigError(f"this CPU has no LSTM in {precision}", where, hint) from error


def slowness(kind: torch.dtype) -> float:
    """How many times as long as in fp32 the CPU takes for a product of matrices; the best of a few tries each."""
    a, b = torch.ones(WIDTH, WIDTH), torch.ones(WIDTH, WIDTH)
    times: dict[torch.dtype, list[float]] = {torch.float32: [], kind: []}
    for _ in range(4):  # in turns, so that what else the machine does disturbs both alike; the first try of each warms up
        for dtype, taken in times.items():
            x, y = a.to(dtype), b.to(dtype)
            began = time.process_time()
            torch.mm(x, y)
            taken.append(time.process_time() - began)
    return min(times[kind][1:]) / max(1e-9, min(times[torch.float32][1:]))
