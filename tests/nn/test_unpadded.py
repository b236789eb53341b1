"""A batch without its padding: laid out and back, and models that learn the same with padding and without."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from answers import LENGTHS, some_inputs, some_source
from eyeline.contracts import PAD
from eyeline.nn.multihead import join_heads, split_heads
from eyeline.nn.unpadded import Unpadded
from eyeline.products import BLOCK, MANY
from rungs import RUNGS, make

PACKED = [name for name, settings in RUNGS.items() if "transformer" in settings.architecture]


def padded(rows: int, length: int, seed: int) -> tuple[Tensor, Unpadded]:
    """A mask with padding anywhere, and what is real of it."""
    mask = torch.rand(rows, length, generator=torch.Generator().manual_seed(seed)) < 0.3
    mask[0, 0], mask[-1, -1] = False, True
    real = Unpadded.of(mask)
    assert real is not None
    return mask, real


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 1000))
def test_there_and_back(rows: int, length: int, seed: int) -> None:
    mask, real = padded(rows, length, seed)
    grid = numbers(rows, length, 6)
    packed = real.pack(grid)
    assert torch.equal(packed, grid[~mask])
    assert torch.equal(real.spread(packed), grid.masked_fill(mask[..., None], 0.0))


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 1000), st.sampled_from([(1, 2), (2, 3), (3, 1)]))
def test_heads_are_those_of_the_grid(rows: int, length: int, seed: int, many: tuple[int, int]) -> None:
    (mask, real), (parts, heads) = padded(rows, length, seed), many
    grid = numbers(rows, length, parts * heads * 4)
    found = real.split_heads(grid[~mask], parts, heads)
    wanted = split_heads(grid.masked_fill(mask[..., None], 0.0), heads, parts)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, wanted, strict=True))
    for part in wanted:
        assert torch.equal(real.join_heads(part), join_heads(part)[~mask])


@pytest.mark.parametrize("length", [7, MANY])
def test_gradients_against_differences(length: int) -> None:
    """Those of a few rows, and of so many that rows of zeros are put behind them, which nothing must reach."""
    mask, real = padded(3, length, 1)
    rows = int((~mask).sum())
    spare = real.pack(numbers(3, length, 4)).shape[0] - rows
    assert (spare > 0) == (length == MANY)
    for function, shape in (
        (real.pack, (3, length, 4)),
        (real.spread, (rows + spare, 4)),
        (lambda packed: torch.stack(real.split_heads(packed, 2, 2)), (rows + spare, 8)),
        (real.join_heads, (3, 2, length, 2)),
    ):
        inputs = numbers(*shape).requires_grad_()
        assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
        made = function(inputs)
        (slope,) = torch.autograd.grad(made.sum(), inputs)
        moved = made.detach() != 0
        assert int(moved.sum()) == int(slope.sum()), "each number goes to one place, and padding nowhere"


def test_many_rows_are_filled_up() -> None:
    mask = torch.zeros(MANY + 5, 2, dtype=torch.bool)
    mask[3, 1] = True
    real = Unpadded.of(mask)
    assert real is not None
    packed = real.pack(torch.ones(*mask.shape, 1))
    assert packed.sum() == 2 * MANY + 9
    assert len(packed) % BLOCK == 0
    assert len(packed) - packed.sum() < BLOCK


def test_where_nothing_is_left_out() -> None:
    assert Unpadded.of(torch.zeros(2, 3, dtype=torch.bool)) is None
    assert Unpadded.of(torch.ones(2, 3, dtype=torch.bool)) is None
    assert Unpadded.of(torch.zeros(2, 0, dtype=torch.bool)) is None


def learnt(model: Any, source: Any, inputs: Tensor, hidden: Tensor) -> list[Tensor]:
    """What a model in training says at the real positions, where it looks, and the gradients of a random sum of both."""
    model.zero_grad()
    step = model(source, inputs)
    said = [step.features[~hidden], step.attention["source"][~hidden], *([] if step.gate is None else [step.gate[~hidden]])]
    sum((each * numbers(*each.shape)).sum() for each in said).backward()
    return [*said, *(p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters())]


def counting(patch: pytest.MonkeyPatch) -> list[torch.Size]:
    """The masks of all batches that are packed from now on, by their shapes."""
    packed, real = list[torch.Size](), Unpadded.__init__

    def init(self: Unpadded, mask: Tensor) -> None:
        packed.append(mask.shape)
        real(self, mask)

    patch.setattr(Unpadded, "__init__", init)
    return packed


@pytest.mark.parametrize("rung", PACKED)
def test_a_model_learns_the_same_without_padding(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uneven sources and targets, an empty source among them."""
    model, dims = make(RUNGS[rung])
    model = model.double().train()
    for module in model.modules():
        if hasattr(module, "p"):
            module.p = 0.0  # a mask of another shape would be another draw
    inputs = some_inputs(dims, 4)
    hidden = torch.arange(inputs.shape[1]) >= torch.tensor([5, 2, 1, 4])[:, None]
    inputs = inputs.masked_fill(hidden, PAD)
    for lengths in (LENGTHS, (3, 0, 2, 5)):
        source = some_source(dims, lengths)
        with monkeypatch.context() as patch:
            packed = counting(patch)
            without = learnt(model, source, inputs, hidden)
        assert packed == [source.mask.shape, inputs.shape], "each once"
        with monkeypatch.context() as patch:
            patch.setattr(Unpadded, "of", classmethod(lambda cls, mask: None))
            whole = learnt(model, source, inputs, hidden)
        for ours, theirs in zip(without, whole, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_only_what_follows_the_last_symbol_is_padding() -> None:
    """A symbol after PAD is real, and so is the PAD before it."""
    model, dims = make(RUNGS["transformer-pre-relu-sinusoidal-tied"])
    model.train()
    tokens = some_inputs(dims, 4)
    tokens[0, 2:], tokens[1, 1] = PAD, PAD
    real = model.decoder.real(tokens, model.encode(some_source(dims)))
    assert real.pack(torch.ones(*tokens.shape, 1)).sum() == tokens.numel() - 3
    assert model.eval().decoder.real(tokens, model.encode(some_source(dims))) is None
