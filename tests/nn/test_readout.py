"""Readouts: maxout over pairs that are neighbours in the weights."""

from __future__ import annotations

import torch

from eyeline.nn import Maxout


def test_maxout_takes_the_larger_of_neighbours_and_sends_the_gradient_there() -> None:
    torch.manual_seed(0)
    part, vectors = Maxout(5, 3).double(), [torch.randn(2, 4, size, dtype=torch.float64, requires_grad=True) for size in (2, 3)]
    plain = part.linear(torch.cat(vectors, -1)).unflatten(-1, (3, 2))
    assert torch.allclose(part(*vectors), plain.amax(-1), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(part, vectors)
    wanted = torch.autograd.grad(plain.amax(-1).square().sum(), list(part.parameters()), retain_graph=True)
    got = torch.autograd.grad(part(*vectors).square().sum(), list(part.parameters()))
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(got, wanted, strict=True))
