"""The best of long rows."""

from __future__ import annotations

import pytest
import torch

from eyeline.search.candidates import LINES, WIDE, best_allowed


@pytest.mark.parametrize("width", [7, 500, WIDE - 1, WIDE, WIDE + 1, 2 * WIDE + LINES - 1, 5000])
@pytest.mark.parametrize("kinds", [3, 40, 10**6])
def test_the_best_of_a_row_equal_ones_by_id(width: int, kinds: int) -> None:
    """With few kinds of values nearly all are equal to others; some are impossible."""
    chance = torch.Generator().manual_seed(width)
    log_probs = -torch.randint(kinds, (6, width), generator=chance).float()
    log_probs[torch.rand(6, width, generator=chance) < 0.1] = -torch.inf
    for count in (1, 2, 10):
        values, ids = best_allowed(log_probs, count, [])
        wanted, order = log_probs.sort(descending=True, stable=True)
        size = min(count, width)
        assert torch.equal(values, wanted[:, :size].double())
        possible = values > -torch.inf
        assert torch.equal(ids[possible], order[:, :size][possible])


def test_what_is_forbidden_or_banned_is_not_offered() -> None:
    log_probs = torch.linspace(-5, -1, 2500).expand(2, -1)
    best = 2500 - 1
    values, ids = best_allowed(log_probs, 2, [best], torch.tensor([[best - 1, 0], [0, 0]]))
    offered = [sorted(row[value > -torch.inf].tolist())[-2:] for row, value in zip(ids, values, strict=True)]
    assert offered == [[best - 3, best - 2], [best - 2, best - 1]]
