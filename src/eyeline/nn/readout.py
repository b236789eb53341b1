"""What stands between a decoder's vectors and the output layer. Knows tensors only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from eyeline.products import Linear, linear


class Maxout(nn.Module):
    """max over pairs of U [a; b; …]: the deep output of Bahdanau et al. 2015, A.2.2, and Cho et al. 2014, appendix A.2.

    The pairs are neighbours in U. They are computed as two halves, which are compared without strides.
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.linear = Linear(input_size, 2 * size)
        self.size = size

    def forward(self, *vectors: Tensor) -> Tensor:
        """[..., size] from vectors [..., Dᵢ] whose widths sum to input_size."""
        halves = linear(torch.cat(vectors, -1), *self.halves())
        return _LargerHalf.apply(halves)  # type: ignore[no-untyped-call, no-any-return]

    def halves(self) -> tuple[Tensor, Tensor]:
        """U [2·size, input_size] and its bias, the first of each pair before all second ones."""
        weight = self.linear.weight.view(self.size, 2, -1).transpose(0, 1).reshape(2 * self.size, -1)
        return weight, self.linear.bias.view(self.size, 2).t().reshape(-1)


class _LargerHalf(torch.autograd.Function):
    """[..., D] the larger of x[..., i] and x[..., D + i]; of equal ones the second has the gradient."""

    @staticmethod
    def forward(ctx: Any, halves: Tensor) -> Tensor:
        ctx.save_for_backward(halves)
        return torch.maximum(*halves.chunk(2, -1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        first, second = ctx.saved_tensors[0].chunk(2, -1)
        of_first = torch.ops.aten.threshold_backward(gradient, first - second, 0.0)  # where the difference is positive
        return torch.cat([of_first, gradient - of_first], -1)


class Attentional(nn.Module):
    """tanh(W [c; h]): the attentional vector of Luong et al. 2015, equation 5."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.linear = Linear(input_size, size, bias=False)
        nn.init.xavier_uniform_(self.linear.weight)
        self.size = size

    def forward(self, *vectors: Tensor) -> Tensor:
        """[..., size] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return torch.tanh(self.linear(torch.cat(vectors, -1)))


class Affine(nn.Module):
    """V [a; b; …] + b, without a squashing function: the inner layer of See et al. 2017, equation 4."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.linear = Linear(input_size, size)
        self.size = size

    def forward(self, *vectors: Tensor) -> Tensor:
        """[..., size] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return self.linear(torch.cat(vectors, -1))  # type: ignore[no-any-return]


class Gate(nn.Module):
    """The logit of generating rather than copying, p_gen = σ(w · [a; b; …] + b): See et al. 2017, equation 8."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.linear = Linear(input_size, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, *vectors: Tensor) -> Tensor:
        """[...] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return self.linear(torch.cat(vectors, -1)).squeeze(-1)  # type: ignore[no-any-return]
