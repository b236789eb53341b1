"""Products by oneDNN: the same values and gradients as PyTorch's, of few numbers of rows, and only where they have a kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear as plain

from eyeline import products
from eyeline.products import BLOCK, MANY, Linear, linear

needs_onednn = pytest.mark.skipif(not products.ONEDNN, reason="PyTorch is built without oneDNN")


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def answers(layer: Callable[..., Tensor], inputs: Tensor, weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    """The product and the gradients of a random sum of it, in double precision."""
    given = [each.detach().clone().requires_grad_() for each in (inputs, weight, bias) if each is not None]
    made = layer(*given)
    (made * drawn(*made.shape).to(made.dtype)).sum().backward()
    return [each.double() for each in (made.detach(), *(one.grad for one in given if one.grad is not None))]


@pytest.mark.parametrize("shape", [(MANY, 40), (MANY + BLOCK, 33), (8, MANY // 4, 40), (MANY + 1, 40), (3, 40), (0, 40), (40,)])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_double_precision(shape: tuple[int, ...], bias: bool) -> None:
    inputs, weight, offset = drawn(*shape), drawn(24, shape[-1]), drawn(24) if bias else None
    wanted = answers(plain, inputs.double(), weight.double(), None if offset is None else offset.double())
    found = answers(linear, inputs, weight, offset)
    assert len(found) == len(wanted) == (4 if bias else 3)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-3 if len(theirs.shape) < 2 else 3e-4)


@needs_onednn
def test_parts_of_tensors_are_read_where_they_lie() -> None:
    wide, weight = drawn(MANY, 100), drawn(40, 90)
    for columns, rows in ((slice(0, 50), slice(0, 50)), (slice(50, 100), slice(40, 90))):
        found = answers(linear, wide[:, columns], weight[:, rows], None)
        for ours, theirs in zip(found, answers(plain, wide[:, columns].double(), weight[:, rows].double(), None), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=3e-4)


@needs_onednn
def test_gradients_of_gradients_are_right() -> None:
    inputs, weight = drawn(MANY, 20).requires_grad_(), drawn(24, 20).requires_grad_()
    found = []
    for multiply in (linear, plain):
        (slope,) = torch.autograd.grad(multiply(inputs, weight).square().sum(), inputs, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), [inputs, weight]))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-2)


@needs_onednn
def test_which_products_are_worth_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows, of a few different numbers; single precision, of one type, with gradients and without."""
    made, real = [], products.product
    monkeypatch.setattr(products, "product", lambda rows, *others: made.append(len(rows)) or real(rows, *others))
    layer = Linear(20, 24)
    layer(drawn(MANY, 20))
    with torch.no_grad():
        layer(drawn(MANY + BLOCK, 20))
    assert made == [MANY, MANY + BLOCK]
    layer(drawn(MANY - BLOCK, 20)), layer(drawn(MANY + 1, 20)), Linear(20, 3)(drawn(MANY, 20)), Linear(2, 24)(drawn(MANY, 2))
    Linear(20, 24).double()(drawn(MANY, 20).double())
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(drawn(MANY, 20)).dtype == torch.bfloat16
    assert made == [MANY, MANY + BLOCK]


def test_weights_have_the_names_and_the_beginning_of_pytorchs() -> None:
    torch.manual_seed(0)
    ours = Linear(20, 24)
    torch.manual_seed(0)
    theirs = nn.Linear(20, 24)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
