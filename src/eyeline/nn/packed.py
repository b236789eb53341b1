"""Layers for prediction on a CPU: the same products from weights that were laid out, or rounded, once. Knows layers only.

What is learnt stays where it is, under its name and shared with whom it was shared: a packed layer has a second form of the
weights beside it, which follows no later change. With gradients it computes as a plain layer does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.nn.cells import Cell, by_hand
from eyeline.nn.recurrent import Stack

WIDE = 1024  # outputs from which on oneDNN's own layout pays: five times as fast for 5 rows, half as fast again for 320
CACHED = 2**19  # integers of 4 bytes that are made at a time
LEAST = 1e-12  # rows of zeros have a scale, too
UNITS = 128  # of a recurrent layer, from which on its step pays: of an LSTM of 512 a quarter of the time for 5 rows, 0.85 for 320
MANY = 2**14  # numbers of a product of bytes, from which on scaling them where they are summed pays
ROWS = 16  # the number of rows that the layout is made for; measured: it serves 2 to 320 alike


class _Kept:
    """A layout of weights. Copies of a model share it, for it never changes and its memory cannot be looked into."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __deepcopy__(self, memo: Any) -> _Kept:
        return self


def _laid_out(weights: Tensor) -> Any:
    """[out, in] in the layout of oneDNN's kernels."""
    return torch.ops.mkldnn._reorder_linear_weight(weights.contiguous(), ROWS)


def _product(input: Tensor, weights: Any, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(input, weights, bias, "none", [], "")  # type: ignore[no-any-return]


def _as_learnt(input: Tensor) -> bool:
    """Whether the plain layer has to compute."""
    return torch.is_grad_enabled() or input.dtype != torch.float32 or torch.is_autocast_enabled("cpu")


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
        return super().forward(input) if _as_learnt(input) else self.multiply(input)


def products_of_bytes() -> bool:
    """Whether the processor sums products of bytes in 32 bits: without VNNI, oneDNN's kernels cut sums of two off at 16."""
    return bool(getattr(torch.cpu, "_is_vnni_supported", lambda: False)())  # PyTorch 2.4 calls it otherwise


class PackedLinear(_Laid):
    """x Wᵀ + b with W in the layout of oneDNN's kernels."""

    def lay(self, linear: nn.Linear) -> Any:
        return _laid_out(linear.weight)

    def multiply(self, input: Tensor) -> Tensor:
        return _product(input, self._kept.weights, self.bias)


@dataclass(frozen=True)
class _Rounded:
    """A matrix as 8-bit integers, a scale for each of its rows."""

    whole: Tensor  # [out, in] int8
    scales: Tensor  # [out]
    laid: Any = None  # `whole` in the layout of oneDNN's kernels, where they are exact
    origin: Tensor | None = None  # [out] zeros

    @classmethod
    def of(cls, weights: Tensor) -> _Rounded:
        scales = weights.abs().amax(1).clamp(min=LEAST) / 127
        whole = (weights / scales[:, None]).round().to(torch.int8)
        if not products_of_bytes():
            return cls(whole, scales)
        origin = torch.zeros(len(whole), dtype=torch.int32)
        return cls(whole, scales, torch.ops.onednn.qlinear_prepack(whole, [ROWS, whole.shape[1]]), origin)

    def products(self, rows: Tensor) -> Tensor:
        """[R, out] of `rows` [R, in] int8, times the scales of the matrix."""
        if self.laid is not None and len(rows) * len(self.scales) >= MANY:
            moved = rows.view(torch.uint8).bitwise_xor(128)  # 128 more, as unsigned numbers: what the kernels are made for
            how: Any = (1.0, 0, torch.float32, "none", [], "")
            return torch.ops.onednn.qlinear_pointwise(moved, 1.0, 128, self.laid, self.scales, self.origin, None, *how)  # type: ignore[no-any-return]
        made = self.scales.new_empty(len(rows), len(self.scales))
        step = max(1, CACHED // len(rows))
        for start in range(0, len(self.scales), step):  # so that integers do not leave the cache before they are numbers again
            part = slice(start, start + step)
            made[:, part] = torch._int_mm(rows, self.whole[part].t()) * self.scales[part]
        return made


class RoundedLinear(_Laid):
    """x Wᵀ + b with each row of W as 8-bit integers and a scale, and each row of x rounded in the same way at every call.

    The sums of products of integers are exact. What is lost is the rounding: at most half a 127th of the largest number of a row.
    """

    def lay(self, linear: nn.Linear) -> Any:
        return _Rounded.of(linear.weight)

    def multiply(self, input: Tensor) -> Tensor:
        if not input.numel():
            return super(_Laid, self).forward(input)
        rows = input.reshape(-1, self.in_features)
        scales = rows.abs().amax(1, keepdim=True).clamp_(min=LEAST) / 127
        made = self._kept.weights.products((rows / scales).round_().to(torch.int8))
        made = made.mul_(scales) if self.bias is None else torch.addcmul(self.bias, made, scales, out=made)
        return made.view(*input.shape[:-1], -1)


@dataclass(frozen=True)
class _Step:
    """One position of one recurrent layer, whose input and state fill the same columns of its gates."""

    cell: Cell
    weights: Any  # laid out: of the input, beside it of the state
    bias: Tensor

    @classmethod
    def of(cls, layer: nn.RNNBase) -> _Step:
        cell = by_hand(layer)
        assert cell is not None
        weights = cell.arrange(layer)
        return cls(cell, _laid_out(torch.cat([weights.inward, weights.recurrent], 1)), weights.bias)

    def take(self, input: Tensor, before: Tensor, after: Tensor) -> None:
        """Fills the state `after` [P, R, D] from the one `before` and `input` [R, E]."""
        self.cell.forward(_product(torch.cat([input, before[0]], 1), self.weights, self.bias), before, after)


class PackedStack(Stack):
    """A stack that goes on by one position from weights that were laid out; by more, as a plain one does.

    PyTorch's own LSTM lays out its weights at every call, which for few rows takes longer than the product. Its GRU does not,
    and stays as it is: input and state fill only two of its four blocks together.
    """

    def __init__(self, stack: Stack) -> None:
        nn.Module.__init__(self)
        self.layers, self.dropout = stack.layers, stack.dropout
        self.size, self.depth, self.planes = stack.size, stack.depth, stack.planes
        self.train(stack.training)
        with torch.no_grad():
            self._kept = _Kept([_Step.of(layer) for layer in self.layers])  # type: ignore[arg-type]

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        plainly = inputs.shape[1] != 1 or not inputs.numel() or _as_learnt(inputs)
        if plainly or any(by_hand(layer) is None for layer in self.layers):  # type: ignore[arg-type]  # hooks, put there since
            return super().forward(inputs, state)
        said, after = inputs[:, 0], state.new_empty(self.depth, self.planes, len(state), self.size)
        for number, step in enumerate(self._kept.weights):
            step.take(self.dropout(said) if number else said, state[:, number].transpose(0, 1), after[number])
            said = after[number, 0]
        return said[:, None], after.permute(2, 0, 1, 3)


def pack(model: nn.Module) -> nn.Module:
    """`model` itself, wide linear layers and recurrent stacks laid out for prediction; those on a CPU, in single precision."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return model
    return _replaced(_with_stacks(model), PackedLinear, lambda linear: linear.out_features >= WIDE)


def round_weights(model: nn.Module) -> nn.Module:
    """`model` itself, the weights of its linear layers rounded to 8 bits; those on a CPU, in single precision.

    Recurrent cells, embeddings and what else is no linear layer keep their numbers.
    """
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        _with_stacks(model)
    return _replaced(model, RoundedLinear, lambda linear: True)


def _with_stacks(model: nn.Module) -> nn.Module:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is Stack and _pays(child) and all(map(_on_cpu, child.parameters())):
                setattr(module, name, PackedStack(child))
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
            if type(child) is nn.Linear and _on_cpu(child.weight) and chosen(child):
                setattr(module, name, kind(child))
    return model
