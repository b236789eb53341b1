"""Scores and attention against the formulas of the papers, and what masks must do to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn_strategies import Batch, batches
from torch import Tensor, nn

from eyeline.errors import ConfigError
from eyeline.nn import (
    AdditiveAttention,
    Attention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    ProjectedDotAttention,
    ScaledDotAttention,
    masked_softmax,
    scaled_dot_product_attention,
)
from reference import attention as reference

DQ, DK, A, RANK = 4, 3, 6, 2
KINDS = ["additive", "concat", "dot", "general", "scaled-dot", "projected-dot"]
OF_ONE_WIDTH = ("dot", "scaled-dot", "scaled-dot-product")


def key_size(kind: str) -> int:
    return DQ if kind in OF_ONE_WIDTH else DK


def make(kind: str, seed: int = 0) -> Attention:
    torch.manual_seed(seed)
    made = {
        "additive": lambda: AdditiveAttention(DQ, DK, A),
        "concat": lambda: ConcatAttention(DQ, DK, A),
        "dot": lambda: DotAttention(DQ),
        "general": lambda: GeneralAttention(DQ, DK),
        "scaled-dot": lambda: ScaledDotAttention(DQ),
        "projected-dot": lambda: ProjectedDotAttention(DQ, DK, RANK),
    }[kind]()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.double()


def scores_by_the_paper(kind: str, module: Attention, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    weights = {name: value.numpy() for name, value in module.state_dict().items()}
    if kind == "additive":
        W, b, U = weights["score.query.weight"], weights["score.query.bias"], weights["score.key.weight"]
        return reference.additive(query, keys, W, b, U, weights["score.vector.weight"][0])
    if kind == "concat":
        return reference.concat(query, keys, weights["score.mix.weight"], weights["score.vector.weight"][0])
    if kind == "projected-dot":
        return reference.projected_dot(query, keys, weights["score.query.weight"], weights["score.key.weight"])
    if kind == "general":
        return reference.general(query, keys, weights["score.key.weight"])
    return reference.dot(query, keys) if kind == "dot" else reference.scaled_dot(query, keys)


def fit(kind: str, batch: Batch) -> Tensor:
    """Keys of the width that the kind wants."""
    return torch.cat([batch.keys, batch.keys[..., :1]], -1) if kind in OF_ONE_WIDTH else batch.keys


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(batch=batches(DQ, DK))
def test_attention_is_the_papers_for_every_mask(kind: str, batch: Batch) -> None:
    """One query at a time over the keys that it may see, alone; K rows a source; one that may see nothing gets zeros."""
    module, states = make(kind, batch.seed), fit(kind, batch)
    with torch.no_grad():
        context, weights = module.look(batch.query, module.remember(states, batch.mask))
    k = len(batch.query) // len(states)
    for row, position in np.ndindex(*batch.query.shape[:2]):
        seen = ~batch.mask[row // k]
        wanted_weights, wanted_context = np.zeros(len(seen)), np.zeros(states.shape[-1])
        if seen.any():
            keys = states[row // k][seen].numpy()
            alpha = reference.softmax(scores_by_the_paper(kind, module, batch.query[row, position].numpy(), keys))
            wanted_weights[seen.numpy()] = alpha
            wanted_context = reference.weighted_sum(alpha, keys)
        np.testing.assert_allclose(weights[row, position].numpy(), wanted_weights, rtol=0, atol=1e-10)
        np.testing.assert_allclose(context[row, position].numpy(), wanted_context, rtol=0, atol=1e-10)
        assert not weights[row, position][~seen].any()


@settings(max_examples=25, deadline=None)
@given(batch=batches(DQ, DQ), three=st.booleans())
def test_scaled_dot_product_is_the_papers_for_every_mask(batch: Batch, three: bool) -> None:
    """Masks of [B, S], and of [B, T, S] with another row for each query."""
    query = batch.query[: len(batch.keys)]
    value = torch.randn(*batch.keys.shape[:2], 5, dtype=torch.float64, generator=torch.Generator().manual_seed(batch.seed))
    mask = batch.mask[:, None].expand(-1, query.shape[1], -1).clone()
    if three:
        mask[:, 0] = ~mask[:, 0]
    output, weights = scaled_dot_product_attention(query, batch.keys, value, mask if three else batch.mask)
    assert output.shape == (*query.shape[:2], 5)
    for row, position in np.ndindex(*query.shape[:2]):
        seen = ~mask[row, position]
        wanted = np.zeros(5)
        if seen.any():
            alpha = reference.softmax(reference.scaled_dot(query[row, position].numpy(), batch.keys[row][seen].numpy()))
            wanted = reference.weighted_sum(alpha, value[row][seen].numpy())
            np.testing.assert_allclose(weights[row, position][seen].numpy(), alpha, rtol=0, atol=1e-10)
        np.testing.assert_allclose(output[row, position].numpy(), wanted, rtol=0, atol=1e-10)
        assert not weights[row, position][~seen].any()


def test_scaled_dot_product_without_a_mask_is_pytorchs() -> None:
    query, key, value = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    output, weights = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, nn.functional.scaled_dot_product_attention(query, key, value))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-(2.0**99), 2.0**99, width=32), st.booleans()), min_size=1, max_size=8),
)
def test_masked_softmax_is_a_distribution_over_what_is_seen(row: list[tuple[float, bool]]) -> None:
    """Whatever the scores, huge ones too: ≥ 0, exactly zero where hidden, sum one or, with everything hidden, zero."""
    scores, mask = (torch.tensor(column) for column in zip(*row, strict=True))
    weights = masked_softmax(scores, mask)
    assert torch.isfinite(weights).all()
    assert (weights >= 0).all()
    assert not weights[mask].any()
    assert float(weights.sum()) == pytest.approx(0.0 if mask.all() else 1.0, abs=1e-5)


def test_masked_softmax_by_hand() -> None:
    weights = masked_softmax(torch.tensor([math.log(1.0), math.log(3.0), 99.0]), torch.tensor([False, False, True]))
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.75, 0.0]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_may_look_at_nothing(kind: str) -> None:
    """Zero weights, a zero context, finite gradients of everything; its neighbour's answer is its answer alone."""
    module, batch = make(kind), torch.Generator().manual_seed(3)
    query = torch.randn(2, DQ, generator=batch, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(2, 5, key_size(kind), generator=batch, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 5, [False, False, False, True, True]])
    context, weights = module(query, keys, mask)
    assert not context[0].any()
    assert not weights[0].any()
    alone, _ = module(query[1:], keys[1:, :3])
    torch.testing.assert_close(context[1:], alone, rtol=0, atol=1e-12)
    (context.sum() + weights.square().sum()).backward()
    for tensor in (query, keys, *module.parameters()):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()
    assert query.grad is not None
    assert not query.grad[0].any()


@pytest.mark.parametrize("kind", [*KINDS, "scaled-dot-product"])
def test_nan_in_what_is_hidden_does_not_leak(kind: str) -> None:
    torch.manual_seed(0)
    query = torch.randn(2, 3, DQ, dtype=torch.float64, requires_grad=True)
    clean = torch.randn(2, 4, key_size(kind), dtype=torch.float64)
    mask = torch.tensor([[False, False, True, True], [False, True, True, True]])
    keys = clean.masked_fill(mask[..., None], torch.nan).requires_grad_()
    if kind == "scaled-dot-product":
        output, weights = scaled_dot_product_attention(query, keys, keys, mask)
        wanted, _ = scaled_dot_product_attention(query, clean, clean, mask)
        parameters: list[Tensor] = []
    else:
        module = make(kind)
        output, weights = module(query, keys, mask)
        wanted, _ = module(query, clean, mask)
        parameters = list(module.parameters())
    torch.testing.assert_close(output, wanted)
    assert torch.isfinite(weights).all()
    output.sum().backward()
    for tensor in (query, keys, *parameters):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("kind", [*KINDS, "scaled-dot-product"])
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    """With a hidden column, a query that sees nothing, and two queries a source."""
    torch.manual_seed(1)
    mask = torch.tensor([[False, True, False], [True, True, True]])
    query = torch.randn(2, 2, DQ, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(2, 3, key_size(kind), dtype=torch.float64, requires_grad=True)
    if kind == "scaled-dot-product":
        assert torch.autograd.gradcheck(lambda q, k: scaled_dot_product_attention(q, k, k, mask), (query, keys))
        return
    module = make(kind)
    names, weights = zip(*module.named_parameters(), strict=True) if list(module.parameters()) else ((), ())

    def run(query: Tensor, keys: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (query, keys, mask))  # type: ignore[no-any-return]

    inputs = (query, keys, *(weight.detach().clone().requires_grad_() for weight in weights))
    assert torch.autograd.gradcheck(run, inputs)


def test_the_peak_of_a_row_stands_over_the_symbol_looked_at() -> None:
    """A matrix made by hand: target c b a over source a b c. Row i is query i, column j key j; no square needed."""
    keys = torch.eye(3)[None]
    queries = 50 * torch.eye(3)[[2, 1, 0]][None]
    context, weights = DotAttention(3)(queries, keys)
    torch.testing.assert_close(weights[0], torch.eye(3).flip(0))
    torch.testing.assert_close(context[0], torch.eye(3).flip(0))
    _, five = DotAttention(3)(50 * torch.eye(3)[[1, 1, 0, 1, 0]][None], torch.eye(3)[None, :2])
    assert five.shape == (1, 5, 2)
    assert five[0].argmax(-1).tolist() == [1, 1, 0, 1, 0]


def test_equal_keys_keep_a_column_each() -> None:
    _, weights = DotAttention(2)(torch.ones(1, 2), torch.ones(1, 3, 2))
    torch.testing.assert_close(weights, torch.full((1, 3), 1 / 3))


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_one_query_and_of_many(kind: str) -> None:
    module = make(kind)
    keys = torch.randn(2, 5, key_size(kind), dtype=torch.float64)
    query = torch.randn(2, 3, DQ, dtype=torch.float64)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    many_context, many_weights = module(query, keys, mask)
    assert many_context.shape == (2, 3, keys.shape[-1])
    assert many_weights.shape == (2, 3, 5)
    context, weights = module(query[:, 1], keys, mask)
    torch.testing.assert_close(context, many_context[:, 1])
    torch.testing.assert_close(weights, many_weights[:, 1])


@pytest.mark.parametrize(
    ("made", "score", "instead"), [(DotAttention, "dot", "general"), (ScaledDotAttention, "scaled-dot", "projected-dot")]
)
def test_widths_that_must_be_equal_name_the_score_that_maps_them(made: Any, score: str, instead: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(4, 6)
    assert str(caught.value) == (
        f"the {score} score multiplies vectors of one width, but the query has 4 and the keys 6 (score={score}); "
        f"use score={instead}, which maps one onto the other, or make the widths equal"
    )


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 7])
def test_projected_dot_is_general_with_its_matrix_in_two_factors(rank: int) -> None:
    """Its W is W_Qᵀ W_K / √r, whatever the rank: below the widths it has that rank, above them it is no more than full."""
    module = ProjectedDotAttention(DQ, DK, rank).double()
    general = GeneralAttention(DQ, DK).double()
    product = module.score.query.weight.T @ module.score.key.weight / math.sqrt(rank)  # [Dq, Dk]
    general.score.key.weight.data.copy_(product.detach())
    assert torch.linalg.matrix_rank(product) == min(rank, DQ, DK)
    query, keys = torch.randn(2, 3, DQ, dtype=torch.float64), torch.randn(2, 5, DK, dtype=torch.float64)
    for one, other in zip(module(query, keys), general(query, keys), strict=True):
        torch.testing.assert_close(one, other)


def test_projected_dot_of_full_rank_can_be_any_general() -> None:
    """W = U Σ Vᵀ gives the factors: every general score is a projected-dot score of the smaller width's rank, or more."""
    general = GeneralAttention(DQ, DK).double()
    module = ProjectedDotAttention(DQ, DK, min(DQ, DK)).double()
    left, spread, right = torch.linalg.svd(general.score.key.weight.detach(), full_matrices=False)
    module.score.query.weight.data.copy_((left * spread).T * math.sqrt(min(DQ, DK)))
    module.score.key.weight.data.copy_(right)
    query, keys = torch.randn(2, 3, DQ, dtype=torch.float64), torch.randn(2, 5, DK, dtype=torch.float64)
    for one, other in zip(module(query, keys), general(query, keys), strict=True):
        torch.testing.assert_close(one, other)


def test_projected_dot_is_scaled_dot_product_attention_of_what_is_projected() -> None:
    """At any rank, over a mask: softmax(Q Kᵀ / √r) with Q = W_Q q and K = W_K k."""
    torch.manual_seed(0)
    module = ProjectedDotAttention(DQ, DK, RANK)
    query, keys = torch.randn(2, 3, DQ), torch.randn(2, 5, DK)
    mask = torch.arange(5) >= torch.tensor([[5], [2]])
    context, weights = module(query, keys, mask)
    wanted = scaled_dot_product_attention(module.score.query(query), module.score.key(keys), keys, mask)
    torch.testing.assert_close(context, wanted[0])
    torch.testing.assert_close(weights, wanted[1])


@pytest.mark.parametrize("kind", KINDS)
def test_remembered_keys_can_be_selected(kind: str) -> None:
    """Sources dropped and reordered after their keys were projected."""
    module = make(kind)
    states = torch.randn(3, 4, key_size(kind), dtype=torch.float64)
    mask = torch.arange(4) >= torch.tensor([[4], [2], [3]])
    query = torch.randn(2, 1, DQ, dtype=torch.float64)
    rows = torch.tensor([2, 0])
    got = module.look(query, module.remember(states, mask).select(rows))
    wanted = module.look(query, module.remember(states[rows], mask[rows]))
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other)
