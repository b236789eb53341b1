"""Clocks, bytes and the exponents they grow with. Knows functions and tensors; no models."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

T = TypeVar("T")
LEAST = 1e-9  # seconds: what a coarse clock calls nothing


class Clock:
    """Processor time where one thread computes on the CPU, so that others who use the machine do not count; else the wall's."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        alone = device.type == "cpu" and torch.get_num_threads() == 1
        self._now = time.process_time if alone else time.perf_counter
        self.name = "processor time, one thread" if alone else f"wall time, {device}, {torch.get_num_threads()} threads"

    def seconds(self, work: Callable[[], Any]) -> float:
        return self.timed(work)[0]

    def timed(self, work: Callable[[], T]) -> tuple[float, T]:
        """Seconds that `work` took, and what it gave."""
        self._settle()
        began = self._now()
        result = work()
        self._settle()
        return max(self._now() - began, LEAST), result

    def _settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class _Alive(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the tensors that operations make, for as long as they live; what a kernel uses inside is not seen."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._users: dict[int, int] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._count(leaf, given)
        return result

    def _count(self, tensor: Tensor, given: set[int]) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._users:
            if key in given:
                return  # a view of what was there before, or written in place
            self._users[key] = 0
            self.now += size
            self.most = max(self.most, self.now)
        self._users[key] += 1
        weakref.finalize(tensor, self._gone, key, size)

    def _gone(self, key: int, size: int) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
            self.now -= size


def peak_bytes(work: Callable[[], Any], device: torch.device) -> int:
    """The most bytes that stood in memory at a time for what `work` computes, its result included, without gradients."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    with _Alive() as alive:
        result = work()
    del result
    return int(alive.most)


def bytes_of(value: Any) -> int:
    """Bytes of all tensors in a value made of dataclasses and tuples."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, tuple | list):
        return sum(bytes_of(item) for item in value)
    if is_dataclass(value):
        return sum(bytes_of(getattr(value, field.name)) for field in fields(value))
    return 0


@dataclass(frozen=True)
class Exponent:
    """b of y ~ x^b, with its 95 % interval."""

    value: float
    low: float
    high: float


def exponent(points: Sequence[tuple[float, float]]) -> Exponent:
    """From (x, y), by least squares of the logarithms; the interval by Student's t. Without three points it is unbounded."""
    x, y = (np.log(np.array(values, dtype=float).clip(min=1e-300)) for values in zip(*points, strict=True))
    centred = x - x.mean()
    square = float((centred**2).sum())
    if not square:
        return Exponent(math.nan, -math.inf, math.inf)
    value = float((centred * y).sum() / square)
    freedom = len(x) - 2
    if freedom < 1:
        return Exponent(value, -math.inf, math.inf)
    residual = y - y.mean() - value * centred
    half = student(freedom) * math.sqrt(float((residual**2).sum()) / freedom / square)
    return Exponent(value, value - half, value + half)


_STUDENT = (12.7062047, 4.3026527, 3.1824463, 2.7764451, 2.5705818)  # of one degree of freedom to five


def student(freedom: int) -> float:
    """The 97.5 % point of Student's t: from a table up to five degrees of freedom, beyond by its expansion around the normal's
    (Abramowitz & Stegun 1964, 26.7.5), which is right to three digits there."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def crossing(x: Sequence[float], first: Sequence[float], second: Sequence[float]) -> tuple[float | None, int]:
    """Where two curves cross for the last time, by lines between their points on logarithmic axes, and which is lower behind it:
    0 for the first, 1 for the second. None where they do not."""
    apart = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    lower = 0 if apart[-1] <= 0 else 1
    for place in range(len(x) - 1, 0, -1):
        before, after = apart[place - 1], apart[place]
        if before * after < 0:
            share = before / (before - after)
            return math.exp(math.log(x[place - 1]) + share * math.log(x[place] / x[place - 1])), lower
    return None, lower
