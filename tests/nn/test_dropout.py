"""Dropout from random bytes: its rate, its scale, its gradient, its seed."""

from __future__ import annotations

import pytest
import torch

from eyeline.nn import Dropout


@pytest.mark.parametrize(("p", "share"), [(0.5, 0.5), (0.1, 26 / 256), (0.001, 1 / 256), (0.999, 255 / 256), (0.25, 0.25)])
def test_the_share_dropped_and_what_is_kept(p: float, share: float) -> None:
    """To the nearest 256th, but never none and never all; the mean stays what it was."""
    torch.manual_seed(0)
    out = Dropout(p)(torch.ones(1000, 333))
    kept = out != 0
    assert (1 - kept.double().mean() - share).abs() < 4 * (share * (1 - share) / 333_000) ** 0.5
    assert torch.allclose(out[kept], torch.tensor(1 / (1 - share)))


def test_every_place_of_a_word_has_the_same_chance() -> None:
    torch.manual_seed(0)
    kept = Dropout(0.5)(torch.ones(40_000, 8)) != 0
    assert ((kept.double().mean(0) - 0.5).abs() < 0.01).all()
    together = kept.double().T.cov()
    assert ((together - torch.diag(together.diag())).abs() < 0.005).all()


def test_gradient_where_kept_alone() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    out = Dropout(0.3)(inputs)
    (slope,) = torch.autograd.grad(out.sum(), inputs)
    assert torch.allclose(slope, torch.where(out != 0, 256 / (256 - 77), 0.0).double())


def test_seed_and_random_state_decide() -> None:
    part, inputs = Dropout(0.4), torch.ones(5, 9)
    torch.manual_seed(3)
    first, state = part(inputs), torch.get_rng_state()
    second = part(inputs)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(part(inputs), first)
    torch.set_rng_state(state)
    assert torch.equal(part(inputs), second)


def test_nothing_in_eval_mode_and_at_zero() -> None:
    inputs = torch.randn(3, 4)
    for part in (Dropout(0.5).eval(), Dropout(0.0)):
        state = torch.get_rng_state()
        assert part(inputs) is inputs
        assert part.noise((3, 4), inputs) is None
        assert torch.equal(torch.get_rng_state(), state), "no chance is used up"


def test_noise_is_what_forward_multiplies_by() -> None:
    part, inputs = Dropout(0.5), torch.randn(6, 7).bfloat16()
    torch.manual_seed(1)
    noise = part.noise(inputs.shape, inputs)
    torch.manual_seed(1)
    out = part(inputs)
    assert noise is not None
    assert noise.dtype == out.dtype == torch.bfloat16
    assert torch.equal(inputs * noise, out)


def test_no_elements() -> None:
    assert Dropout(0.5)(torch.ones(0, 4)).shape == (0, 4)
