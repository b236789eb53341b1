"""The recurrence and the selective scan: both ways to compute them, any tiling, gradients, stability, memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from eyeline.nn import scan, selective_scan

FORMS = {"in turn": 0, "in pairs": 1 << 40}  # NARROW that makes it so
TILINGS = {"one tile": (1 << 19, 64), "two positions": (1, 2), "one position": (1, 1), "some rows": (40, 5)}  # TILE, LEAST_CHUNK
Arguments = tuple[Tensor, ...]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(scan, "NARROW", FORMS[request.param])
    return str(request.param)


def tiled(monkeypatch: pytest.MonkeyPatch, tiling: str) -> None:
    tile, chunk = TILINGS[tiling]
    monkeypatch.setattr(scan, "TILE", {"cpu": tile})
    monkeypatch.setattr(scan, "LEAST_CHUNK", chunk)


def arguments(B: int, T: int, E: int, N: int, dtype: torch.dtype = torch.float64) -> Arguments:
    """x, Δ, A, B, C and the state before, as a layer would have them."""
    random = torch.Generator().manual_seed(B * 1000 + T * 100 + E * 10 + N)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    steps, rates = normal(B, T, E).exp() / 5, -normal(E, N).exp()
    drawn = normal(B, T, E), steps, rates, normal(B, T, N), normal(B, T, N), normal(B, N, E)
    return tuple(each.to(dtype).requires_grad_() for each in drawn)


def by_the_paper(x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """Gu & Dao 2023, equation 2, channel by channel, with the discretisation that `selective_scan` names."""
    outputs, last = torch.zeros_like(x), torch.zeros_like(initial)
    for row in range(x.shape[0]):
        for e in range(x.shape[2]):
            for n in range(A.shape[1]):
                h = initial[row, n, e]
                for t in range(x.shape[1]):
                    h = torch.exp(delta[row, t, e] * A[e, n]) * h + delta[row, t, e] * B[row, t, n] * x[row, t, e]
                    outputs[row, t, e] += C[row, t, n] * h
                last[row, n, e] = h
    return outputs, last


def step_by_step(x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """The same with one loop, over positions, for autograd and larger sizes."""
    h, outputs = initial.transpose(1, 2), []
    for t in range(x.shape[1]):
        h = torch.exp(delta[:, t, :, None] * A) * h + (delta[:, t] * x[:, t])[..., None] * B[:, t, None]
        outputs.append((h * C[:, t, None]).sum(-1))
    return torch.stack(outputs, 1), h.transpose(1, 2)


def near(a: Any, b: Any, tolerance: float) -> None:
    for one, other in zip(a, b, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("length", [*range(1, 18), 31, 32, 33, 100])
def test_both_forms_are_the_recurrence_in_either_direction(length: int) -> None:
    decay, drive = torch.rand(2, length, 3, dtype=torch.float64), torch.randn(2, length, 3, dtype=torch.float64)
    wanted, back = drive.clone(), drive.clone()
    for t in range(1, length):
        wanted[:, t] += decay[:, t] * wanted[:, t - 1]
    for t in range(length - 2, -1, -1):
        back[:, t] += decay[:, t + 1] * back[:, t + 1]
    for function, states in ((scan.recur, wanted), (scan.recur_backwards, back)):
        got = drive.clone()
        function(decay, got)
        near([got], [states], 1e-12)


@settings(max_examples=40)
@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3)),
    form=st.sampled_from(list(FORMS)),
    tiling=st.sampled_from(list(TILINGS)),
)
def test_the_scan_is_the_papers_recurrence(sizes: tuple[int, int, int, int], form: str, tiling: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "NARROW", FORMS[form])
        tiled(patch, tiling)
        exact, rough = arguments(*sizes), arguments(*sizes, dtype=torch.float32)
        near(selective_scan(*exact), by_the_paper(*exact), 1e-10)
        near(selective_scan(*rough), by_the_paper(*rough), 1e-4)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("length", [1, 5])
def test_gradients_of_all_arguments(tiling: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tiled(monkeypatch, tiling)
    assert torch.autograd.gradcheck(selective_scan, arguments(2, length, 3, 2))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("sizes", [(2, 300, 32, 4), (13, 20, 64, 16)])
def test_values_and_gradients_against_autograd_of_the_loop(sizes: tuple[int, int, int, int]) -> None:
    def both(scanner: Callable[..., tuple[Tensor, Tensor]], dtype: torch.dtype) -> list[Tensor]:
        given = arguments(*sizes, dtype=dtype)
        outputs, last = scanner(*given)
        return [outputs, last, *torch.autograd.grad(outputs.sin().sum() + last.cos().sum(), given)]

    exact = both(step_by_step, torch.float64)
    near(both(selective_scan, torch.float64), exact, 1e-10)
    for got, wanted in zip(both(selective_scan, torch.float32), exact, strict=True):
        assert (got - wanted).abs().max() < 1e-5 * max(1.0, wanted.abs().max().item())


@pytest.mark.usefixtures("form")
def test_a_state_handed_on_goes_on_as_if_nothing_had_been() -> None:
    x, delta, A, B, C, initial = arguments(2, 20, 3, 4)
    whole = selective_scan(x, delta, A, B, C, initial)
    for cut in (1, 7, 19):
        first, state = selective_scan(x[:, :cut], delta[:, :cut], A, B[:, :cut], C[:, :cut], initial)
        rest, last = selective_scan(x[:, cut:], delta[:, cut:], A, B[:, cut:], C[:, cut:], state)
        near([torch.cat([first, rest], 1), last], whole, 1e-10)


def test_no_positions_and_no_rows() -> None:
    x, *others, initial = arguments(2, 0, 3, 4)
    outputs, last = selective_scan(x, *others, initial)
    assert outputs.shape == x.shape
    assert torch.equal(last, initial)
    outputs.sum().backward()
    assert [each.shape for each in selective_scan(*arguments(0, 4, 3, 2))] == [(0, 4, 3), (0, 2, 3)]


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("step", [1e-6, 1.0, 50.0, 1e4])
def test_products_of_decays_may_underflow(step: float) -> None:
    """Over 3000 positions e^(Δ A) multiplies to zero, or is zero at once; nothing is divided by it."""
    x, delta, *others = arguments(1, 3000, 2, 2, dtype=torch.float32)
    delta = torch.full_like(delta, step, requires_grad=True)
    given = (x, delta, *others)
    outputs, last = selective_scan(*given)
    wanted = step_by_step(*(each.double() for each in given))
    for got, exact in zip((outputs, last), wanted, strict=True):
        assert (got - exact).abs().max() < 2e-4 * exact.abs().max()  # what 3000 roundings of a decay near 1 come to
    for gradient in torch.autograd.grad(outputs.sum(), given):
        assert torch.isfinite(gradient).all()


def test_memory_for_the_backward_pass_does_not_hold_the_states() -> None:
    """At T = 1024, N = 16: what is kept is about the arguments, and not N times them; a tile is small whatever the sizes."""
    given = arguments(2, 1024, 64, 16, dtype=torch.float32)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor):
        selective_scan(*given)
    assert sum(kept) < 5 * given[0].numel()
    for batch, length in ((1, 10_000), (1000, 10), (200, 200)):
        rows, chunks = scan._tiles(torch.empty(batch, length, 512), torch.empty(16, 512))
        assert max(r.stop - r.start for r in rows) * max(c.stop - c.start for c in chunks) * 16 * 512 <= scan.TILE["cpu"]
        assert sum(r.stop - r.start for r in rows) == batch
        assert sum(c.stop - c.start for c in chunks) == length
