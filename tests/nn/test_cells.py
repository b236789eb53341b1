"""Recurrent cells, stacks, bridge and the layers before the output, against their equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from eyeline.nn import Attentional, CopyBridge, DenseBridge, Maxout, Stack
from reference import cells as reference
from reference.cells import Weights

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
I, D = 3, 4  # widths of input and state


def stack(kind: str, depth: int) -> Stack:
    torch.manual_seed(0)
    made = Stack([CELLS[kind](I if layer == 0 else D, D, batch_first=True) for layer in range(depth)])
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.double()


def weights_of(cell: nn.RNNBase) -> Weights:
    parts = (getattr(cell, f"{name}_l0").detach().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    return Weights(*parts)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_stack_is_the_papers_cells_on_top_of_each_other(kind: str, depth: int) -> None:
    """Outputs and the state after them, [R, L, P, D], from a state that is not zero."""
    module = stack(kind, depth)
    inputs = torch.randn(2, 5, I, dtype=torch.float64)
    before = torch.randn(2, depth, 2 if kind == "lstm" else 1, D, dtype=torch.float64)
    with torch.no_grad():
        outputs, after = module(inputs, before)
    assert after.shape == before.shape
    for row in range(2):
        state = [before[row, layer].numpy() for layer in range(depth)]
        for position in range(5):
            x = inputs[row, position].numpy()
            for layer in range(depth):
                state[layer] = reference.CELLS[kind](x, state[layer], weights_of(module.layers[layer]))
                x = state[layer][0]
            np.testing.assert_allclose(outputs[row, position].numpy(), x, rtol=0, atol=1e-10)
        np.testing.assert_allclose(after[row].numpy(), np.stack(state), rtol=0, atol=1e-10)


def test_where_the_gru_differs_from_chos() -> None:
    """Ours resets U h, Cho et al. 2014 (equation 8) reset h before U: one and the same only for a diagonal U without a bias."""
    random = np.random.default_rng(0)
    x, h = random.normal(size=I), random.normal(size=(1, D))
    W, U = random.normal(size=(3 * D, I)), random.normal(size=(3 * D, D))
    b, c = random.normal(size=3 * D), random.normal(size=3 * D)
    full = Weights(W, U, b, c)
    assert np.abs(reference.gru(x, h, full) - reference.gru_of_cho(x, h, full)).max() > 0.01
    diagonal, no_bias = U.copy(), c.copy()
    diagonal[2 * D :] = np.diag(random.normal(size=D))
    no_bias[2 * D :] = 0.0
    plain = Weights(W, diagonal, b, no_bias)
    np.testing.assert_allclose(reference.gru(x, h, plain), reference.gru_of_cho(x, h, plain), rtol=0, atol=1e-12)


def test_how_a_cell_starts() -> None:
    """Orthogonal recurrent weights gate by gate, zero biases, and an LSTM whose forget gate starts open at one."""
    module = Stack([nn.LSTM(I, D, batch_first=True)])
    weights = weights_of(module.layers[0])
    for gate in range(4):
        block = weights.gate(gate, 4)
        np.testing.assert_allclose(block.U @ block.U.T, np.eye(D), atol=1e-5)
        np.testing.assert_array_equal(block.b + block.c, np.full(D, 1.0 if gate == 1 else 0.0))


def test_dropout_between_layers_acts_on_what_the_next_layer_reads() -> None:
    """None before the lowest layer and none after the highest: those are the embedding's and the decoder's own."""
    torch.manual_seed(0)
    one = Stack([nn.GRU(I, D, batch_first=True)], 0.5).train()
    two = Stack([nn.GRU(I, D, batch_first=True), nn.GRU(D, D, batch_first=True)], 0.5).train()
    inputs = torch.randn(2, 3, I)
    first, second = (one(inputs, torch.zeros(2, 1, 1, D))[0] for _ in range(2))
    assert torch.equal(first, second)
    first, second = (two(inputs, torch.zeros(2, 2, 1, D))[0] for _ in range(2))
    assert not torch.equal(first, second)


# ---- bridge -------------------------------------------------------------------------------------------------------------------


def test_a_copy_bridge_copies() -> None:
    final = torch.randn(2, 3, 2, 4)
    assert torch.equal(CopyBridge()(final), final)


@pytest.mark.parametrize(
    ("below", "above", "pairs"), [(1, 1, [0]), (2, 2, [0, 1]), (1, 3, [0, 0, 0]), (3, 1, [2]), (3, 2, [1, 2]), (2, 3, [0, 0, 1])]
)
@pytest.mark.parametrize("planes", [1, 2])
def test_a_dense_bridge_pairs_layers_from_the_top(below: int, above: int, pairs: list[int], planes: int) -> None:
    """Each decoder layer has its own map of its own encoder layer: tanh for h, linear for an LSTM's c."""
    torch.manual_seed(0)
    module = DenseBridge(below, 5, above, 4, planes).double()
    final = torch.randn(2, below, planes, 5, dtype=torch.float64)
    with torch.no_grad():
        first = module(final)
    assert first.shape == (2, above, planes, 4)
    weights = {name: value.numpy() for name, value in module.state_dict().items()}
    for row, (layer, pair) in ((row, item) for row in range(2) for item in enumerate(pairs)):
        for plane in range(planes):
            name = f"maps.{layer}.{plane}"
            mapped = weights[f"{name}.weight"] @ final[row, pair, plane].numpy() + weights[f"{name}.bias"]
            wanted = np.tanh(mapped) if plane == 0 else mapped
            np.testing.assert_allclose(first[row, layer, plane].numpy(), wanted, rtol=0, atol=1e-12)


# ---- before the output layer ---------------------------------------------------------------------------------------------------


def test_maxout_by_hand() -> None:
    """Pieces 1 and 2 compete, 3 and 4 compete."""
    module = Maxout(4, 2)
    module.load_state_dict({"linear.weight": torch.eye(4), "linear.bias": torch.zeros(4)})
    assert module(torch.tensor([1.0, 5.0]), torch.tensor([-3.0, -4.0])).tolist() == [5.0, -3.0]


def test_maxout_and_the_attentional_vector_are_the_papers() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 2, dtype=torch.float64)
    out, mixed = Maxout(5, 4).double(), Attentional(5, 4).double()
    with torch.no_grad():
        got = [(out(a, b), "maxout"), (mixed(a, b), "attentional")]
    for tensor, kind in got:
        for row in range(5):
            if kind == "maxout":
                joined = np.concatenate([a[row].numpy(), b[row].numpy()])
                wanted = reference.maxout(joined, _numpy(out.linear.weight), _numpy(out.linear.bias))
            else:
                wanted = reference.attentional(a[row].numpy(), b[row].numpy(), _numpy(mixed.linear.weight))
            np.testing.assert_allclose(tensor[row].numpy(), wanted, rtol=0, atol=1e-12)


def _numpy(tensor: Tensor) -> reference.Array:
    return tensor.detach().numpy()  # type: ignore[no-any-return]
