"""Products of rows with weights, by the fastest kernels that PyTorch has for them on a CPU. Knows tensors only.

PyTorch multiplies floats with MKL. Its other library, oneDNN, takes up to a quarter less on AMD's processors, where alone it was
measured, in the forward pass and for the gradient of what is read; the gradient of the weights is the faster in MKL. For each
number of rows oneDNN makes a kernel and keeps it, some 0.4 MB each: so it has the products of many rows that are a multiple of
`BLOCK`, of which there are few. All else goes PyTorch's usual way.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

BLOCK = 64  # rows
MANY = 1024  # rows, from which on a product is worth it
NARROW = 16  # columns of the weights, below which it is not
ROWS = 16  # the number of rows that a layout is made for; measured: it serves 2 to 320 alike
ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


class Linear(nn.Linear):
    """x Wᵀ + b: PyTorch's layer, its weights and their names, multiplied by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., out] from [..., in]."""
        return linear(input, self.weight, self.bias)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[..., O] inputs Wᵀ + b of `inputs` [..., I], W [O, I] and b [O]."""
    if not pays(inputs, weight):
        return functional.linear(inputs, weight, bias)
    if torch.is_grad_enabled():
        return _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call, no-any-return]
    return product(inputs, weight, bias)


def pays(inputs: Tensor, weight: Tensor) -> bool:
    """Whether a product of these is worth a kernel of oneDNN's."""
    rows = inputs.numel() // max(1, inputs.shape[-1])
    worth = rows >= MANY and rows % BLOCK == 0 and min(weight.shape) >= NARROW
    return worth and usual(inputs, weight) and not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()


def usual(*tensors: Tensor) -> bool:
    """Whether oneDNN is there for these: on a CPU, in single precision."""
    return ONEDNN and all(each.is_cpu and each.dtype == torch.float32 for each in tensors)


class Layouts:
    """Weights [O, I] laid out for products without a derivative, once; no later change of them is followed.

    Rows have oneDNN's layout, but for one alone. In a model larger than the caches its time is that of reading the weights, and
    MKL reads transposed ones more than twice as fast. They are made when the first such row comes.
    """

    def __init__(self, weights: Tensor) -> None:
        self._weights = torch.ops.mkldnn._reorder_linear_weight(weights.contiguous(), ROWS)

    @cached_property
    def _transposed(self) -> Tensor:
        return transposed(self._weights.to_dense())

    def product(self, inputs: Tensor, bias: Tensor | None = None) -> Tensor:
        """[..., O] of `inputs` [..., I]."""
        if inputs.numel() == inputs.shape[-1]:
            return functional.linear(inputs, self._transposed, bias)
        return product(inputs, self._weights, bias)


def transposed(weights: Tensor) -> Tensor:
    """The same weights [O, I], those of one input behind those of the other in memory: for few rows read the fastest by MKL."""
    return weights.t().contiguous().t()


def product(inputs: Tensor, weights: Any, bias: Tensor | None = None) -> Tensor:
    """[..., O] of `inputs` [..., I] and `weights` [O, I], by oneDNN. Has no derivative."""
    return torch.ops.mkldnn._linear_pointwise(inputs, weights, bias, "none", [], "")  # type: ignore[no-any-return]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return product(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (inputs, weight), (of_inputs, of_weight, of_bias) = ctx.saved_tensors, ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.shape[-1])
        twice = torch.is_grad_enabled()  # and oneDNN's product has no derivative
        return (
            (gradient @ weight if twice else product(gradient, weight.t())) if of_inputs else None,
            rows.t() @ inputs.reshape(-1, inputs.shape[-1]) if of_weight else None,
            rows.new_ones(len(rows)) @ rows if of_bias else None,  # of wide rows a sum takes half as long again
        )
