"""The recurrent encoder: any order of lengths, the width kept, each example's own two directions, reversal within lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from nn_strategies import lengths
from torch import Tensor, nn

from eyeline.contracts import PAD, Source
from eyeline.nn import Dropout, Embedding, Encoding, RecurrentEncoder, Reversed, recurrence
from eyeline.nn.cells import by_hand

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
VOCABULARY, E, D = 12, 3, 4


def encoder(kind: str = "gru", depth: int = 2, bidirectional: bool = True, dropout: float = 0.0) -> RecurrentEncoder:
    torch.manual_seed(0)
    width = D * (2 if bidirectional else 1)
    layers = [CELLS[kind](width if layer else E, D, batch_first=True, bidirectional=bidirectional) for layer in range(depth)]
    return RecurrentEncoder(Embedding(VOCABULARY, E, dropout), layers, dropout).eval()


def source_of(sizes: list[int], width: int | None = None) -> Source:
    ids = torch.randint(4, VOCABULARY, (len(sizes), width or max(sizes)), generator=torch.Generator().manual_seed(len(sizes)))
    return Source(ids, torch.tensor(sizes))  # what lies beyond the lengths is garbage


def near(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_unsorted_lengths_in_a_wider_tensor(kind: str, bidirectional: bool) -> None:
    """Lengths 2, 5, 1, 3 in a tensor of width 7: width kept, order kept, each row as alone, zeros beyond."""
    reader, source = encoder(kind, bidirectional=bidirectional), source_of([2, 5, 1, 3], 7)
    encoding = reader(source)
    assert encoding.states.shape == (4, 7, reader.size)
    assert encoding.final.shape == (4, 2, 2 if kind == "lstm" else 1, reader.size)
    assert torch.equal(encoding.mask, torch.arange(7) >= torch.tensor([[2], [5], [1], [3]]))
    for row, size in enumerate([2, 5, 1, 3]):
        alone = reader(Source(source.ids[row : row + 1, :size], torch.tensor([size])))
        near(encoding.states[row, :size], alone.states[0])
        near(encoding.final[row], alone.final[0])
        assert not encoding.states[row, size:].any()


@settings(max_examples=30, deadline=None)
@given(sizes=lengths())
def test_any_lengths(sizes: list[int]) -> None:
    """The top states in the last layer's state: forward at the last symbol, backward at the first, of the same example."""
    reader, source = encoder(), source_of(sizes, 8)
    encoding: Encoding = reader(source)
    for row, size in enumerate(sizes):
        near(encoding.final[row, -1, 0, :D], encoding.states[row, size - 1, :D])
        near(encoding.final[row, -1, 0, D:], encoding.states[row, 0, D:])
        alone = reader(Source(source.ids[row : row + 1, :size], torch.tensor([size])))
        near(encoding.final[row], alone.final[0])


class TwoDirections(nn.GRU):
    """A layer whose last states are given: forward [[1, 2], [3, 4]], backward [[5, 6], [7, 8]]; one pair a batch row."""

    def forward(self, inputs: nn.utils.rnn.PackedSequence) -> tuple[nn.utils.rnn.PackedSequence, Tensor]:  # type: ignore[override]
        outputs, _ = super().forward(inputs)
        return outputs, torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])


def test_directions_are_joined_within_an_example() -> None:
    reader = RecurrentEncoder(Embedding(VOCABULARY, E), [TwoDirections(E, 2, batch_first=True, bidirectional=True)])
    final = reader(source_of([3, 3])).final
    assert final[:, 0, 0].tolist() == [[1.0, 2.0, 5.0, 6.0], [3.0, 4.0, 7.0, 8.0]]


@pytest.mark.parametrize("kind", CELLS)
def test_last_states_of_one_example_do_not_depend_on_another(kind: str) -> None:
    reader, source = encoder(kind), source_of([4, 3])
    other = source.ids.clone()
    other[1] = (other[1] - 3) % (VOCABULARY - 4) + 4
    before, after = reader(source), reader(Source(other, source.lengths))
    near(before.final[0], after.final[0])
    assert not torch.allclose(before.final[1], after.final[1])


def test_layers_keep_their_own_last_states() -> None:
    """Layer l of `final` is what layer l alone ends with: layers are not mixed with directions."""
    reader, source = encoder("lstm", depth=2), source_of([4, 2])
    one = RecurrentEncoder(reader.embedding, [reader.layers[0]])  # type: ignore[list-item]
    near(reader(source).final[:, 0], one.eval()(source).final[:, 0])


@pytest.mark.parametrize("sizes", [[0, 3], [3, 0], [0, 0]])
@pytest.mark.parametrize("kind", CELLS)
def test_a_source_without_symbols(kind: str, sizes: list[int]) -> None:
    """No crash; it is hidden wholly, whatever its padding holds; its neighbour is as alone."""
    reader, source = encoder(kind), source_of(sizes, 4)
    encoding = reader(source)
    assert torch.isfinite(encoding.final).all()
    clean = reader(Source(source.ids.masked_fill(source.mask, PAD), source.lengths))
    near(encoding.final, clean.final)
    for row, size in enumerate(sizes):
        if size:
            near(encoding.final[row], reader(Source(source.ids[row : row + 1, :size], torch.tensor([size]))).final[0])
        else:
            assert encoding.mask[row].all()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_reversal_is_within_each_sources_own_length(bidirectional: bool) -> None:
    """Reading backwards = reading what was written backwards; states come back over the symbols they belong to."""
    inner, source = encoder(bidirectional=bidirectional), source_of([2, 5, 1, 3], 7)
    encoding = Reversed(inner)(source)
    for row, size in enumerate([2, 5, 1, 3]):
        written_backwards = inner(Source(source.ids[row : row + 1, :size].flip(1), torch.tensor([size])))
        near(encoding.final[row], written_backwards.final[0])
        near(encoding.states[row, :size], written_backwards.states[0].flip(0))
        assert not encoding.states[row, size:].any()


@pytest.mark.parametrize("spread", [1.0, 0.125])
def test_the_embedding_starts_with_its_spread_and_without_padding(spread: float) -> None:
    torch.manual_seed(0)
    table = Embedding(400, 64, spread=spread).table.weight
    assert not table[PAD].any()
    assert float(table[1:].std().detach()) == pytest.approx(spread, rel=0.05)
    assert Embedding(400, 64).table.weight[1:].std().item() == pytest.approx(1.0, rel=0.05)


def test_dropout_acts_with_one_layer_and_never_in_eval_mode() -> None:
    reader, source = encoder(depth=1, dropout=0.5), source_of([3, 2])
    near(reader(source).states, reader(source).states)
    reader.train()
    assert not torch.equal(reader(source).states, reader(source).states)
    assert not torch.equal(reader(source).final, reader(source).final)


def compare_by_hand(kind: str, bidirectional: bool, sizes: list[int]) -> None:
    """States, last states and all gradients of the loop by hand against packed sequences and autograd, in float64."""
    answers, source = [], source_of(sizes, 6)
    for ours in (True, False):
        reader = encoder(kind, bidirectional=bidirectional).double()
        inputs = torch.linspace(-1, 1, len(sizes) * 6 * E, dtype=torch.float64).view(len(sizes), 6, E).requires_grad_()
        cells = [by_hand(layer) for layer in reader.layers]
        encoding = reader._padded(inputs, source, cells) if ours else reader._packed(inputs, source)
        chance = torch.Generator().manual_seed(3)
        said = [encoding.states, encoding.final]
        sum((each * torch.randn(each.shape, generator=chance, dtype=each.dtype)).sum() for each in said).backward()
        weights = [parameter.grad for layer in reader.layers for parameter in layer.parameters()]
        answers.append([*said, inputs.grad, *weights])
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("sizes", [[2, 5, 1, 3], [4, 0, 1], [1]])
def test_the_loop_by_hand_equals_packed_sequences_and_autograd(kind: str, bidirectional: bool, sizes: list[int]) -> None:
    """An empty source among them."""
    compare_by_hand(kind, bidirectional, sizes)


def turned_round_in_the_padding(patch: pytest.MonkeyPatch) -> None:
    real = recurrence.Places.of

    def places(lengths: Tensor, width: int) -> recurrence.Places:
        return replace(real(lengths, width), turned=real(torch.full_like(lengths, width), width).turned)

    patch.setattr(recurrence.Places, "of", places)


def padding_learns(patch: pytest.MonkeyPatch) -> None:
    real = recurrence.Places.of
    patch.setattr(recurrence.Places, "of", lambda *given: replace(real(*given), hidden=torch.empty(0, dtype=torch.long)))


def last_states_teach_nothing(patch: pytest.MonkeyPatch) -> None:
    real = recurrence._slopes
    patch.setattr(recurrence, "_slopes", lambda outputs, last, *others: real(outputs, None, *others))


def the_other_way_teaches_the_wrong_positions(patch: pytest.MonkeyPatch) -> None:
    real = recurrence._slopes

    def slopes(outputs: Tensor, last: Tensor, states: Tensor, places: recurrence.Places) -> Tensor:
        return real(outputs, last, states, replace(places, turned=torch.arange(len(places.turned))))

    patch.setattr(recurrence, "_slopes", slopes)


def test_padding_holds_what_an_lstm_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "HOLD", 0.0)
    with pytest.raises(AssertionError, match="not close"):
        compare_by_hand("lstm", True, [2, 5, 1, 3])


@pytest.mark.parametrize(
    "fault",
    [turned_round_in_the_padding, padding_learns, last_states_teach_nothing, the_other_way_teaches_the_wrong_positions],
)
def test_the_comparison_notices(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError, match="not close"):
        compare_by_hand("gru", True, [2, 5, 1, 3])


def test_each_answer_alone_has_its_gradient() -> None:
    for pick in (0, 1):
        reader, found = encoder("lstm").double(), []
        for read in (lambda *given, reader=reader: reader.read(*given), reader._packed):
            inputs = torch.linspace(-1, 1, 3 * 6 * E, dtype=torch.float64).view(3, 6, E).requires_grad_()
            encoding = read(inputs, source_of([2, 6, 1], 6))
            (slope,) = torch.autograd.grad((encoding.states, encoding.final)[pick].square().sum(), inputs)
            found.append(slope)
        torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_dropout_between_layers_meets_both_ways_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dropout that is no chance, so that the loop by hand and packed sequences can be compared in training."""
    monkeypatch.setattr(Dropout, "forward", lambda self, inputs: inputs * torch.linspace(0, 2, inputs.shape[-1]).double())
    reader, source = encoder("gru", depth=2).double().train(), source_of([2, 5, 1], 6)
    inputs = torch.linspace(-1, 1, 3 * 6 * E, dtype=torch.float64).view(3, 6, E)
    padded, packed = reader.read(inputs, source), reader._packed(inputs, source)
    torch.testing.assert_close(padded.states, packed.states, rtol=0, atol=1e-12)
    torch.testing.assert_close(padded.final, packed.final, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", CELLS)
def test_gradients_by_finite_differences(kind: str) -> None:
    reader, source = encoder(kind).double(), source_of([3, 1], 3)
    weights = [parameter for layer in reader.layers for parameter in layer.parameters()]
    inputs = torch.linspace(-1, 1, 2 * 3 * E, dtype=torch.float64).view(2, 3, E).requires_grad_()

    def read(inputs: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        encoding = reader.read(inputs, source)
        return encoding.states, encoding.final

    assert torch.autograd.gradcheck(read, (inputs, *weights), fast_mode=True)


@pytest.mark.parametrize(("kind", "other"), [("rnn", "_padded"), ("gru", "_padded"), ("lstm", "_packed")])
def test_without_a_gradient_the_faster_way_is_taken(kind: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, source = encoder(kind), source_of([2, 3])
    wanted = reader(source)
    monkeypatch.setattr(RecurrentEncoder, other, None)
    with torch.no_grad():
        found = reader(source)
    near(found.states, wanted.states)
    near(found.final, wanted.final)


def test_mixed_precision_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, source = encoder(), source_of([2, 3])
    monkeypatch.setattr(RecurrentEncoder, "_padded", None)
    with torch.autocast("cpu", torch.bfloat16):
        assert reader(source).states.shape == (2, 3, 2 * D)
