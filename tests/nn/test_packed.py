"""Layers laid out for prediction compute what plain ones do."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from eyeline.nn import packed as packing
from eyeline.nn.packed import PackedLinear, PackedStack, RoundedLinear
from eyeline.nn.packing import LARGE, UNITS, WIDE, pack, round_weights
from eyeline.nn.recurrent import Stack


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


@pytest.mark.parametrize("kind", [PackedLinear, RoundedLinear])
@pytest.mark.parametrize("rows", [1, 5])
def test_no_later_change_is_followed(linear: nn.Linear, kind: type[nn.Linear], rows: int) -> None:
    """Not even by one row, whose layout is made when it comes."""
    laid, input = kind(linear), torch.randn(rows, 48)
    wanted = linear(input).detach()
    with torch.inference_mode():
        linear.weight.mul_(2.0)
        torch.testing.assert_close(laid(input), wanted, rtol=0.0, atol=0.05)


@pytest.mark.parametrize("kernels", ["vnni", "fbgemm", "neither"])
@pytest.mark.parametrize("columns", [20, WIDE])
@pytest.mark.parametrize("rows", [4, 40])
def test_rounding_is_that_of_rows(rows: int, columns: int, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As written down in float64, one row after the other; with other rows beside it, a row stays what it is."""
    vnni = kernels == "vnni"
    if vnni and not packing.products_of_bytes():
        pytest.skip("a processor without products of bytes")
    if kernels == "fbgemm" and not packing.fbgemm():
        pytest.skip("a PyTorch without FBGEMM")
    monkeypatch.setattr(packing, "products_of_bytes", lambda: vnni)
    monkeypatch.setattr(packing, "fbgemm", lambda: kernels == "fbgemm")
    torch.manual_seed(1)
    linear = nn.Linear(48, columns)
    linear.weight.data[:2, :24] = 9.0  # sums that 16 bits do not hold
    rounded = RoundedLinear(linear)
    input = torch.cat([torch.randn(rows, 48), 100 * torch.randn(1, 48), torch.full((1, 48), 7.0), torch.zeros(1, 48)])

    def rounds(rows: torch.Tensor, reach: int = 127) -> torch.Tensor:
        scales = rows.abs().amax(1, keepdim=True).clamp(min=1e-12) / reach
        return (rows / scales).round().double() * scales.double()

    wanted = rounds(input, 127 if vnni else 63) @ rounds(linear.weight.detach()).T + linear.bias.detach().double()
    with torch.inference_mode():
        torch.testing.assert_close(rounded(input).double(), wanted, rtol=1e-5, atol=1e-4)
        assert torch.equal(rounded(input)[1:2], rounded(input[1:2]))


@pytest.mark.parametrize("rows", [4, 40, 400])
def test_products_of_bytes_are_exact(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By either of the kernels that processors with VNNI have; on numbers so small that others sum them, too."""
    torch.manual_seed(1)
    whole, scales, input = torch.randint(-60, 61, (300, 48)).to(torch.int8), torch.rand(300), torch.rand(rows, 48) * 2 - 1
    wanted = ((input * 127).round().double() / 127) @ whole.double().T * scales.double()
    for many in (0, 10**9):
        monkeypatch.setattr(packing, "MANY", many)
        torch.testing.assert_close(packing.OfBytes(whole, scales).of(input).double(), wanted, rtol=1e-5, atol=1e-4)


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


@pytest.mark.usefixtures("small_layers_rounded")
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


@pytest.mark.parametrize(("vnni", "kinds"), [(True, [RoundedLinear] * 3), (False, [nn.Linear, PackedLinear, RoundedLinear])])
def test_8_bits_are_for_layers_that_gain_by_them(vnni: bool, kinds: list[type], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyeline.nn.packing.products_of_bytes", lambda: vnni)
    model = nn.Sequential(nn.Linear(48, 48), nn.Linear(48, WIDE), nn.Linear(LARGE // 1024, 1024))
    round_weights(model)
    assert [type(layer) for layer in model] == kinds


def test_only_wide_layers_are_packed(linear: nn.Linear) -> None:
    model = nn.Sequential(nn.Linear(48, 48), linear)
    pack(model)
    assert type(model[0]) is nn.Linear
    assert type(model[1]) is PackedLinear


# ---- recurrent stacks ---------------------------------------------------------------------------------------------------


def stack(kind: type[nn.RNNBase], depth: int = 2, size: int = UNITS) -> Stack:
    torch.manual_seed(4)
    return Stack([kind(size if number else 40, size, batch_first=True) for number in range(depth)], 0.3).eval()


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 5, 64])
@pytest.mark.parametrize("positions", [1, 4])
def test_a_packed_stack_goes_on_as_a_plain_one(kind: type[nn.RNNBase], depth: int, rows: int, positions: int) -> None:
    plain = stack(kind, depth)
    packed = PackedStack(plain)
    inputs, state = torch.randn(rows, positions, 40), torch.randn(rows, depth, plain.planes, UNITS)
    before = inputs.clone(), state.clone()
    with torch.inference_mode():
        for _ in range(3):  # what a step answers is a state that can be gone on from
            outputs, after = packed(inputs, state)
            wanted, wanted_after = plain(inputs, state)
            torch.testing.assert_close(outputs, wanted, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(after, wanted_after, rtol=1e-5, atol=1e-5)
            state = after.index_select(0, torch.arange(rows).flip(0))
    assert torch.equal(inputs, before[0])
    given = before[0].clone(), before[1].clone()
    with torch.inference_mode():
        packed(*given)
    assert all(map(torch.equal, given, before))  # what it is given stays as it is, the state too


@pytest.mark.usefixtures("small_layers_rounded")
@pytest.mark.parametrize("lay", [pack, round_weights])
def test_stacks_that_pay_are_packed_and_keep_their_parameters(lay: object) -> None:
    model = nn.ModuleDict({"lstm": stack(nn.LSTM), "gru": stack(nn.GRU), "narrow": stack(nn.LSTM, size=UNITS - 1)})
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    lay(model)  # type: ignore[operator]
    assert [type(model[name]) for name in ("lstm", "gru", "narrow")] == [PackedStack, Stack, Stack]
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)
    twin, inputs, state = copy.deepcopy(model), torch.randn(2, 1, 40), torch.zeros(2, 2, 2, UNITS)
    with torch.inference_mode():
        assert torch.equal(twin["lstm"](inputs, state)[0], model["lstm"](inputs, state)[0])


def test_with_gradients_or_hooks_a_packed_stack_is_a_plain_one() -> None:
    plain = stack(nn.LSTM)
    packed, inputs, state = PackedStack(plain), torch.randn(3, 1, 40), torch.randn(3, 2, 2, UNITS)
    outputs = packed(inputs, state)[0]
    assert torch.equal(outputs, plain(inputs, state)[0])
    outputs.sum().backward()
    assert all(parameter.grad is not None for parameter in plain.parameters())
    seen = []
    plain.layers[1].register_forward_hook(lambda *given: seen.append(given))
    with torch.inference_mode():
        assert torch.equal(packed(inputs, state)[0], plain(inputs, state)[0])
    assert len(seen) == 2


def test_dropout_between_layers_acts_in_training_alone() -> None:
    packed, inputs, state = PackedStack(stack(nn.LSTM)), torch.randn(3, 1, 40), torch.randn(3, 2, 2, UNITS)
    with torch.inference_mode():
        assert torch.equal(packed(inputs, state)[0], packed(inputs, state)[0])
        packed.train()
        assert not torch.equal(packed(inputs, state)[0], packed(inputs, state)[0])
