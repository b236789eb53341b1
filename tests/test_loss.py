"""The loss over real tokens: label smoothing, padding, slices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from eyeline import loss
from eyeline.contracts import Source, Step
from loss_checks import LOSS_CHECKS, Logits, loss_of, some_logits


@pytest.mark.parametrize("check", LOSS_CHECKS)
def test_loss(check: str) -> None:
    LOSS_CHECKS[check]()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.floats(0, 0.9), st.integers(1, 200))
def test_any_mask_any_slice(seed: int, rows: int, positions: int, smoothing: float, size: int) -> None:
    """Whatever is hidden and however it is sliced: the sum, over what is not hidden, of the loss of each token alone."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, positions, 5, generator=random, dtype=torch.float64)
    gold = torch.randint(0, 5, (rows, positions), generator=random)
    mask = torch.rand(rows, positions, generator=random) < 0.4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "SLICE", size)
        result = loss_of(logits, gold, mask, smoothing)
    alone = [loss_of(logits[r : r + 1, t : t + 1], gold[r : r + 1, t : t + 1], None, smoothing) for r, t in (~mask).nonzero()]
    assert result.tokens == len(alone)
    assert float(result.objective) == pytest.approx(sum(float(part.objective) for part in alone), abs=1e-9)
    assert float(result.nll) == pytest.approx(sum(float(part.nll) for part in alone), abs=1e-9)


def test_the_plain_likelihood_asks_for_no_gradient() -> None:
    logits, gold, mask = some_logits()
    result = loss_of(logits, gold, mask, 0.1)
    assert result.objective.requires_grad
    assert not result.nll.requires_grad


def test_log_probabilities_of_the_whole_batch_never_stand_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head is never asked for more than SLICE log-probabilities, be it forward or backward, unless one row is more."""
    asked = []

    class Counting(Logits):
        def forward(self, step: Step, source: Source) -> Tensor:
            asked.append(step.features.numel())
            return super().forward(step, source)

    monkeypatch.setattr(loss, "SLICE", 60)  # two rows of 4 × 7
    logits, gold, mask = some_logits()
    source = Source(torch.ones(5, 1, dtype=torch.long), torch.ones(5, dtype=torch.long))
    result = loss.negative_log_likelihood(Counting(), Step(logits), source, gold, mask)
    before = len(asked)
    result.objective.backward()
    assert len(asked) > before, "nothing is made again in the backward pass"
    assert max(asked) <= 60
