"""What stands around attention in a layer: feed-forward parts, and residual connections with their norms. Knows vectors only."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from eyeline.nn.dropout import Dropout
from eyeline.nn.multihead import glorot
from eyeline.products import Linear


class FeedForward(nn.Module):
    """W₂ f(W₁ x + b₁) + b₂ (Vaswani et al. 2017, equation 2, where f is ReLU)."""

    def __init__(self, size: int, inner_size: int, activation: nn.Module) -> None:
        super().__init__()
        self.inward, self.activation = glorot(Linear(size, inner_size)), activation
        self.outward = glorot(Linear(inner_size, size))

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., D] from [..., D]."""
        return self.outward(self.activation(self.inward(inputs)))  # type: ignore[no-any-return]


class SwiGLU(nn.Module):
    """W₂ (swish(W x) ∘ V x), with biases (Shazeer 2020, equation 6, without them). W and V are one product.

    Three matrices where `FeedForward` has two: for as many weights, give it two thirds of the inner width.
    """

    def __init__(self, size: int, inner_size: int) -> None:
        super().__init__()
        self.inward = glorot(Linear(size, 2 * inner_size), blocks=2)
        self.outward = glorot(Linear(inner_size, size))

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., D] from [..., D]."""
        gate, value = self.inward(inputs).chunk(2, -1)
        return self.outward(nn.functional.silu(gate) * value)  # type: ignore[no-any-return]


class Residual(nn.Module, ABC):
    """A part's way in and out of the stream of vectors: `leave(x, part(enter(x)))`.

    Args:
        dropout: on what the part adds.
    """

    def __init__(self, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(size), Dropout(dropout)

    @abstractmethod
    def enter(self, stream: Tensor) -> Tensor:
        """What the part reads."""

    @abstractmethod
    def leave(self, stream: Tensor, added: Tensor) -> Tensor:
        """The stream after the part."""


class PreNorm(Residual):
    """x + part(norm(x)) (Xiong et al. 2020): gradients reach the bottom undiminished, and no warm-up is needed."""

    def enter(self, stream: Tensor) -> Tensor:
        return self.norm(stream)  # type: ignore[no-any-return]

    def leave(self, stream: Tensor, added: Tensor) -> Tensor:
        return stream + self.dropout(added)  # type: ignore[no-any-return]


class PostNorm(Residual):
    """norm(x + part(x)) (Vaswani et al. 2017, section 3.1)."""

    def enter(self, stream: Tensor) -> Tensor:
        return stream

    def leave(self, stream: Tensor, added: Tensor) -> Tensor:
        return self.norm(stream + self.dropout(added))  # type: ignore[no-any-return]
