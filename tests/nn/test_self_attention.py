"""Self-attention of every kind: in pieces as in one, windows as full attention with a mask, sums as scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from eyeline.nn import (
    Alibi,
    BothWays,
    Causal,
    CausalLinearSelfAttention,
    CausalSelfAttention,
    CausalWindowSelfAttention,
    LinearSelfAttention,
    Order,
    Rotary,
    SelfAttention,
    Unordered,
    WindowSelfAttention,
)

SIZE, HEADS, LENGTH = 12, 3, 70  # longer than a chunk of linear attention, and than many windows
ORDERS: dict[str, Callable[[], Order]] = {"unordered": Unordered, "rotary": lambda: Rotary(4), "alibi": lambda: Alibi(HEADS)}
CAUSAL: dict[str, Callable[[], Causal]] = {
    **{f"full-{name}": lambda order=order: CausalSelfAttention(SIZE, HEADS, order()) for name, order in ORDERS.items()},
    **{
        f"window-{name}": lambda order=order: CausalWindowSelfAttention(SIZE, HEADS, order(), 4) for name, order in ORDERS.items()
    },
    "linear": lambda: CausalLinearSelfAttention(SIZE, HEADS),
}
BOTH_WAYS: dict[str, Callable[[], BothWays]] = {
    **{f"full-{name}": lambda order=order: SelfAttention(SIZE, HEADS, order()) for name, order in ORDERS.items()},
    **{f"window-{name}": lambda order=order: WindowSelfAttention(SIZE, HEADS, order(), 4) for name, order in ORDERS.items()},
    "linear": lambda: LinearSelfAttention(SIZE, HEADS),
}


def drawn(part: Any) -> Any:
    torch.manual_seed(0)
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.5)
    return part.double().eval()


def some(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-11)


def in_pieces(attention: Causal, inputs: Tensor, *sizes: int) -> tuple[Tensor, Any]:
    past, found = attention.start(len(inputs), inputs), []
    for piece in inputs.split(list(sizes), 1):
        output, past = attention(piece, past)
        found.append(output)
    return torch.cat(found, 1), past


@pytest.mark.parametrize("kind", CAUSAL)
def test_in_pieces_as_in_one(kind: str) -> None:
    """Parallel and recurrent forms agree, and so does every way between: sums, caches and positions are carried over."""
    attention, inputs = drawn(CAUSAL[kind]()), some(2, LENGTH, SIZE)
    whole, _ = in_pieces(attention, inputs, LENGTH)
    for sizes in ([1] * LENGTH, [3, 40, 1, 20, 6], [1, LENGTH - 1]):
        close(in_pieces(attention, inputs, *sizes)[0], whole)


@pytest.mark.parametrize("kind", CAUSAL)
def test_weights_backwards_are_those_that_were_used(kind: str) -> None:
    attention, inputs = drawn(CAUSAL[kind]()), some(2, LENGTH, SIZE)
    weights = attention.weights(inputs)
    close(weights.sum(-1), torch.ones(2, HEADS, LENGTH, dtype=torch.float64))
    assert not weights.triu(1).any()
    *_, values = attention.split(inputs, torch.arange(LENGTH))
    close(attention.join(weights @ values), in_pieces(attention, inputs, LENGTH)[0])


@pytest.mark.parametrize("kind", BOTH_WAYS)
def test_weights_both_ways_are_those_that_were_used(kind: str) -> None:
    attention, inputs = drawn(BOTH_WAYS[kind]()), some(3, LENGTH, SIZE)
    mask = torch.arange(LENGTH) >= torch.tensor([LENGTH, 9, 1])[:, None]
    weights = attention.weights(inputs, mask)
    assert not weights[mask[:, None, None].expand_as(weights)].any()
    *_, values = attention.split(inputs, torch.arange(LENGTH))
    close(attention.join(weights @ values)[~mask], attention(inputs, mask)[~mask])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("window", [1, 4, 69, 200])
def test_a_window_is_full_attention_with_a_mask(order: str, window: int) -> None:
    inputs, mask = some(2, LENGTH, SIZE), torch.arange(LENGTH) >= torch.tensor([[LENGTH], [33]])
    places = torch.arange(LENGTH)
    far = (places[:, None] - places).abs() > window
    wide, narrow = drawn(SelfAttention(SIZE, HEADS, ORDERS[order]())), WindowSelfAttention(SIZE, HEADS, ORDERS[order](), window)
    narrow.load_state_dict(wide.state_dict())
    queries, keys, values = wide.split(inputs, places)
    bias = wide.order.bias(places, places, queries.dtype)
    wanted = wide.join(wide.distribution(queries, keys, mask[:, None, None] | far, bias) @ values)
    close(narrow.double()(inputs, mask)[~mask], wanted[~mask])
    back = CausalWindowSelfAttention(SIZE, HEADS, ORDERS[order](), window).double()
    back.load_state_dict(wide.state_dict())
    wanted = wide.join(wide.distribution(queries, keys, far | (places > places[:, None]), bias) @ values)
    close(back(inputs, back.start(2, inputs))[0], wanted)


def test_linear_attention_is_its_formula() -> None:
    """Equation 8 of Katharopoulos et al. 2020 for one head, written out."""
    attention, inputs = drawn(CausalLinearSelfAttention(SIZE, 1)), some(1, 40, SIZE)
    q, k, v = (part[0, 0] for part in attention.split(inputs, torch.arange(40)))
    q, k = (torch.where(x > 0, x + 1, x.exp()) for x in (q, k))
    wanted = [sum((q[i] @ k[j]) * v[j] for j in range(i + 1)) / sum(q[i] @ k[j] for j in range(i + 1)) for i in range(40)]
    close(attention(inputs, attention.start(1, inputs))[0][0], attention.outward(torch.stack(wanted)))


@pytest.mark.parametrize("kind", CAUSAL)
def test_what_a_step_costs_to_remember(kind: str) -> None:
    """Numbers in the state after 10, 20 and 40 positions: full grows with them, a window and sums do not."""
    attention = drawn(CAUSAL[kind]())
    held = []
    for length in (10, 20, 40):
        _, state = in_pieces(attention, some(1, length, SIZE), *([1] * length))
        tensors = [getattr(state, field.name) for field in fields(state)]
        held.append(sum(tensor.numel() for tensor in tensors if isinstance(tensor, Tensor)))
    wanted = {"full": [2 * SIZE * n for n in (10, 20, 40)], "window": [2 * SIZE * 4] * 3, "linear": [HEADS * 4 * 5] * 3}
    assert held == wanted[kind.partition("-")[0]]


@pytest.mark.parametrize("kind", CAUSAL)
def test_gradients_backwards(kind: str) -> None:
    attention, inputs = drawn(CAUSAL[kind]()), some(1, 6, SIZE).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: in_pieces(attention, x, 4, 2)[0], (inputs,))


@pytest.mark.parametrize("kind", BOTH_WAYS)
def test_nothing_but_padding_stays_finite(kind: str) -> None:
    attention, inputs = drawn(BOTH_WAYS[kind]()), some(2, 6, SIZE).requires_grad_()
    mask = torch.tensor([[True] * 6, [False] * 2 + [True] * 4])
    output = attention(inputs, mask)
    output.sum().backward()
    assert torch.isfinite(output).all()
    for tensor in (inputs, *attention.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("kind", CAUSAL)
def test_half_precision_agrees_with_single(kind: str) -> None:
    """bfloat16 weights, and 600 positions: sums over them are kept in single precision."""
    single, inputs = drawn(CAUSAL[kind]()).float(), some(1, 600, SIZE).float()
    half = CAUSAL[kind]().bfloat16()
    half.load_state_dict(single.state_dict())
    got, _ = in_pieces(half, inputs.bfloat16(), 500, *([1] * 100))
    wanted, _ = in_pieces(single, inputs, 600)
    assert got.dtype == torch.bfloat16
    assert (got.float() - wanted).abs().mean() < (0.005 if kind == "linear" else 0.02) * wanted.abs().mean()


@pytest.mark.parametrize("kind", ["full-unordered", "window-unordered"])
def test_dropout_on_weights_in_training_alone(kind: str) -> None:
    attention, inputs = drawn(CAUSAL[kind]()), some(1, 8, SIZE)
    attention.dropout.p = 0.5
    close(*(in_pieces(attention, inputs, 8)[0] for _ in range(2)))
    attention.train()
    assert not torch.equal(*(in_pieces(attention, inputs, 8)[0] for _ in range(2)))
