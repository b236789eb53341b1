"""Selective layers: the paper's equations, targets in pieces, a state of one size; the encoder's way back; keys made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from nn_strategies import lengths
from torch import Tensor

from eyeline.config import Config
from eyeline.config_models import StateSpaceSettings
from eyeline.contracts import Source
from eyeline.errors import ConfigError
from eyeline.ladder import build
from eyeline.nn import MultiHeadAttention, SelectiveLayer
from eyeline.nn.state_space import turns
from reference import state_space

D, E, V = 6, 8, 12
WIDTHS = [1, 2, 4, 9]  # of the convolution; the last is longer than the target


def layer(convolution: int = 4, dtype: torch.dtype = torch.float64) -> SelectiveLayer:
    """A layer all of whose weights matter."""
    torch.manual_seed(0)
    made = SelectiveLayer(D, E, state_size=3, convolution=convolution, rank=2).to(dtype)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
    return made


def inputs(rows: int = 3, length: int = 7, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(rows, length, D, generator=torch.Generator().manual_seed(length), dtype=dtype)


def model(**given: Any) -> Any:
    torch.manual_seed(0)
    return build(StateSpaceSettings(**{"size": 8, "heads": 2, "dropout": 0.0, **given}), V, V).eval()


def source_of(sizes: list[int], width: int | None = None) -> Source:
    ids = torch.randint(4, V, (len(sizes), width or max(sizes)), generator=torch.Generator().manual_seed(len(sizes)))
    return Source(ids, torch.tensor(sizes))  # what lies beyond the lengths is garbage


@pytest.mark.parametrize("width", WIDTHS)
def test_the_layer_is_the_papers_equations(width: int) -> None:
    made, vectors = layer(width), inputs()
    outputs, _ = made(vectors, made.start(len(vectors), vectors))
    weights = {f"layer.{name}": parameter.detach().numpy() for name, parameter in made.named_parameters()}
    for row, sequence in enumerate(vectors):
        wanted = np.stack(state_space.selective(weights, "layer", list(sequence.numpy())))
        assert abs(outputs[row].detach().numpy() - wanted).max() < 1e-10


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_at_once_in_pieces_and_one_by_one(width: int, dtype: torch.dtype, tolerance: float) -> None:
    made, vectors = layer(width, dtype), inputs(dtype=dtype)
    whole, last = made(vectors, made.start(len(vectors), vectors))
    for cuts in ([7], [1] * 7, [3, 4], [5, 1, 1]):
        state, pieces = made.start(len(vectors), vectors), []
        for piece in vectors.split(cuts, 1):
            outputs, state = made(piece, state)
            pieces.append(outputs)
        for got, wanted in ((torch.cat(pieces, 1), whole), (state.window, last.window), (state.hidden, last.hidden)):
            torch.testing.assert_close(got, wanted, rtol=0, atol=tolerance)


def test_low_precision() -> None:
    """bfloat16 weights, or products in bfloat16: the scan is summed in single precision, whole and in pieces."""
    exact, vectors = layer(dtype=torch.float32), inputs(2, 200, torch.float32)
    wanted, _ = exact(vectors, exact.start(2, vectors))
    half, coarse = layer(dtype=torch.float32).bfloat16(), vectors.bfloat16()
    first, state = half(coarse[:, :150], half.start(2, coarse))
    rest, state = half(coarse[:, 150:], state)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed, _ = exact(vectors, exact.start(2, vectors))
    mixed.float().sum().backward()
    for got in (torch.cat([first, rest], 1), mixed):
        assert got.dtype == torch.bfloat16
        assert (got - wanted).abs().mean() < 0.02 * wanted.abs().mean()
    assert (state.window.dtype, state.hidden.dtype) == (torch.bfloat16, torch.float32)
    assert all(torch.isfinite(parameter.grad).all() for parameter in exact.parameters())


def test_gradients_through_the_whole_layer() -> None:
    made, vectors = layer(), inputs(2, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: made(x, made.start(len(x), x))[0], vectors)


def test_how_a_layer_starts() -> None:
    """A = -1 … -N in every channel, Δ between 0.001 and 0.1 and spread by its logarithm, D = 1 (section 3.6)."""
    made = SelectiveLayer(64, 4096)
    torch.testing.assert_close(-made.log_decay.exp(), -torch.arange(1.0, 17).expand(4096, 16))
    steps = torch.nn.functional.softplus(made.step_size.bias)
    assert 0.0009999 < steps.min() < 0.0012
    assert 0.09 < steps.max() < 0.10001
    assert 0.45 < (steps < 0.01).float().mean() < 0.55
    assert made.rank == 4
    assert torch.equal(made.skip, torch.ones(4096))


@given(sizes=lengths())
def test_turning_keeps_padding_behind(sizes: list[int]) -> None:
    source = source_of(sizes, 8)
    there = turns(source)
    assert torch.equal(there[there], torch.arange(len(sizes) * 8)), "turning twice changes nothing"
    turned = source.ids.flatten()[there].view_as(source.ids)
    for row, size in enumerate(sizes):
        assert turned[row, :size].tolist() == source.ids[row, :size].tolist()[::-1]
        assert torch.equal(turned[row, size:], source.ids[row, size:])


def test_the_way_back_starts_at_each_sources_own_last_symbol() -> None:
    """With one layer, whose convolution sees one position, only the scan backwards tells the first state of the last symbol."""
    made = model(encoder_layers=1, convolution=1)
    source = source_of([3, 6], 8)
    before = made.encoder(source).states
    for row, size in ((0, 3), (1, 6)):
        for column in range(8):
            ids = source.ids.clone()
            ids[row, column] = 4 + (ids[row, column] - 3) % (V - 4)
            after = made.encoder(Source(ids, source.lengths)).states
            assert torch.equal(after[1 - row], before[1 - row])
            assert torch.equal(after[row, 0], before[row, 0]) == (column >= size), f"source {row}, column {column}"


@pytest.mark.parametrize("rows", [1, 4])
def test_the_state_is_of_one_size_whatever_the_length(rows: int) -> None:
    """R · L · (W - 1 + N) · E numbers after one token and after 300."""
    made = model(decoder_layers=3, state_size=5, convolution=4, expansion=2)
    memory = made.encode(source_of([5] * rows))
    state, sizes = made.decoder.start(memory), []
    with torch.no_grad():
        for token in torch.randint(4, V, (300, rows)):
            _, state = made.decoder.step(token, state, memory)
            sizes.append(sum(part.window.numel() + part.hidden.numel() for part in state.layers))
    assert set(sizes) == {rows * 3 * (3 + 5) * 16}


def test_a_step_takes_part_in_no_more_than_its_state() -> None:
    """A window that is a view of a whole target would keep all of it in memory."""
    made = model()
    memory = made.encode(source_of([5]))
    _, state = made.decoder.advance(torch.randint(4, V, (1, 200)), made.decoder.start(memory), memory)
    for part in state.select(torch.tensor([0])).layers:
        for tensor in (part.window, part.hidden):
            assert tensor.untyped_storage().nbytes() == tensor.numel() * 4


def test_keys_are_made_once_and_weights_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made, calls = model(), {"remember": 0, "weights": 0}
    for name in calls:
        real = getattr(MultiHeadAttention, name)

        def counted(*arguments: Any, name: str = name, real: Any = real) -> Any:
            calls[name] += 1
            return real(*arguments)

        monkeypatch.setattr(MultiHeadAttention, name, counted)
    memory = made.encode(source_of([5, 2]))
    state = made.decoder.start(memory)
    for token in torch.randint(4, V, (6, 2)):
        step, state = made.decoder.step(token, state, memory)
    assert calls == {"remember": 2, "weights": 0}  # a call a layer
    torch.testing.assert_close(step.attention["source"].sum(-1), torch.ones(2))
    assert calls["weights"] == 1


def test_every_layer_and_head_can_be_looked_at() -> None:
    source, tokens = source_of([5, 2]), torch.randint(4, V, (2, 6))
    plain = model()
    maps = plain.decoder.maps(tokens, plain.encode(source))
    assert {name: map.shape for name, map in maps.items()} == {f"source.{layer}": (2, 2, 6, 5) for layer in (0, 1)}
    for layer in (0, 1, -1):
        for head in (0, 1, None):
            made = model(alignment_layer=layer, alignment_head=head)
            wanted = maps[f"source.{layer % 2}"]
            shown = made(source, tokens).attention["source"]
            torch.testing.assert_close(shown, wanted.mean(1) if head is None else wanted[:, head])


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"size": 10, "heads": 4}, "heads=4 cannot share size=10"),
        ({"alignment_layer": 2}, "alignment_layer=2 is none of decoder_layers=2"),
        ({"alignment_head": 4}, "alignment_head=4 is none of heads=4"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, int], line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        Config.from_dict({"model": {"architecture": "state-space", **given}})
