"""One who moves attention as far as it goes while predictions stay: by gradients, on a model that is not changed.

Knows models and tampering; not what it proves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from eyeline.data.corpus import Batch
from eyeline.lab.bench import Bench
from eyeline.lab.tampering import predictions, read, tampered, variation
from eyeline.ladder import Seq2Seq

PULL = 20.0  # how much an adversary minds a prediction that moved further than it may
LARGEST = float(np.log(2))  # the Jensen-Shannon divergence of distributions that share nothing, in nats


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon divergence along the last dimension in nats, 0 to ln 2."""
    middle = 0.5 * (p + q)
    entropy: Tensor = torch.special.entr(middle) - 0.5 * torch.special.entr(p) - 0.5 * torch.special.entr(q)
    return entropy.sum(-1).clamp(min=0.0)


class Adversary:
    """Weights of its own for every look of one batch, learnt by gradients, and how far they are from the model's."""

    def __init__(self, batch: Batch, generator: torch.Generator) -> None:
        self.batch, self.generator = batch, generator
        self.numbers: dict[tuple[int, int], Tensor] = {}
        self.apart: list[Tensor] = []  # of each look in turn, [N, T]

    def __call__(self, weights: Tensor, hidden: Tensor, place: int) -> Tensor:
        many = weights.dim() == 4  # heads
        key = (1, place) if many else (0, 0)
        if key not in self.numbers:
            shape = [*weights.shape[:-2], self.batch.inputs.shape[1], weights.shape[-1]]
            drawn = torch.randn(shape, generator=self.generator).to(weights.device)
            self.numbers[key] = drawn.requires_grad_()
        own = self.numbers[key] if many else self.numbers[key][:, place : place + weights.shape[1]]
        shifted = own.masked_fill(hidden, torch.finfo(own.dtype).min).softmax(-1).masked_fill(hidden, 0.0)
        apart = divergence(weights.detach(), shifted)
        self.apart.append(apart.mean(1) if many else apart)
        return shifted

    def distance(self) -> Tensor:
        """[N, T] since this was last asked, the mean over heads and layers."""
        length = self.batch.inputs.shape[1]
        whole = [apart for apart in self.apart if apart.shape[1] == length]
        looks = [apart for apart in self.apart if apart.shape[1] != length]
        self.apart = []
        if looks:
            whole.append(torch.cat(looks, 1))
        return torch.stack(whole).mean(0)


def attack(
    model: Seq2Seq, batch: Batch, bench: Bench, allowed: float, attacks: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What an adversary achieves who moves all attention as far as he can while predictions stay where they are.

    After Jain & Wallace 2019, equation 3, all looks of an output at once: by gradients, with a price on what moves too far.

    Args:
        allowed: how far a prediction may move, in total variation, before it costs.
        attacks: updates.

    Returns:
        How far the prediction moved, and how far attention did, at each real position.
    """
    with torch.no_grad():
        plain = predictions(model, *read(batch))
    adversary = Adversary(batch, bench.generator(7))
    other = tampered(model, adversary)
    for parameter in other.parameters():
        parameter.requires_grad_(False)
    real = ~batch.target_mask
    with torch.no_grad():
        predictions(other, *read(batch))  # draws what it begins with
    adversary.distance()
    optimizer = torch.optim.Adam(adversary.numbers.values(), lr=0.5)
    for _ in bench.each(range(attacks), "attacks"):
        moved = variation(plain, predictions(other, *read(batch)))
        apart = adversary.distance()
        price = (PULL * (moved - allowed).clamp(min=0) - apart)[real].mean()
        optimizer.zero_grad()
        with torch.backends.cudnn.flags(enabled=False):  # which derives recurrent layers in training alone
            price.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        moved = variation(plain, predictions(other, *read(batch)))
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return moved[real].cpu().numpy(), adversary.distance().detach()[real].cpu().numpy()
