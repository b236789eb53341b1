"""Positions: the papers' numbers, distances and the end of a table."""

from __future__ import annotations

import math

import pytest
import torch

from eyeline.errors import ConfigError
from eyeline.nn import Alibi, LearnedPositions, NoPositions, Rotary, Sinusoidal, Unordered
from eyeline.nn.positions import KEPT


@pytest.mark.parametrize("size", [8, 7, 1])
def test_sinusoids(size: int) -> None:
    """Section 3.5 of Vaswani et al. 2017, also for an odd width."""
    got = Sinusoidal(size)(torch.zeros(1, 3, size, dtype=torch.float64), start=41)[0]
    for row, position in enumerate((41, 42, 43)):
        for i in range(0, size, 2):
            angle = position / 10000 ** (i / size)
            assert got[row, i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            if i + 1 < size:
                assert got[row, i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_sinusoids_of_a_low_precision_are_those_of_a_high_one() -> None:
    fine, coarse = (Sinusoidal(8)(torch.zeros(1, 5, 8, dtype=kind), start=3000)[0] for kind in (torch.float64, torch.bfloat16))
    torch.testing.assert_close(coarse.double(), fine, rtol=0, atol=5e-3)


def test_rotary_scores_depend_on_distance_alone() -> None:
    rotary = Rotary(6)
    query, key = torch.randn(2, 1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores = {}
    for i, j in [(0, 0), (7, 7), (5, 2), (103, 100), (2, 5), (100, 103)]:
        turned = rotary.turn(query, torch.tensor([i])) @ rotary.turn(key, torch.tensor([j])).T
        scores.setdefault(i - j, []).append(turned.item())
    assert scores[0] == pytest.approx([(query @ key.T).item()] * 2)
    for near, far in scores.values():
        assert near == pytest.approx(far)
    assert len({round(near, 6) for near, _ in scores.values()}) == 3


def test_alibi_slopes_are_the_papers() -> None:
    """Press et al. 2022, section 3: for 8 heads 1/2, 1/4, …, 1/256."""
    bias = Alibi(8).bias(torch.tensor([5]), torch.arange(6), torch.float64)
    assert bias.shape == (8, 1, 6)
    for head in range(8):
        assert bias[head, 0].tolist() == [-(5 - j) / 2 ** (head + 1) for j in range(6)]
    sixteen = Alibi(16).bias(torch.tensor([1]), torch.tensor([0]), torch.float64)[:, 0, 0]
    assert (-sixteen).tolist() == pytest.approx([2 ** (-(h + 1) / 2) for h in range(16)])


def test_parts_that_tell_nothing_change_nothing() -> None:
    vectors, places = torch.randn(2, 3, 4), torch.arange(3)
    assert NoPositions()(vectors, 5) is vectors
    assert Unordered().turn(vectors, places) is vectors
    assert all(part.bias(places, places, torch.float32) is None for part in (Unordered(), Rotary(4)))
    assert Alibi(2).turn(vectors, places) is vectors


def test_the_end_of_a_table() -> None:
    """Padding may stand beyond it, symbols may not; the error names the length, the setting and its value."""
    table = LearnedPositions(4, 3)
    vectors = torch.zeros(2, 6, 3)
    mask = torch.arange(6) >= torch.tensor([[4], [2]])
    torch.testing.assert_close(table(vectors, 0, mask)[0, :4], table.table)
    torch.testing.assert_close(table(vectors[:, :1], start=3)[0], table.table[3:])
    with pytest.raises(ConfigError, match=r"an input of 6 symbols .* \(model.max_positions=4\)"):
        table(vectors)
    with pytest.raises(ConfigError, match="an input of 5 symbols"):
        table(vectors, 0, torch.arange(6) >= torch.tensor([[4], [5]]))
    with pytest.raises(ConfigError, match="an input of 5 symbols"):
        table(vectors[:, :1], start=4)


def test_an_odd_width_has_no_pairs() -> None:
    with pytest.raises(ConfigError, match="width 3 has one without a partner"):
        Rotary(3)


@pytest.mark.parametrize("start", [KEPT - 3, torch.tensor([KEPT - 3, 0])])
def test_sinusoids_go_on_beyond_those_that_are_kept(start: int | torch.Tensor) -> None:
    """One position after the other, the same as all at once, whichever way each was made."""
    sinusoidal, nothing = Sinusoidal(8), torch.zeros(2, 6, 8)
    together = sinusoidal(nothing, start)
    apart = torch.cat([sinusoidal(nothing[:, :1], start + t) for t in range(6)], 1)
    torch.testing.assert_close(apart, together, rtol=0, atol=1e-6)
    assert not torch.equal(together[:, 0], together[:, 5])


def test_sinusoids_made_in_prediction_serve_in_training() -> None:
    embedded = torch.randn(1, 2, 30, requires_grad=True)
    with torch.inference_mode():
        Sinusoidal(30)(embedded)
    (Sinusoidal(30)(embedded) ** 2).sum().backward()
    assert embedded.grad is not None
