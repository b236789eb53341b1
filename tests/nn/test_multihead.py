"""Multi-head attention against PyTorch's, and from rows of hypotheses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from eyeline.errors import ConfigError
from eyeline.nn import Dropout, MultiHeadAttention
from eyeline.nn.multihead import heads_attend

SIZE, HEADS, KEY_SIZE = 6, 3, 5


@pytest.fixture
def attention() -> MultiHeadAttention:
    torch.manual_seed(0)
    made = MultiHeadAttention(SIZE, HEADS, KEY_SIZE).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def some(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


MASK = torch.tensor([[False, False, True, True], [False, False, False, False]])


def test_agrees_with_the_library(attention: MultiHeadAttention) -> None:
    theirs = nn.MultiheadAttention(SIZE, HEADS, kdim=KEY_SIZE, vdim=KEY_SIZE, batch_first=True, dtype=torch.float64)
    keys, values = attention.keys_and_values.weight.chunk(2)
    with torch.no_grad():
        theirs.q_proj_weight.copy_(attention.query.weight)
        theirs.k_proj_weight.copy_(keys)
        theirs.v_proj_weight.copy_(values)
        theirs.in_proj_bias.copy_(torch.cat([attention.query.bias, attention.keys_and_values.bias]))
        theirs.out_proj.load_state_dict(attention.output.state_dict())
    query, states = some(2, 3, SIZE), some(2, 4, KEY_SIZE)
    wanted, weights = theirs(query, states, states, key_padding_mask=MASK, average_attn_weights=False)
    keys_once = attention.remember(states, MASK)
    torch.testing.assert_close(attention(query, keys_once), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(attention.weights(query, keys_once), weights, rtol=0, atol=1e-12)


def test_rows_of_one_source_are_more_queries_of_it(attention: MultiHeadAttention) -> None:
    """Row n·K + k reads source n, as it would from a repeated memory."""
    query, states = some(6, 3, SIZE), some(2, 4, KEY_SIZE)
    once = attention.remember(states, MASK)
    repeated = once.select(torch.arange(2).repeat_interleave(3))
    torch.testing.assert_close(attention(query, once), attention(query, repeated), rtol=0, atol=1e-12)
    torch.testing.assert_close(attention.weights(query, once), attention.weights(query, repeated), rtol=0, atol=1e-12)


def test_weights_are_those_that_were_used(attention: MultiHeadAttention) -> None:
    query, states = some(2, 3, SIZE), some(2, 4, KEY_SIZE)
    once = attention.remember(states, MASK)
    found = attention.weights(query, once) @ once.values
    torch.testing.assert_close(attention.output(found.transpose(1, 2).flatten(2)), attention(query, once), rtol=0, atol=1e-12)


def test_an_empty_source_answers_with_the_bias(attention: MultiHeadAttention) -> None:
    query, states = some(2, 3, SIZE).requires_grad_(), some(2, 4, KEY_SIZE).requires_grad_()
    once = attention.remember(states, torch.tensor([[True] * 4, [False] * 4]))
    output = attention(query, once)
    torch.testing.assert_close(output[0], attention.output.bias.expand(3, -1), rtol=0, atol=1e-12)
    assert not attention.weights(query, once)[0].any()
    output.sum().backward()
    for tensor in (query, states, *attention.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()
    assert states.grad is not None
    assert not states.grad[0].any()


def test_nan_where_hidden_reaches_nothing(attention: MultiHeadAttention) -> None:
    query, states = some(2, 3, SIZE), some(2, 4, KEY_SIZE)
    poisoned = states.masked_fill(MASK[..., None], torch.nan)
    got, wanted = (attention(query, attention.remember(each, MASK)) for each in (poisoned, states))
    torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    got.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in attention.parameters() if p.grad is not None)


def test_gradients(attention: MultiHeadAttention) -> None:
    states = some(2, 4, KEY_SIZE).requires_grad_()
    query = some(4, 2, SIZE).requires_grad_()
    assert torch.autograd.gradcheck(lambda q, s: attention(q, attention.remember(s, MASK)), (query, states))


def test_heads_that_cannot_share_the_width() -> None:
    with pytest.raises(ConfigError, match=r"4 heads cannot share a width of 6 \(model.heads=4\)"):
        MultiHeadAttention(6, 4)


@pytest.mark.parametrize("kind", ["all", "triangle", "mask", "bias"])
def test_dropout_written_out_is_pytorchs_attention_with_some_weights_gone(kind: str) -> None:
    """With dropout that keeps all it is the same; with one that does not, the weights are scaled and the sum follows."""
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    seen = {"mask": torch.rand(2, 1, 1, 5) < 0.7, "bias": torch.randn(3, 5, 5, dtype=torch.float64)}.get(kind)
    if kind == "mask":
        assert seen is not None
        seen[..., 0] = True
    part, nothing = Dropout(0.5), Dropout(0.0)
    wanted = heads_attend(queries, keys, values, seen, nothing, kind == "triangle")
    part.forward = lambda weights: weights  # type: ignore[method-assign]
    torch.testing.assert_close(heads_attend(queries, keys, values, seen, part, kind == "triangle"), wanted, rtol=0, atol=1e-12)
    part.forward = lambda weights: 2 * weights * (torch.arange(5) == 1)  # type: ignore[method-assign]
    eye = torch.eye(5, dtype=torch.float64).expand(2, 3, 5, 5)
    weights = heads_attend(queries, keys, eye, seen, nothing, kind == "triangle")
    got = heads_attend(queries, keys, values, seen, part, kind == "triangle")
    torch.testing.assert_close(got, 2 * weights[..., 1:2] * values[:, :, 1:2], rtol=0, atol=1e-12)
