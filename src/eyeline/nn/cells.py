"""PyTorch's recurrent cells with their derivatives written by hand, one step at a time. Knows gates; not layers, not time.

What a step computes from the products is in two places: `gates` [B, G·D], where the products stand before it and what they were
bent into after it, and the state [P, B, D] (P planes: h, and an LSTM's c); B may be several dimensions. The product of the input
fills the columns `inward` of the gates, that of the state is added to the columns `recurrent`. On a CPU PyTorch's tanh takes six
times as long as its sigmoid: here tanh(x) = 2 σ(2x) - 1, and where x is a product, the 2 is in the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn


def bend(numbers: Tensor, out: Tensor | None = None) -> Tensor:
    """tanh(x), exact to rounding beside 1: what is smaller than that is not told from 0."""
    return torch.mul(numbers, 2.0, out=out).sigmoid_().mul_(2.0).sub_(1.0)


@dataclass(frozen=True)
class Weights:
    """A layer's weights, its blocks in the order that the cell wants them in."""

    inward: Tensor  # [I·D, …] of the input
    recurrent: Tensor  # [R·D, D] of the state
    bias: Tensor  # [I·D]
    rest: Tensor | None  # the bias of the columns that the input does not reach


def _of(layer: nn.RNNBase, suffix: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """PyTorch's weights of input and state, and the two biases."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return tuple(layer.get_parameter(name + suffix) for name in names)  # type: ignore[return-value]


class Cell(ABC):
    """One kind of cell."""

    blocks: int  # G
    planes: int  # P

    @abstractmethod
    def arrange(self, layer: nn.RNNBase, suffix: str = "") -> Weights:
        """The weights of a layer of this kind; those of the other direction with the suffix "_reverse"."""

    def inward(self, size: int) -> slice:
        """The columns that the input's product fills, in a cell of width `size`."""
        return slice(0, self.blocks * size)

    def recurrent(self, size: int) -> slice:
        """The columns that the state's product is added to."""
        return slice(0, self.blocks * size)

    @abstractmethod
    def forward(self, gates: Tensor, before: Tensor, after: Tensor) -> None:
        """Bends `gates` in place and fills the state `after` [P, B, D] from the one `before`."""

    @abstractmethod
    def backward(self, gates: Tensor, before: Tensor, after: Tensor, slope: Tensor, products: Tensor) -> None:
        """Fills `products` [B, G·D] with the gradient of the products, and changes `slope` [P, B, D] from the gradient of the
        state `after` to what of that of `before` does not come by the products."""


class Elman(Cell):
    """h = tanh(W x + U h₋ + b)."""

    blocks, planes = 1, 1

    def arrange(self, layer: nn.RNNBase, suffix: str = "") -> Weights:
        of_input, of_state, inner, outer = _of(layer, suffix)
        return Weights(2 * of_input, 2 * of_state, 2 * (inner + outer), None)

    def forward(self, gates: Tensor, before: Tensor, after: Tensor) -> None:
        torch.mul(gates.sigmoid_(), 2.0, out=after[0]).sub_(1.0)

    def backward(self, gates: Tensor, before: Tensor, after: Tensor, slope: Tensor, products: Tensor) -> None:
        torch.addcmul(gates, gates, gates, value=-1, out=products).mul_(slope[0]).mul_(2.0)  # 2 σ' of what has the 2 in it
        slope.zero_()


class LongShortTerm(Cell):
    """c = f ∘ c₋ + i ∘ g and h = o ∘ tanh(c), with i, f, o = σ(…) and g = tanh(…). Blocks: i, f, o, g."""

    blocks, planes = 4, 2

    def arrange(self, layer: nn.RNNBase, suffix: str = "") -> Weights:
        of_input, of_state, inner, outer = _of(layer, suffix)
        return Weights(self._ordered(of_input), self._ordered(of_state), self._ordered(inner + outer), None)

    @staticmethod
    def _ordered(stacked: Tensor) -> Tensor:
        """PyTorch has them as i, f, g, o."""
        i, f, g, o = stacked.chunk(4)
        return torch.cat([i, f, o, 2 * g])

    def forward(self, gates: Tensor, before: Tensor, after: Tensor) -> None:
        i, f, o, g = gates.sigmoid_().chunk(4, -1)
        g.mul_(2.0).sub_(1.0)
        c = torch.mul(f, before[1], out=after[1]).addcmul_(i, g)
        bend(c, out=after[0]).mul_(o)

    def backward(self, gates: Tensor, before: Tensor, after: Tensor, slope: Tensor, products: Tensor) -> None:
        i, f, o, g = gates.chunk(4, -1)
        of_i, of_f, of_o, of_g = products.chunk(4, -1)
        bent, of_h, of_c = bend(after[1]), slope[0], slope[1]
        torch.mul(of_h, bent, out=of_o)
        of_c.addcmul_(of_h.mul_(o), bent.mul_(bent).neg_().add_(1.0))
        torch.mul(of_c, g, out=of_i)
        torch.mul(of_c, before[1], out=of_f)
        torch.mul(of_c, i, out=of_g).mul_(g.square().neg_().add_(1.0)).mul_(0.5)
        squashed = gates[..., : -g.shape[-1]]
        products[..., : -g.shape[-1]].mul_(torch.addcmul(squashed, squashed, squashed, value=-1))
        of_c.mul_(f)
        of_h.zero_()


class Gated(Cell):
    """h = n + z ∘ (h₋ - n) with n = tanh(W_n x + b + r ∘ (U_n h₋ + c)). Blocks: W_n x + b and then n, r, z, U_n h₋ + c."""

    blocks, planes = 4, 1

    def arrange(self, layer: nn.RNNBase, suffix: str = "") -> Weights:
        """PyTorch has them as r, z, n."""
        of_input, of_state, inner, outer = (each.chunk(3) for each in _of(layer, suffix))
        return Weights(
            torch.cat([2 * of_input[2], *of_input[:2]]),
            torch.cat([*of_state[:2], 2 * of_state[2]]),
            torch.cat([2 * inner[2], inner[0] + outer[0], inner[1] + outer[1]]),
            2 * outer[2],
        )

    def inward(self, size: int) -> slice:
        return slice(0, 3 * size)

    def recurrent(self, size: int) -> slice:
        return slice(size, 4 * size)

    def forward(self, gates: Tensor, before: Tensor, after: Tensor) -> None:
        n, r, z, product = gates.chunk(4, -1)
        gates[..., n.shape[-1] : 3 * n.shape[-1]].sigmoid_()
        n.addcmul_(r, product).sigmoid_().mul_(2.0).sub_(1.0)
        torch.sub(before[0], n, out=after[0]).mul_(z).add_(n)

    def backward(self, gates: Tensor, before: Tensor, after: Tensor, slope: Tensor, products: Tensor) -> None:
        n, r, z, product = gates.chunk(4, -1)
        of_n, of_r, of_z, of_product = products.chunk(4, -1)
        (of_h,) = slope
        torch.sub(before[0], n, out=of_z).mul_(of_h)
        kept = of_h * z
        torch.sub(of_h, kept, out=of_n).mul_(n.square().neg_().add_(1.0)).mul_(0.5)
        torch.mul(of_n, product, out=of_r)
        torch.mul(of_n, r, out=of_product)
        squashed, both = gates[..., n.shape[-1] : 3 * n.shape[-1]], products[..., n.shape[-1] : 3 * n.shape[-1]]
        both.mul_(torch.addcmul(squashed, squashed, squashed, value=-1))
        of_h.copy_(kept)


def plain(numbers: Tensor) -> bool:
    """Whether what is written here may run: types are not mixed, no less than single precision, and nobody traces it."""
    mixed = torch.is_autocast_enabled(numbers.device.type) or torch.finfo(numbers.dtype).bits < 32
    return not mixed and not torch.compiler.is_compiling()


def by_hand(layer: nn.RNNBase) -> Cell | None:
    """The cell of a layer of PyTorch's own; None for what is not written here, whatever is derived from these included.

    And for a layer with hooks: they run when it is called as the module that it is.
    """
    if layer.num_layers != 1 or not layer.bias or layer.proj_size or getattr(layer, "nonlinearity", "tanh") != "tanh":
        return None
    if layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks:
        return None
    cells: dict[type, type[Cell]] = {nn.RNN: Elman, nn.LSTM: LongShortTerm, nn.GRU: Gated}
    kind = cells.get(type(layer))
    return None if kind is None else kind()
