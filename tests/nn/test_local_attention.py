"""Windows over the source against the formulas of Luong et al. 2015, section 3.2, whatever the score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from eyeline.config import Config
from eyeline.errors import ConfigError
from eyeline.nn import (
    AdditiveScore,
    Attention,
    ConcatScore,
    DotScore,
    GeneralScore,
    LocalMonotonic,
    LocalPredictive,
    ProjectedDotScore,
    ScaledDotScore,
    Score,
)
from reference import attention as reference

D = 4
SCORES: dict[str, Any] = {
    "additive": lambda: AdditiveScore(D, D, 5),
    "concat": lambda: ConcatScore(D, D, 5),
    "dot": lambda: DotScore(D, D),
    "general": lambda: GeneralScore(D, D),
    "scaled-dot": lambda: ScaledDotScore(D, D),
    "projected-dot": lambda: ProjectedDotScore(D, D, 2),
}
SCOPES = ["local-m", "local-p"]


def make(scope: str, window: int, score: str = "general", seed: int = 0) -> Any:
    torch.manual_seed(seed)
    inner: Score = SCORES[score]()
    made = LocalMonotonic(inner, window) if scope == "local-m" else LocalPredictive(inner, window, D)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.double()


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def hidden_beyond(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("scope", SCOPES)
@settings(max_examples=20, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    k=st.integers(1, 3),
    looks=st.integers(1, 4),
    window=st.integers(1, 3),
    first=st.integers(0, 8),
    seed=st.integers(0, 2**20),
)
def test_the_window_is_the_papers(
    scope: str, score: str, lengths: list[int], k: int, looks: int, window: int, first: int, seed: int
) -> None:
    """Each look alone, over its source without padding; K rows a source; local-m from any position on."""
    module = make(scope, window, score, seed)
    query = some(len(lengths) * k, looks, D, seed=seed)
    states = some(len(lengths), max(lengths), D, seed=seed + 1)
    with torch.no_grad():
        keys = module.remember(states, hidden_beyond(lengths))
        looked = torch.full((len(query),), first) if scope == "local-m" else module.start(keys)
        context, weights, after = module.attend(query, keys, looked)
        scores = module.score(query.view(len(lengths), -1, D), module.score.project(states)).view(len(query), looks, -1)
    assert scope == "local-p" or after.tolist() == [first + looks] * len(query)
    for row, t in np.ndindex(len(query), looks):
        length = lengths[row // k]
        if scope == "local-m":
            wanted = reference.within(scores[row, t, :length].numpy(), min(first + t, length - 1), window)
        else:
            W, v = module.hidden.weight.detach().numpy(), module.place.weight[0].detach().numpy()
            p = reference.predicted(query[row, t].numpy(), W, v, length)
            wanted = reference.favoured(reference.within(scores[row, t, :length].numpy(), p, window), p, window)
        np.testing.assert_allclose(weights[row, t, :length].numpy(), wanted, rtol=0, atol=1e-10)
        assert not weights[row, t, length:].any()
        assert weights[row, t].any(), "a look that sees nothing"
        seen = reference.weighted_sum(wanted, states[row // k, :length].numpy())
        np.testing.assert_allclose(context[row, t].numpy(), seen, rtol=0, atol=1e-10)


def test_monotonic_windows_by_hand() -> None:
    """Equal scores over a source of 4, D = 1: the window slides, and stays at the end of the source."""
    module = LocalMonotonic(DotScore(2, 2), 1)
    _, weights = module(torch.zeros(1, 6, 2), torch.ones(1, 4, 2))
    third = 1 / 3
    wanted = [[0.5, 0.5, 0, 0], [third] * 3 + [0], [0] + [third] * 3, *[[0, 0, 0.5, 0.5]] * 3]
    torch.testing.assert_close(weights[0], torch.tensor(wanted))


@pytest.mark.parametrize("pieces", [[5], [1] * 5, [2, 3], [4, 1]])
def test_the_counter_is_handed_on(pieces: list[int]) -> None:
    """Looks in pieces are looks at once; hypotheses that differ in where they are go their own ways."""
    module, states = make("local-m", 1), some(2, 6, D)
    keys = module.remember(states, hidden_beyond([6, 3]))
    query, begun = some(4, 5, D, seed=1), torch.tensor([0, 2, 1, 0])
    wanted = module.attend(query, keys, begun)
    parts, looked = [], begun
    for piece in query.split(pieces, 1):
        context, weights, looked = module.attend(piece, keys, looked)
        parts.append((context, weights))
    for number in (0, 1):
        torch.testing.assert_close(torch.cat([part[number] for part in parts], 1), wanted[number])
    assert looked.tolist() == wanted[2].tolist() == [5, 7, 6, 5]
    assert begun.tolist() == [0, 2, 1, 0], "the counter was counted up in place"


@pytest.mark.parametrize("end", [-1, 1])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_a_prediction_at_either_end_sees_its_end(end: int, kind: torch.dtype) -> None:
    """A sigmoid that has saturated, over a source whose length half precision cannot say; the narrowest window."""
    module = make("local-p", 1).to(kind)
    with torch.no_grad():
        module.place.weight.fill_(end * 1e4)
        module.hidden.weight.copy_(torch.eye(D))
        _, weights = module(torch.ones(1, 1, D, dtype=kind), torch.ones(1, 1003, D, dtype=kind))
    assert weights[0, 0].nonzero().flatten().tolist() == ([0, 1] if end < 0 else [1002])


def test_the_gaussian_is_not_normalised() -> None:
    """Equal scores, p = S / 2 = 2 and D = 2: each of four weights is a quarter of exp(-(s - 2)² / 2), σ being 1."""
    module = LocalPredictive(DotScore(2, 2), 2, 2)
    nn.init.zeros_(module.place.weight)
    _, weights = module(torch.zeros(1, 1, 2), torch.ones(1, 4, 2))
    wanted = torch.exp(-((torch.arange(4) - 2.0) ** 2) / 2) / 4
    torch.testing.assert_close(weights[0, 0], wanted)
    assert weights.sum() < 1


def test_the_predicted_position_learns() -> None:
    """Through the Gaussian: gradients of finite differences, those of the two position weights too, beside an empty source."""
    module, mask = make("local-p", 2, "projected-dot"), torch.tensor([[False] * 5, [True] * 5])
    names, weights = zip(*module.named_parameters(), strict=True)

    def run(query: Tensor, keys: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (query, keys, mask))  # type: ignore[no-any-return]

    inputs = [some(2, 3, D).requires_grad_(), some(2, 5, D, seed=1).requires_grad_()]
    inputs += [weight.detach().clone().requires_grad_() for weight in weights]
    assert torch.autograd.gradcheck(run, inputs)
    run(*inputs)[0].square().sum().backward()
    assert all(tensor.grad is not None and tensor.grad.any() for tensor in inputs)


@pytest.mark.parametrize("scope", SCOPES)
def test_an_empty_source_beside_another(scope: str) -> None:
    module, query, states = make(scope, 1), some(2, 3, D), some(2, 4, D, seed=1)
    context, weights = module(query, states, torch.tensor([[True] * 4, [False, False, True, True]]))
    assert not context[0].any()
    assert not weights[0].any()
    for mine, alone in zip((context[1:], weights[1:, :, :2]), module(query[1:], states[1:, :2]), strict=True):
        torch.testing.assert_close(mine, alone)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_window_as_wide_as_the_source_hides_nothing(scope: str) -> None:
    """local-m is then global attention; local-p is it too, but for the Gaussian, which fades with D."""
    query, states = some(2, 3, D), some(2, 5, D, seed=1)
    module = make(scope, 5 if scope == "local-m" else 10**6)
    for one, other in zip(module(query, states), Attention(module.score)(query, states), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"rank": 3}, "rank=3 is for score=projected-dot; score=general has none: leave rank out"),
        ({"rank": 3, "score": "scaled-dot"}, "score=scaled-dot has none"),
        ({"rank": 0, "score": "projected-dot"}, "model.rank=0"),
        ({"window": 0, "scope": "local-p"}, "model.window=0"),
        ({"scope": "local"}, "model.scope=local"),
    ],
)
def test_settings_that_cannot_be(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict({"model": {"architecture": "luong", **chosen}})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
