"""Where a number first was none: a batch is run again, and every module watched. Knows modules by name, not by what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.contracts import Deferred
from eyeline.data.corpus import Batch


@dataclass
class _Watch:
    """What was seen, in the order of events. A module's own parts answer before it does, so that the innermost comes first."""

    outputs: list[str] = field(default_factory=list)  # modules that answered with NaN or +inf
    empty: list[str] = field(default_factory=list)  # those that answered with -inf, which may be the logarithm of nothing
    reached: set[str] = field(default_factory=set)  # modules that a gradient which is none has reached from above
    gradients: list[str] = field(default_factory=list)  # those that handed one down before any had reached them

    def answered(self, name: str, result: Any) -> None:
        found = [tensor.detach() for tensor in _tensors(result) if tensor.is_floating_point()]
        if any(bool((tensor.isnan() | tensor.isposinf()).any()) for tensor in found):
            self.outputs.append(name)
        elif any(bool(tensor.isneginf().any()) for tensor in found):
            self.empty.append(name)

    def from_above(self, name: str, gradient: Tensor) -> None:
        if not bool(gradient.isfinite().all()):
            self.reached.add(name)

    def handed_down(self, name: str, gradient: Tensor) -> None:
        if name not in self.reached and not bool(gradient.isfinite().all()):
            self.gradients.append(name)


def first_gone_wrong(model: nn.Module, objective: Callable[[Batch], Any], window: Iterable[Batch]) -> str:
    """Runs a window again, with gradients, and says which module first answered with, or handed back, a number that is none.

    What it finds is in words: `the output of decoder.stack`; empty when this time every number is sound. The gradients of the
    parameters are of no use afterwards.
    """
    model.zero_grad(set_to_none=True)
    for batch in window:
        with _watched(model) as watch:
            loss = objective(batch).objective
            if not bool(loss.detach().isfinite()):
                names = watch.outputs or watch.empty
                return f"the output of {_shown(names[0])}" if names else "the loss itself"
            loss.backward()
        if watch.gradients:
            return f"the gradient through {_shown(watch.gradients[0])}"
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and not bool(parameter.grad.isfinite().all()):
                return f"the gradient of {name}"
    return ""


def _shown(name: str) -> str:
    return name or "the model"


@contextmanager
def _watched(model: nn.Module) -> Iterator[_Watch]:
    watch, handles = _Watch(), []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(_entering(watch, name)))
        handles.append(module.register_forward_hook(_answering(watch, name)))
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()


def _entering(watch: _Watch, name: str) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
    def hook(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        # A view of its own, so that the gradient seen is what this module hands down, not a sum over all who read the tensor.
        own = tuple(item.view_as(item) if isinstance(item, Tensor) else item for item in given)
        for tensor in _tensors(own):
            if tensor.requires_grad:
                tensor.register_hook(partial(watch.handed_down, name))  # type: ignore[no-untyped-call]
        return own

    return hook


def _answering(watch: _Watch, name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
    def hook(module: nn.Module, given: tuple[Any, ...], result: Any) -> None:
        watch.answered(name, result)
        for tensor in _tensors(result):
            if tensor.requires_grad:
                tensor.register_hook(partial(watch.from_above, name))  # type: ignore[no-untyped-call]

    return hook


def _tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a value as it travels: in tuples, lists, mappings and dataclasses; what is deferred is left alone."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Deferred):
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from _tensors(getattr(value, part.name))
