"""Layers laid out for prediction compute what plain ones do."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from eyeline.nn.packed import WIDE, PackedLinear, RoundedLinear, pack, round_weights


@pytest.fixture
def linear() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(48, WIDE)


@pytest.mark.parametrize("shape", [(48,), (1, 48), (5, 48), (0, 48), (2, 3, 48), (320, 48)])
@pytest.mark.parametrize("bias", [True, False])
def test_packed_is_the_plain_product(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(2)
    plain = nn.Linear(48, 100, bias=bias)
    packed, input = PackedLinear(plain), torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(packed(input), plain(input))


def test_rounding_is_that_of_rows(linear: nn.Linear) -> None:
    """As written down in float64, one row after the other; with other rows beside it, a row stays what it is."""
    rounded = RoundedLinear(linear)
    input = torch.cat([torch.randn(4, 48), 100 * torch.randn(1, 48), torch.zeros(1, 48)])

    def rounds(rows: torch.Tensor) -> torch.Tensor:
        scales = rows.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
        return (rows / scales).round().double() * scales.double()

    wanted = rounds(input) @ rounds(linear.weight.detach()).T + linear.bias.detach().double()
    with torch.inference_mode():
        torch.testing.assert_close(rounded(input).double(), wanted, rtol=1e-5, atol=1e-4)
        assert torch.equal(rounded(input)[1:2], rounded(input[1:2]))


@pytest.mark.parametrize("shape", [(48,), (5, 48), (2, 3, 48), (0, 48)])
def test_rounded_is_near_the_plain_product(linear: nn.Linear, shape: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    rounded, input = RoundedLinear(linear), torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(rounded(input), linear(input), rtol=0.0, atol=0.05)


@pytest.mark.parametrize("kind", [PackedLinear, RoundedLinear])
def test_with_gradients_it_is_a_plain_layer(linear: nn.Linear, kind: type[nn.Linear]) -> None:
    laid, input = kind(linear), torch.randn(3, 48)
    assert torch.equal(laid(input), linear(input))
    laid(input).sum().backward()
    assert laid.weight.grad is not None


@pytest.mark.parametrize("lay", [pack, round_weights])
def test_a_model_keeps_its_parameters_and_who_shares_them(linear: nn.Linear, lay: object) -> None:
    table = nn.Embedding(WIDE, 48)
    linear.weight = table.weight
    model = nn.ModuleDict({"table": table, "inner": nn.Sequential(nn.Linear(48, 48), nn.ReLU(), linear)})
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert lay(model) is model  # type: ignore[operator]
    assert model["inner"][2].weight is table.weight
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)
    twin = copy.deepcopy(model)
    with torch.inference_mode():
        input = torch.randn(2, 48)
        assert torch.equal(twin["inner"](input), model["inner"](input))


def test_only_wide_layers_are_packed(linear: nn.Linear) -> None:
    model = nn.Sequential(nn.Linear(48, 48), linear)
    pack(model)
    assert type(model[0]) is nn.Linear
    assert type(model[1]) is PackedLinear
