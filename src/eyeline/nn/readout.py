"""What stands between a decoder's vectors and the output layer. Knows tensors only."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Maxout(nn.Module):
    """max over pairs of U [a; b; …]: the deep output of Bahdanau et al. 2015, A.2.2, and Cho et al. 2014, appendix A.2."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, 2 * size)
        self.size = size

    def forward(self, *vectors: Tensor) -> Tensor:
        """[..., size] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return self.linear(torch.cat(vectors, -1)).unflatten(-1, (self.size, 2)).amax(-1)  # type: ignore[no-any-return]


class Attentional(nn.Module):
    """tanh(W [c; h]): the attentional vector of Luong et al. 2015, equation 5."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, size, bias=False)
        self.size = size

    def forward(self, *vectors: Tensor) -> Tensor:
        """[..., size] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return torch.tanh(self.linear(torch.cat(vectors, -1)))


class Affine(nn.Module):
    """V [a; b; …] + b, without a squashing function: the inner layer of See et al. 2017, equation 4."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, size)
        self.size = size

    def forward(self, *vectors: Tensor) -> Tensor:
        """[..., size] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return self.linear(torch.cat(vectors, -1))  # type: ignore[no-any-return]


class Gate(nn.Module):
    """The logit of generating rather than copying, p_gen = σ(w · [a; b; …] + b): See et al. 2017, equation 8."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, 1)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, *vectors: Tensor) -> Tensor:
        """[...] from vectors [..., Dᵢ] whose widths sum to input_size."""
        return self.linear(torch.cat(vectors, -1)).squeeze(-1)  # type: ignore[no-any-return]
