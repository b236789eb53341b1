"""Linear layers for prediction on a CPU: the same products from weights that were laid out, or rounded, once. Knows layers only.

What is learnt stays where it is, `weight` and `bias`, under its name and shared with whom it was shared: a packed layer has a
second form of the weights beside them, which follows no later change. With gradients it computes as a plain layer does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

WIDE = 1024  # outputs from which on oneDNN's own layout pays: five times as fast for 5 rows, half as fast again for 320
CACHED = 2**19  # integers of 4 bytes that are made at a time
LEAST = 1e-12  # rows of zeros have a scale, too
ROWS = 16  # the number of rows that the layout is made for; measured: it serves 2 to 320 alike


class _Kept:
    """A layout of weights. Copies of a model share it, for it never changes and its memory cannot be looked into."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __deepcopy__(self, memo: Any) -> _Kept:
        return self


class _Laid(nn.Linear):
    """A linear layer with a second form of its weights."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.train(linear.training)
        with torch.no_grad():
            self._kept = _Kept(self.lay(linear))

    def lay(self, linear: nn.Linear) -> Any:
        """The second form."""
        raise NotImplementedError

    def multiply(self, input: Tensor) -> Tensor:
        """[..., out] from [..., in], with the second form."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        if torch.is_grad_enabled() or input.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        return self.multiply(input)


class PackedLinear(_Laid):
    """x Wᵀ + b with W in the layout of oneDNN's kernels."""

    def lay(self, linear: nn.Linear) -> Any:
        return torch.ops.mkldnn._reorder_linear_weight(linear.weight, ROWS)

    def multiply(self, input: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(input, self._kept.weights, self.bias, "none", [], "")  # type: ignore[no-any-return]


class RoundedLinear(_Laid):
    """x Wᵀ + b with each row of W as 8-bit integers and a scale, and each row of x rounded in the same way at every call.

    The sums of products of integers are exact. What is lost is the rounding: at most half a 127th of the largest number of a row.
    """

    def lay(self, linear: nn.Linear) -> Any:
        scales = linear.weight.abs().amax(1).clamp(min=LEAST) / 127  # [out]
        return (linear.weight / scales[:, None]).round().to(torch.int8), scales

    def multiply(self, input: Tensor) -> Tensor:
        if not input.numel():
            return super(_Laid, self).forward(input)
        rows = input.reshape(-1, self.in_features)
        scales = rows.abs().amax(1, keepdim=True).clamp_(min=LEAST) / 127
        whole = (rows / scales).round_().to(torch.int8)
        weights, of_weights = self._kept.weights
        made = rows.new_empty(len(rows), self.out_features)
        step = max(1, CACHED // len(rows))
        for start in range(0, self.out_features, step):  # so that integers do not leave the cache before they are numbers again
            part = slice(start, start + step)
            sums = torch._int_mm(whole, weights[part].t())  # [R, step] int32
            made[:, part] = sums * scales * of_weights[part]
        if self.bias is not None:
            made += self.bias
        return made.view(*input.shape[:-1], -1)


def pack(model: nn.Module) -> nn.Module:
    """`model` itself, its wide linear layers laid out for prediction; those on a CPU, in single precision."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return model
    return _replaced(model, PackedLinear, lambda linear: linear.out_features >= WIDE)


def round_weights(model: nn.Module) -> nn.Module:
    """`model` itself, the weights of its linear layers rounded to 8 bits; those on a CPU, in single precision.

    Recurrent cells, embeddings and what else is no linear layer stay as they are.
    """
    return _replaced(model, RoundedLinear, lambda linear: True)


def _replaced(model: nn.Module, kind: Callable[[nn.Linear], nn.Linear], chosen: Callable[[nn.Linear], bool]) -> nn.Module:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and child.weight.is_cpu and child.weight.dtype == torch.float32 and chosen(child):
                setattr(module, name, kind(child))
    return model
