"""Coverage as a part: what it holds after each look, by hand and against PyTorch's own cell; hidden columns; gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from eyeline.nn import (
    AdditiveScore,
    Attention,
    ConcatScore,
    CoveredAttention,
    DotScore,
    FertilityCoverage,
    GatedCoverage,
    GeneralScore,
    LocationCoverage,
    ProjectedDotScore,
    ScaledDotScore,
    SumCoverage,
)
from eyeline.nn.coverage import LEAST_FERTILITY, Coverage

N, K, S, T, WIDTH = 2, 3, 4, 5, 6
KINDS: dict[str, Callable[[], Coverage]] = {
    "sum": SumCoverage,
    "fertility": lambda: FertilityCoverage(WIDTH),
    "gated": lambda: GatedCoverage(WIDTH, WIDTH, 3),
    "location": lambda: LocationCoverage(1),
}
SCORES: dict[str, Callable[[], Any]] = {
    "additive": lambda: AdditiveScore(WIDTH, WIDTH, 5),
    "concat": lambda: ConcatScore(WIDTH, WIDTH, 5),
    "dot": lambda: DotScore(WIDTH, WIDTH),
    "general": lambda: GeneralScore(WIDTH, WIDTH),
    "scaled-dot": lambda: ScaledDotScore(WIDTH, WIDTH),
    "projected-dot": lambda: ProjectedDotScore(WIDTH, WIDTH, 3),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def part(kind: str, score: str = "additive") -> CoveredAttention:
    made = CoveredAttention(SCORES[score](), KINDS[kind]()).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.7)
    return made


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Queries of K rows a source [R, T, D], states [N, S, D] and a mask that hides the last two of the second source."""
    query, states = torch.randn(N * K, T, WIDTH).double(), torch.randn(N, S, WIDTH).double()
    return query, states, torch.arange(S) >= torch.tensor([[S], [S - 2]])


class Uneven(nn.Module):
    """A score that is given: log of the weights wanted at each look, the look being the query's first number."""

    size = 1

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.log, self.seen = weights.log(), list[Tensor]()

    def project(self, keys: Tensor) -> Tensor:
        return torch.zeros(*keys.shape[:2], 1)

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        self.seen.append(projected[..., 0])  # with a term of ones, the coverage itself
        return self.log[query[:, :, 0].long()]


def test_the_coverage_of_a_look_holds_the_looks_before_it() -> None:
    """O16: rows [.5, .5, 0] and [.2, .2, .6] are looked with coverage 0 and then with the first row, not with their own."""
    rows = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]])
    score = Uneven(rows)
    attention = CoveredAttention(score, SumCoverage())  # type: ignore[arg-type]
    nn.init.ones_(attention.term.weight)
    keys = attention.remember(torch.randn(1, 3, 2), torch.zeros(1, 3, dtype=torch.bool))
    _, weights, after = attention.attend(torch.arange(3.0)[None, :, None], keys, attention.start(keys))
    torch.testing.assert_close(weights[0], rows)
    wanted = torch.tensor([[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.7, 0.7, 0.6]])
    torch.testing.assert_close(torch.cat(score.seen), wanted)
    torch.testing.assert_close(after[0, :, 0], torch.tensor([1.7, 0.7, 0.6]))


@EACH
@pytest.mark.parametrize("score", SCORES)
def test_the_first_look_is_that_of_attention_without_coverage(kind: str, score: str) -> None:
    attention = part(kind, score)
    query, states, mask = batch()
    plain = Attention(attention.score)
    keys, covered = plain.remember(states, mask), attention.remember(states, mask)
    start = attention.start(covered).repeat_interleave(K, 0)
    context, weights, _ = attention.attend(query[:, :1], covered, start)
    wanted = plain.look(query[:, :1], keys)
    torch.testing.assert_close((context, weights), wanted)
    _, weights, _ = attention.attend(query, covered, start)
    assert not torch.allclose(weights[:, 1:], plain.look(query, keys)[1][:, 1:])


@EACH
def test_looks_one_by_one_are_looks_in_a_row(kind: str) -> None:
    attention = part(kind)
    query, states, mask = batch()
    keys = attention.remember(states, mask)
    start = attention.start(keys).repeat_interleave(K, 0)
    context, weights, after = attention.attend(query, keys, start)
    looked, parts = start, []
    for t in range(T):
        *said, looked = attention.attend(query[:, t : t + 1], keys, looked)
        parts.append(said)
    torch.testing.assert_close(context, torch.cat([one for one, _ in parts], 1))
    torch.testing.assert_close(weights, torch.cat([one for _, one in parts], 1))
    torch.testing.assert_close(after, looked)


@EACH
def test_hidden_columns_have_no_coverage_and_nan_stays_in_them(kind: str) -> None:
    attention = part(kind)
    query, states, mask = batch()
    poisoned = states.masked_fill(mask[..., None], torch.nan)
    keys = attention.remember(poisoned, mask)
    *said, after = attention.attend(query, keys, attention.start(keys).repeat_interleave(K, 0))
    hidden = mask.repeat_interleave(K, 0)
    assert torch.isfinite(after).all()
    assert not after[hidden].any()
    real = after[~hidden]
    assert (real[:, [0, 2]] if kind == "location" else real).all(), "its sum and its own; neighbours may lie beyond the source"
    clean = attention.remember(states, mask)
    wanted = attention.attend(query, clean, attention.start(clean).repeat_interleave(K, 0))
    torch.testing.assert_close((*said, after), wanted)


@EACH
def test_a_source_that_is_wholly_hidden_is_finite_both_ways(kind: str) -> None:
    attention = part(kind)
    query, states, _ = batch()
    states.requires_grad_()
    mask = torch.tensor([[True] * S, [False] * S])
    context, weights = attention(query[:N], states, mask)
    assert not context[0].any()
    assert not weights[0].any()
    (context.sum() + weights.square().sum()).backward()
    for gradient in (states.grad, *(parameter.grad for parameter in attention.parameters())):
        assert gradient is None or torch.isfinite(gradient).all()


def test_the_gates_are_those_of_the_library() -> None:
    """One cell of torch.nn.GRUCell at each source position, on [α; h; query]."""
    mine = GatedCoverage(WIDTH, 5, 4).double()
    cell = nn.GRUCell(1 + 5 + WIDTH, 4).double()
    with torch.no_grad():
        cell.weight_ih.copy_(torch.cat([mine.look.weight, mine.key.weight, mine.query.weight], 1))
        cell.bias_ih.copy_(mine.key.bias)
        cell.weight_hh.copy_(mine.before.weight)
        cell.bias_hh.copy_(mine.before.bias)
    before, weights = torch.randn(N, K, S, 4).double(), torch.rand(N, K, S).double()
    query, states = torch.randn(N, K, WIDTH).double(), torch.randn(N, S, 5).double()
    got = mine(before, weights, query, mine.know(states))
    given = [
        weights[..., None],
        states[:, None].expand(-1, K, -1, -1),
        query[:, :, None].expand(-1, -1, S, -1),
    ]
    wanted = cell(torch.cat(given, -1).flatten(0, 2), before.flatten(0, 2)).view_as(before)
    torch.testing.assert_close(got, wanted)


def test_a_fertility_of_one_half_counts_looks_double() -> None:
    mine = FertilityCoverage(WIDTH, most=1.0)
    nn.init.zeros_(mine.fertility.weight)  # σ(0) = 1/2
    after = mine(
        torch.zeros(1, 1, 3, 1), torch.tensor([[[0.25, 0.75, 0.0]]]), torch.zeros(1, 1, 1), mine.know(torch.randn(1, 3, WIDTH))
    )
    torch.testing.assert_close(after.flatten(), torch.tensor([0.5, 1.5, 0.0]))


def test_a_location_is_the_sum_and_the_last_look_around_each_position() -> None:
    mine = LocationCoverage(1)
    looks = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6]])
    after = torch.zeros(1, 1, 3, mine.size)
    for look in looks:
        after = mine(after, look[None, None], torch.zeros(1, 1, 1), None)
    wanted = torch.tensor([[0.7, 0.0, 0.0, 0.4], [0.6, 0.0, 0.4, 0.6], [0.7, 0.4, 0.6, 0.0]])
    torch.testing.assert_close(after[0, 0], wanted)


@pytest.mark.parametrize("logit", [-1e4, 1e4])
def test_a_saturated_fertility_stays_finite(logit: float) -> None:
    mine = FertilityCoverage(1)
    nn.init.constant_(mine.fertility.weight, logit)
    known = mine.know(torch.ones(1, 2, 1))
    assert (known >= LEAST_FERTILITY).all()
    after = mine(torch.zeros(1, 1, 2, 1), torch.tensor([[[1.0, 0.0]]]), torch.zeros(1, 1, 1), known)
    after.sum().backward()
    assert torch.isfinite(after).all()
    assert mine.fertility.weight.grad is not None
    assert torch.isfinite(mine.fertility.weight.grad).all()


def test_fertility_is_computed_once_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    attention, calls = part("fertility"), []
    real = attention.coverage.fertility.forward
    monkeypatch.setattr(attention.coverage.fertility, "forward", lambda states: calls.append(states.shape) or real(states))
    query, states, mask = batch()
    attention.attend(query, keys := attention.remember(states, mask), attention.start(keys).repeat_interleave(K, 0))
    assert calls == [(N, S, WIDTH)]


@EACH
@pytest.mark.parametrize("score", SCORES)
def test_gradients_are_those_of_finite_differences(kind: str, score: str) -> None:
    """Of queries and states, through three looks, whose coverage depends on those before."""
    attention = part(kind, score)
    query, states, mask = batch()
    query, states = query[:N, :3].clone().requires_grad_(), states.requires_grad_()
    assert torch.autograd.gradcheck(lambda q, s: attention(q, s, mask), (query, states))
