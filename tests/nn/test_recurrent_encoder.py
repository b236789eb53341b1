"""The recurrent encoder: any order of lengths, the width kept, each example's own two directions, reversal within lengths."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from nn_strategies import lengths
from torch import Tensor, nn

from eyeline.contracts import PAD, Source
from eyeline.nn import Embedding, Encoding, RecurrentEncoder, Reversed

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


def test_the_embedding_starts_small_and_without_padding() -> None:
    torch.manual_seed(0)
    table = Embedding(400, 64).table.weight
    assert not table[PAD].any()
    assert float(table[1:].norm(dim=-1).mean().detach()) == pytest.approx(1.0, abs=0.05)


def test_dropout_acts_with_one_layer_and_never_in_eval_mode() -> None:
    reader, source = encoder(depth=1, dropout=0.5), source_of([3, 2])
    near(reader(source).states, reader(source).states)
    reader.train()
    assert not torch.equal(reader(source).states, reader(source).states)
    assert not torch.equal(reader(source).final, reader(source).final)
