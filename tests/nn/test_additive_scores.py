"""Additive scores in slices: the paper's formula, gradients of finite differences, and no more memory than both sides need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

import battery
from eyeline.nn import AdditiveScore, ConcatScore, Score, additive
from eyeline.nn.additive import additive_scores
from reference import attention as reference
from rungs import RUNGS, make

SLICES = [1, 7, 40, 10**6]  # one look a slice, a look or two, some rows, everything
SHAPES = [
    (2, 3, 4, 5),
    (3, 1, 4, 2),
    (2, 3, 1, 2),
    (1, 1, 1, 1),
    (5, 2, 2, 3),
    (2, 0, 3, 2),
    (2, 3, 0, 2),
    (0, 2, 3, 2),
    (2, 2, 2, 0),
]


@contextmanager
def slices_of(size: int) -> Iterator[None]:
    """Slices of `size` numbers, for small inputs too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additive, "SLICE", size)
        patch.setattr(additive, "SMALL", -1)
        yield


def some(*shape: int, seed: int = 0, kind: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(kind).requires_grad_()


def inputs(N: int, T: int, S: int, A: int, seed: int = 0, kind: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """N sources, T queries, S keys, A wide."""
    return some(N, T, A, seed=seed, kind=kind), some(N, S, A, seed=seed + 1, kind=kind), some(A, seed=seed + 2, kind=kind)


def plain(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[:, :, None] + keys[:, None]) @ vector


def answers(scores: Callable[..., Tensor], given: tuple[Tensor, ...]) -> list[Tensor]:
    """Scores and the gradients of all inputs, each score having another weight."""
    fresh = [tensor.detach().clone().requires_grad_() for tensor in given]
    made = scores(*fresh)
    (made * torch.randn(made.shape, generator=torch.Generator().manual_seed(3)).to(made.dtype)).sum().backward()
    return [made.detach(), *(tensor.grad for tensor in fresh if tensor.grad is not None)]


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 5)] * 4),
    size=st.integers(1, 200),
    seed=st.integers(0, 2**20),
    scale=st.sampled_from([0.01, 1.0, 50.0]),
)
def test_the_scores_are_the_papers(shape: tuple[int, int, int, int], size: int, seed: int, scale: float) -> None:
    """However the slices are cut, and where the tanh saturates."""
    query, keys, vector = (tensor.detach() * scale for tensor in inputs(*shape, seed=seed))
    with slices_of(size):
        scores = additive_scores(query, keys, vector)
    one, nothing = np.eye(shape[-1]), np.zeros(shape[-1])
    for n, t in np.ndindex(*shape[:2]):
        wanted = reference.additive(query[n, t].numpy(), keys[n].numpy(), one, nothing, one, vector.numpy())
        np.testing.assert_allclose(scores[n, t].numpy(), wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SLICES)
def test_gradients_are_those_of_finite_differences(shape: tuple[int, int, int, int], size: int) -> None:
    """One query, one key, and none at all among them."""
    with slices_of(size):
        assert torch.autograd.gradcheck(additive_scores, inputs(*shape))
        assert additive_scores(*inputs(*shape)).shape == shape[:3]


@pytest.mark.parametrize("size", SLICES)
@pytest.mark.parametrize("scale", [0.01, 1.0, 40.0])
def test_single_precision_differs_from_the_plain_formula_by_float_noise(size: int, scale: float) -> None:
    given = tuple((tensor * scale).detach() for tensor in inputs(3, 6, 5, 64, kind=torch.float32)[:2])
    given = (*given, some(64, seed=9, kind=torch.float32))
    with slices_of(size):
        got = answers(additive_scores, given)
    wanted = answers(plain, tuple(tensor.double() for tensor in given))
    for mine, exact in zip(got, wanted, strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine.double(), exact, rtol=1e-5, atol=5e-6)


def test_inputs_and_gradients_of_any_layout() -> None:
    """Transposed queries, keys that are one row for all, a gradient that is one number for all."""
    query = some(3, 5, 2).transpose(0, 1)  # [5, 3, 2]
    keys, vector = some(1, 4, 2, seed=1).expand(5, -1, -1), some(2, 2, seed=2)[:, 0]
    leaves = [query, keys, vector]
    with slices_of(9):
        mine = torch.autograd.grad(additive_scores(*leaves).sum(), leaves)
    for one, other in zip(mine, torch.autograd.grad(plain(*leaves).sum(), leaves), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(kind: torch.dtype) -> None:
    """So that it errs by the rounding of what goes in and comes out alone."""
    given = inputs(2, 3, 4, 300, kind=kind)
    with slices_of(500):
        got = answers(additive_scores, given)
    for mine, exact in zip(got, answers(plain, tuple(tensor.double() for tensor in given)), strict=True):
        assert mine.dtype == kind
        torch.testing.assert_close(mine.double(), exact, rtol=2 * torch.finfo(kind).eps, atol=2 * torch.finfo(kind).eps)


@pytest.mark.parametrize("made", [AdditiveScore, ConcatScore])
def test_autocast(made: Callable[[int, int, int], Score]) -> None:
    torch.manual_seed(0)
    score, query, keys = made(4, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 6, 3)
    wanted = score(query, score.project(keys))
    with slices_of(40), torch.autocast("cpu", torch.bfloat16):
        got = score(query, score.project(keys))
        got.float().sum().backward()
    torch.testing.assert_close(got.float(), wanted, rtol=0, atol=0.05)
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in score.parameters())


def test_they_can_be_differentiated_twice() -> None:
    with slices_of(40):
        assert torch.autograd.gradgradcheck(additive_scores, inputs(*SHAPES[0]))


class Largest(TorchDispatchMode):
    """The most numbers of any tensor that an operation makes, views of a larger one aside."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, Tensor):
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return out


@pytest.mark.parametrize(("N", "T", "S", "A"), [(2, 40, 50, 16), (40, 1, 50, 16), (300, 5, 3, 16), (1, 1, 500, 16)])
def test_no_tensor_of_all_the_numbers_is_ever_made(N: int, T: int, S: int, A: int) -> None:
    """Forwards and backwards nothing is larger than a slice or than either side; the plain formula would show."""
    query, keys, vector = inputs(N, T, S, A)
    most = max(1000, query.numel(), keys.numel(), N * T * S)
    for formula in (additive_scores, plain):
        with slices_of(1000), Largest() as largest:
            formula(query, keys, vector).sum().backward()
        assert (largest.numbers <= most) == (formula is additive_scores or most >= N * T * S * A), largest.numbers


def kept(run: Callable[[], Any]) -> int:
    """Numbers that a graph keeps for its backward pass; what is kept twice counts once."""
    stores: dict[int, Tensor] = {}
    with saved_tensors_hooks(
        lambda tensor: stores.setdefault(tensor.untyped_storage().data_ptr(), tensor), lambda tensor: tensor
    ):
        out = run()
    assert out is not None
    return sum(tensor.untyped_storage().nbytes() // tensor.element_size() for tensor in stores.values())


@pytest.mark.parametrize("made", [AdditiveScore, ConcatScore])
def test_what_is_kept_grows_with_the_sum_of_the_lengths(made: Callable[[int, int, int], Score]) -> None:
    """A target looked for in one call and one step after another, by the score functions as decoders call them."""
    score, N, A = made(8, 8, 16), 2, 16

    def looks(T: int, S: int, at_once: bool) -> int:
        query, keys = torch.randn(N, T, 8, requires_grad=True), torch.randn(N, S, 8, requires_grad=True)
        projected = score.project(keys)
        queries = [query] if at_once else query.split(1, 1)
        return kept(lambda: [score(part, projected) for part in queries])

    for at_once in (True, False):
        with slices_of(1000):
            small, large = looks(20, 20, at_once), looks(40, 40, at_once)
        assert large <= 2 * small
        assert large < N * 40 * 40 * A / 4
    assert looks(200, 200, True) < N * 200 * 200 * A / 4, "large inputs take slices by themselves"


@pytest.mark.parametrize("rung", ["bahdanau-bi-lstm-1x2", "luong-concat-bi-rnn-1x1"])
@pytest.mark.parametrize("check", battery.CHECKS)
def test_the_battery_over_slices(rung: str, check: str) -> None:
    """Tiny models take the plain formula, so here they are made to take slices."""
    with slices_of(50):
        battery.run(check, *make(RUNGS[rung]))


MUTANTS = [  # what stands in the file, and what might have stood there
    ("sub_(0.5)", "sub_(0.0)"),
    ("alpha=2, out=halves", "alpha=1, out=halves"),
    ("2 * query[", "query["),
    ("twice = 2 * vector", "twice = vector"),
    ("slice(row, row + rows)", "slice(0, rows)"),
    ("look : look + looks]", "0:looks]"),
    ("given.reshape(-1), alpha=2", "given.reshape(-1)"),
    ("new_full((), 0.25)", "new_full((), 1.0)"),
    ("value=-1, out=halves", "value=1, out=halves"),
    (".mul_(given[..., None])", ""),
    ("of_keys[rows].add_(", "of_keys[rows].copy_("),
    ("halves.sum(1)", "halves.sum(1).roll(1, 1)"),
    ("of_query.mul_(four)", "of_query"),
    ("of_keys.mul_(four)", "of_keys"),
]


@pytest.mark.parametrize(("said", "instead"), MUTANTS)
def test_a_planted_fault_is_caught(said: str, instead: str) -> None:
    """Each line that could be wrong, made wrong, gives another answer than the plain formula."""

    def differences(source: str) -> list[float]:
        module: dict[str, Any] = {}
        exec(compile(source, "additive.py", "exec"), module)
        module["SLICE"], module["SMALL"] = 40, -1
        given = inputs(2, 4, 4, 5)
        pairs = zip(answers(module["additive_scores"], given), answers(plain, given), strict=True)
        return [float((mine - wanted).abs().max()) for mine, wanted in pairs]

    source = Path(additive.__file__).read_text(encoding="utf-8")
    assert source.count(said) == 1
    assert max(differences(source)) < 1e-12
    assert max(differences(source.replace(said, instead))) > 1e-3
