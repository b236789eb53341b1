"""A model made ready for prediction on a CPU: which of its parts give way to packed ones. Knows kinds of parts; no rung."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from eyeline.nn.cells import by_hand
from eyeline.nn.packed import PackedLinear, PackedStack, RoundedLinear, products_of_bytes
from eyeline.nn.projected_values import PROJECTED, with_projected_values
from eyeline.nn.recurrent import Stack
from eyeline.products import ONEDNN, Linear

UNITS = 128  # of a recurrent layer, from which on its step pays: of an LSTM of 512 a quarter of the time for 5 rows, 0.85 for 320
LARGE = 2**17  # weights of a layer, from which on 8 bits pay without VNNI; else the product gains less than rounding takes
WIDE = 1024  # outputs from which on oneDNN's own layout pays: five times as fast for 5 rows, half as fast again for 320


def pack(model: nn.Module) -> nn.Module:
    """`model` itself, wide linear layers and recurrent stacks laid out for prediction; those on a CPU, in single precision."""
    if not ONEDNN:
        return model
    return _with_wide(_with_stacks(model))


def round_weights(model: nn.Module) -> nn.Module:
    """`model` itself, the weights of its linear layers rounded to 8 bits; those on a CPU, in single precision. Without VNNI only
    large ones are, from LARGE on; the others are packed.

    Recurrent cells, embeddings and what else is no linear layer keep their numbers; so does what reads a context in place of
    which projected values are summed.
    """
    if ONEDNN:
        _with_stacks(model)
    whole = {layer for module in model.modules() if isinstance(module, PROJECTED) for layer in module.readers()}
    least = 0 if products_of_bytes() else LARGE
    _replaced(model, RoundedLinear, lambda linear: linear not in whole and linear.weight.numel() >= least)
    return _with_wide(model) if ONEDNN else model


def _with_wide(model: nn.Module) -> nn.Module:
    return _replaced(model, PackedLinear, lambda linear: linear.out_features >= WIDE)


def _with_stacks(model: nn.Module) -> nn.Module:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is Stack and _pays(child) and all(map(_on_cpu, child.parameters())):
                setattr(module, name, PackedStack(child))
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            setattr(module, name, with_projected_values(child))
    return model


def _pays(stack: Stack) -> bool:
    """Whether all layers are of a kind and width whose step is the faster for it."""
    cells = [by_hand(layer) for layer in stack.layers]  # type: ignore[arg-type]
    return stack.size >= UNITS and all(cell and cell.inward(stack.size) == cell.recurrent(stack.size) for cell in cells)


def _on_cpu(weights: Tensor) -> bool:
    return weights.is_cpu and weights.dtype == torch.float32


def _replaced(model: nn.Module, kind: Callable[[nn.Linear], nn.Linear], chosen: Callable[[nn.Linear], bool]) -> nn.Module:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and type(child) in (nn.Linear, Linear) and _on_cpu(child.weight) and chosen(child):
                setattr(module, name, kind(child))
    return model
