"""Layers for prediction on a CPU: the same products from weights that were laid out, or rounded, once. Knows layers only.

What is learnt stays where it is, under its name and shared with whom it was shared: a packed layer has a second form of the
weights beside it, which follows no later change. With gradients it computes as a plain layer does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from eyeline.nn.cells import Cell, by_hand
from eyeline.nn.recurrent import Stack
from eyeline.products import ROWS, Layouts, transposed

CACHED = 2**19  # integers of 4 bytes that are made at a time
LEAST = 1e-12  # rows of zeros have a scale, too
MANY = 2**14  # numbers of a product of bytes, from which on oneDNN's pays


class Kept:
    """A layout of weights. Copies of a model share it, for it never changes and its memory cannot be looked into."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __deepcopy__(self, memo: Any) -> Kept:
        return self


def as_learnt(input: Tensor) -> bool:
    """Whether the plain layer has to compute."""
    return torch.is_grad_enabled() or input.dtype != torch.float32 or torch.is_autocast_enabled("cpu")


class _Laid(nn.Linear):
    """A linear layer with a second form of its weights."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.train(linear.training)
        with torch.no_grad():
            self._kept = Kept(self.lay(linear))

    def lay(self, linear: nn.Linear) -> Any:
        """The second form."""
        raise NotImplementedError

    def multiply(self, input: Tensor) -> Tensor:
        """[..., out] from [..., in], with the second form."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) if as_learnt(input) else self.multiply(input)


def products_of_bytes() -> bool:
    """Whether the processor sums products of bytes in 32 bits. Without VNNI kernels sum two in 16, which products of 8 by 7 bits
    keep within; and its own product of integers takes ten times as long as one of floats."""
    return bool(getattr(torch.cpu, "_is_vnni_supported", lambda: False)())  # PyTorch 2.4 calls it otherwise


def fbgemm() -> bool:
    """Whether PyTorch has FBGEMM's products of bytes."""
    wanted = "linear_prepack", "linear_with_input_q_dq_qweight_dq_output_fp32"
    return "fbgemm" in torch.backends.quantized.supported_engines and all(hasattr(torch.ops.quantized, name) for name in wanted)


class PackedLinear(_Laid):
    """x Wᵀ + b with W in the layouts that are multiplied fastest."""

    def lay(self, linear: nn.Linear) -> Any:
        return Layouts(linear.weight)

    def multiply(self, input: Tensor) -> Tensor:
        return self._kept.weights.product(input, self.bias)  # type: ignore[no-any-return]


class WholeProducts(Protocol):
    """A matrix [out, in] as 8-bit integers, a scale for each of its rows."""

    def of(self, rows: Tensor) -> Tensor:
        """[R, out] of `rows` [R, in], all numbers of which are between -1 and 1 and are rounded to a share of that."""
        ...


class OfBytes:
    """Products of 8 by 8 bits, in 127ths, by oneDNN."""

    def __init__(self, whole: Tensor, scales: Tensor) -> None:
        self.whole, self.scales = whole, scales
        self.laid = torch.ops.onednn.qlinear_prepack(whole, [ROWS, whole.shape[1]])
        self.origin = torch.zeros(len(whole), dtype=torch.int32)

    def of(self, rows: Tensor) -> Tensor:
        rows = (rows * 127).round_().to(torch.int8)
        if len(rows) * len(self.scales) >= MANY:
            moved = rows.view(torch.uint8) + 128  # unsigned numbers, what the kernels are made for
            how: Any = (1.0, 0, torch.float32, "none", [], "")
            given = moved, 1 / 127, 128, self.laid, self.scales, self.origin, None
            return torch.ops.onednn.qlinear_pointwise(*given, *how)  # type: ignore[no-any-return]
        made = self.scales.new_empty(len(rows), len(self.scales))
        step = max(1, CACHED // len(rows))
        for start in range(0, len(self.scales), step):  # so that integers do not leave the cache before they are numbers again
            part = slice(start, start + step)
            made[:, part] = torch._int_mm(rows, self.whole[part].t()) * (self.scales[part] / 127)
        return made


class OfFewerBits:
    """Products of 8 by 7 bits, in 63rds, by FBGEMM. Without VNNI it sums two of them in 16 bits, which hold no more.

    PyTorch means to remove the tensors that weights are handed over in; `fbgemm` says whether it has.
    """

    def __init__(self, whole: Tensor, scales: Tensor) -> None:
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of that removal
                weights = torch._make_per_channel_quantized_tensor(
                    whole, scales.double(), torch.zeros(len(whole), dtype=torch.long), 0
                )
            self.packed = torch.ops.quantized.linear_prepack(weights, None)
        finally:
            torch.backends.quantized.engine = before

    def of(self, rows: Tensor) -> Tensor:
        return torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(rows, 1 / 63, 64, self.packed)  # type: ignore[no-any-return]


class AsNumbers:
    """The same integers, in 63rds, in single precision, which holds their sums exactly up to 2,097 of them."""

    def __init__(self, whole: Tensor, scales: Tensor) -> None:
        self.whole, self.scales = transposed(whole.float()), scales / 63

    def of(self, rows: Tensor) -> Tensor:
        return nn.functional.linear((rows * 63).round_(), self.whole).mul_(self.scales)


def _rounded(weights: Tensor) -> WholeProducts:
    scales = weights.abs().amax(1).clamp(min=LEAST) / 127
    kind = OfBytes if products_of_bytes() else OfFewerBits if fbgemm() else AsNumbers
    return kind((weights / scales[:, None]).round().to(torch.int8), scales)


class RoundedLinear(_Laid):
    """x Wᵀ + b with each row of W as 8-bit integers and a scale, and each row of x rounded in the same way at every call.

    The sums of products of integers are exact. What is lost is the rounding: at most half a 127th of the largest number of a row,
    and of a row of x half a 63rd where the processor has no VNNI.
    """

    def lay(self, linear: nn.Linear) -> Any:
        return _rounded(linear.weight)

    def multiply(self, input: Tensor) -> Tensor:
        if not input.numel():
            return super(_Laid, self).forward(input)
        rows = input.reshape(-1, self.in_features)
        scales = torch.linalg.vector_norm(rows, torch.inf, 1, keepdim=True).clamp_(min=LEAST)
        made = self._kept.weights.of(rows / scales)
        made = made.mul_(scales) if self.bias is None else torch.addcmul(self.bias, made, scales, out=made)
        return made.view(*input.shape[:-1], -1)


@dataclass(frozen=True)
class _Step:
    """One position of one recurrent layer, whose input and state fill the same columns of its gates."""

    cell: Cell
    weights: Layouts  # of the input, beside it of the state
    bias: Tensor

    @classmethod
    def of(cls, layer: nn.RNNBase) -> _Step:
        cell = by_hand(layer)
        assert cell is not None
        weights = cell.arrange(layer)
        return cls(cell, Layouts(torch.cat([weights.inward, weights.recurrent], 1)), weights.bias)

    def products(self, input: Tensor, before: Tensor) -> Tensor:
        """[R, G·D] from `input` [R, E] and the state `before` [P, R, D]."""
        return self.weights.product(torch.cat([input, before[0]], 1), self.bias)


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
            self._kept = Kept([_Step.of(layer) for layer in self.layers])  # type: ignore[arg-type]

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        plainly = inputs.shape[1] != 1 or not inputs.numel() or as_learnt(inputs)
        if plainly or any(by_hand(layer) is None for layer in self.layers):  # type: ignore[arg-type]  # hooks, put there since
            return super().forward(inputs, state)
        first: _Step = self._kept.weights[0]
        said, after = self.onward(first.products(inputs[:, 0], state[:, 0].transpose(0, 1)), state)
        return said[:, None], after

    def onward(self, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The top layer's output [R, D] and the state after it [R, L, P, D], from the products of the first layer [R, G·D]."""
        after = state.new_empty(self.depth, self.planes, len(state), self.size)
        for number, step in enumerate(self._kept.weights):
            before = state[:, number].transpose(0, 1)
            if number:
                gates = step.products(self.dropout(after[number - 1, 0]), before)
            step.cell.forward(gates, before, after[number])
        return after[-1, 0], after.permute(2, 0, 1, 3)
