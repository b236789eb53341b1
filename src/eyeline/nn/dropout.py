"""Dropout whose chance comes a byte an element: on a CPU a ninth of the time that PyTorch's own takes. Knows tensors only.

PyTorch's draws a double an element. Here whole words are drawn, by the same generator, so that a seed and a checkpoint decide
about masks as about all else. A byte knows 256 rates: p is taken to the nearest of them, 0.1 as 26/256, and no p above zero as
none; what is kept is divided by the very share that is. The arithmetic stays with whole numbers of a byte, for which PyTorch has
vector instructions, as it has not for comparisons.

On other devices PyTorch's own is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

LEVELS = 256


def kept(shape: Sequence[int], p: float) -> tuple[Tensor, float]:
    """What dropout keeps, 1 or 0 in a byte each, on the CPU; and what the kept is multiplied by."""
    dropped = min(LEVELS - 1, max(1, round(p * LEVELS)))
    count = int(torch.Size(shape).numel())
    words = torch.empty(-(-count // 8), dtype=torch.long).random_(-(2**63), None)  # every one of the 64 bits
    last = dropped - 1 - LEVELS // 2  # of the numbers from -128, the last that is dropped
    mask = words.view(torch.int8)[:count].view(*shape).clamp_(last, last + 1).sub_(last)
    return mask, LEVELS / (LEVELS - dropped)


class Dropout(nn.Module):
    """Zeroes each number with probability `p` in training, and divides the others by the share that is kept."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, inputs: Tensor) -> Tensor:
        """[…] from [...]."""
        if not self.training or self.p == 0.0:
            return inputs
        if not inputs.is_cpu:
            return dropout(inputs, self.p)
        return _Dropped.apply(inputs, *kept(inputs.shape, self.p))  # type: ignore[no-untyped-call, no-any-return]

    def noise(self, shape: Sequence[int], like: Tensor) -> Tensor | None:
        """What `forward` would multiply numbers of this shape by, of the type and device of `like`; None for nothing."""
        if not self.training or self.p == 0.0:
            return None
        if not like.is_cpu:
            return dropout(like.new_ones(shape), self.p)
        mask, scale = kept(shape, self.p)
        return mask.to(like.dtype).mul_(scale)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return inputs.mul(mask).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return gradient.mul(mask).mul_(ctx.scale), None, None
