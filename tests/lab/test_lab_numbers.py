"""The laboratory's numbers against others' implementations: autograd, scipy, loops written here."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import spatial, special, stats
from torch import nn

from eyeline.contracts import BEGIN, END
from eyeline.lab import adversary, alignment, capacity, cost, dilution, faithfulness, gradients, order, saturation, timing
from eyeline.lab.bench import Bench
from eyeline.lab.practice import FIRST, binomial, one_source
from eyeline.nn import Encoding

# ---- saturation -----------------------------------------------------------------------------------------------------


def test_the_three_scores_are_those_of_the_books() -> None:
    rows = saturation.examples().rows
    assert [row[1] for row in rows] == ["[0.7856, 0.1753, 0.0391]", "[0.9993, 0.0003, 0.0003]", "[0.5761, 0.2119, 0.2119]"]


def test_the_norm_of_the_derivative_is_that_of_autograds_jacobian() -> None:
    scores = torch.randn(6, 9, dtype=torch.double) * 3
    found = saturation.jacobian_norm(scores.softmax(-1))
    for row, norm in zip(scores, found, strict=True):
        whole = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
        assert float(norm) == pytest.approx(float(torch.linalg.matrix_norm(whole)), rel=1e-9)


def test_weights_tell_the_scores_that_they_came_from() -> None:
    scores = torch.randn(4, 7, dtype=torch.double)
    torch.testing.assert_close(saturation.sharpened(scores.softmax(-1), 2.5), (2.5 * scores).softmax(-1))


def test_theory_is_the_limit_of_many_keys() -> None:
    keys = 20_000
    assert saturation.theory(4, keys) == pytest.approx(math.log(keys) - 2)
    share = math.sqrt(2 * math.log(keys) / 400)
    assert saturation.theory(400, keys) == pytest.approx(special.digamma(1) - special.digamma(1 - share))
    assert saturation.theory(20, keys) is None
    scores = np.random.default_rng(1).normal(size=(100, keys)) * math.sqrt(4)
    measured = stats.entropy(np.exp(scores), axis=1).mean()
    assert measured == pytest.approx(saturation.theory(4, keys), abs=0.02)


# ---- gradients ------------------------------------------------------------------------------------------------------


def cell_by_cell(model: nn.Module, kind: str, source: object, loss_of: object) -> torch.Tensor:
    """[S] what `state_gradients` answers, by PyTorch's single cells and zeros that are added to each state."""
    layer = model.encoder.layers[0]
    cell = {"rnn": nn.RNNCell, "lstm": nn.LSTMCell, "gru": nn.GRUCell}[kind](layer.input_size, layer.hidden_size).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    embedded = model.encoder.embedding(source.ids)
    rows, length = source.ids.shape
    planes = 2 if kind == "lstm" else 1
    state = [embedded.new_zeros(rows, layer.hidden_size) for _ in range(planes)]
    pushes = [embedded.new_zeros(rows, planes * layer.hidden_size, requires_grad=True) for _ in range(length)]
    seen = []
    for place in range(length):
        after = cell(embedded[:, place], tuple(state) if planes == 2 else state[0])
        after = list(after) if planes == 2 else [after]
        state = [plane + push for plane, push in zip(after, pushes[place].chunk(planes, -1), strict=True)]
        seen.append(state[0])
    loss = loss_of(Encoding(torch.stack(seen, 1), torch.stack(state, 1)[:, None], source.mask))
    found = torch.stack(torch.autograd.grad(loss, pushes), 1)
    return found.square().sum(-1).mean(0).sqrt()


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "rnn + attention", "lstm + attention"])
def test_gradients_of_states_are_those_of_single_cells(name: str) -> None:
    settings = gradients.GradientsSettings(size=8, batch=3)
    model = gradients._model(name, settings, Bench()).double()
    source = gradients._source(6, settings, Bench())
    answer = torch.arange(FIRST, FIRST + gradients.ANSWER).expand(3, -1)
    inputs, outputs = torch.cat([answer.new_full((3, 1), BEGIN), answer], 1), torch.cat([answer, answer.new_full((3, 1), END)], 1)

    def loss_of(encoding: Encoding) -> torch.Tensor:
        step = model.decoder(inputs, model.decoder.remember(encoding))
        return -model.head(step, source).gather(-1, outputs[..., None]).sum()

    expected = cell_by_cell(model, name.partition(" ")[0], source, loss_of)
    torch.testing.assert_close(gradients.state_gradients(model, source), expected, rtol=1e-7, atol=1e-12)


def test_the_product_of_jacobians_is_that_of_autograd() -> None:
    weight, inputs = torch.randn(5, 5, dtype=torch.double) / 2, torch.randn(7, 5, dtype=torch.double)

    def run(start: torch.Tensor, first: int) -> torch.Tensor:
        for given in inputs[first:]:
            start = torch.tanh(weight @ start + given)
        return start

    (real, bound), (real_of_three, bound_of_three) = gradients.recurrent_products(weight, inputs, (1, 3))
    before = torch.zeros(5, dtype=torch.double)
    for given in inputs[:4]:
        before = torch.tanh(weight @ before + given)
    whole = torch.autograd.functional.jacobian(lambda state: run(state, 4), before)
    assert real_of_three == pytest.approx(np.linalg.svd(whole.numpy())[1][0])
    assert real == pytest.approx(bound)
    assert real_of_three < bound_of_three


# ---- dilution -------------------------------------------------------------------------------------------------------


def test_the_probe_reads_what_is_there_and_nothing_else() -> None:
    draw = np.random.default_rng(1)
    symbols = draw.integers(0, dilution.SYMBOLS, 900)
    states = draw.normal(size=(900, 40))
    assert dilution.probe(states, symbols, 600) < 60  # of 300; chance is 19
    faint = states.copy()
    faint[:, :16] = 1e-7 * np.eye(16)[symbols]  # a millionth as loud as the rest
    assert dilution.probe(faint, symbols, 600) == 300


# ---- order ----------------------------------------------------------------------------------------------------------


def test_an_encoder_without_positions_is_blind_to_order_and_others_are_not() -> None:
    settings = order.OrderSettings(size=16)
    for scheme in order.POSITIONS:
        model = order._model(scheme, order.SYMBOLS, settings, Bench()).double()
        apart = order.equivariance(model, 12, Bench())
        assert apart < 1e-12 if scheme == "none" else apart > 1e-3
        moved = order.shifted(model, Bench())
        assert moved < 1e-10 if scheme in ("none", "rotary", "alibi") else moved > 1e-4


def test_a_causal_decoder_of_two_layers_knows_order_without_positions() -> None:
    settings = order.OrderSettings(size=16)
    assert order.decoder_order("none", 1, settings, Bench()) < 1e-12
    assert order.decoder_order("none", 2, settings, Bench()) > 1e-4


def test_particles_tell_words_apart_and_characters_do_not() -> None:
    mirrored = [(order.korean(a, b, deed), order.korean(b, a, deed)) for a, b, deed in order.sentences()]
    assert ("나는 너를 좋아한다", "너는 나를 좋아한다") in mirrored
    assert all(sorted(a) == sorted(b) for a, b in mirrored)
    assert all(sorted(a.split()) != sorted(b.split()) for a, b in mirrored)


# ---- cost -----------------------------------------------------------------------------------------------------------


def test_students_t_and_the_exponent_are_scipys() -> None:
    for freedom in (1, 2, 3, 5, 6, 10, 30, 300):
        assert timing.student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=2e-3)
    draw = np.random.default_rng(2)
    x = np.repeat([10.0, 20, 40, 80], 3)
    y = 0.3 * x**1.7 * np.exp(0.05 * draw.normal(size=12))
    found, line = timing.exponent(list(zip(x, y, strict=True))), stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, 10) * line.stderr
    assert (found.value, found.low, found.high) == pytest.approx((line.slope, line.slope - half, line.slope + half), rel=1e-3)


def test_curves_cross_where_they_do() -> None:
    x = [10, 100, 1000]
    assert timing.crossing(x, [1, 10, 100], [20, 20, 20]) == (pytest.approx(200), 1)
    assert timing.crossing(x, [1, 1, 1], [2, 2, 2]) == (None, 0)
    assert timing.crossing(x, [3, 3, 3], [1, 2, 2]) == (None, 1)


def test_memory_is_what_stands_at_a_time() -> None:
    given = torch.zeros(1000)

    def two_at_a_time() -> torch.Tensor:
        for _ in range(5):
            other = given + 1
            result = other * 2
            result.view(10, 100).t()
        return result

    # at the third product of a turn, the old `result`, the new `other` and the new `result` stand beside each other
    assert 8000 <= timing.peak_bytes(two_at_a_time, torch.device("cpu")) <= 12000
    assert timing.peak_bytes(lambda: given.view(10, 100), torch.device("cpu")) == 0


def test_a_cache_grows_and_a_constant_state_does_not() -> None:
    settings = cost.CostSettings(size=16, lengths=(4, 8), repeats=2)
    clock = timing.Clock(torch.device("cpu"))
    for name in cost.MODELS:
        with torch.no_grad():
            _, (first, second) = cost._token_times(cost._model(name, settings, Bench()), settings, Bench(), clock)
        grows = name in ("transformer", cost.UNFUSED, "transformer, window", "pointer-generator-transformer")
        assert second == (2 * first if grows else first), name  # the window has not filled yet


# ---- capacity -------------------------------------------------------------------------------------------------------


def test_a_length_is_held_until_half_of_it_is_lost() -> None:
    assert capacity.longest_held([1, 2, 3, 4], [100, 80, 40, 90]) == 2
    assert capacity.longest_held([1, 2], [10, 90]) == 0


def test_the_interval_of_a_share_is_wilsons() -> None:
    for right, of in ((0, 10), (3, 10), (10, 10), (57, 100)):
        low, high = stats.binomtest(right, of).proportion_ci(method="wilson")
        assert binomial(right, of) == pytest.approx((low, high), abs=1e-6)


# ---- faithfulness ---------------------------------------------------------------------------------------------------


def test_rank_correlation_and_divergence_are_scipys() -> None:
    draw = np.random.default_rng(3)
    for _ in range(20):
        a, b = draw.integers(0, 4, 7).astype(float), draw.normal(size=7)
        expected = stats.kendalltau(a, b).statistic
        assert faithfulness.kendall(a, b) == pytest.approx(expected, nan_ok=True)
    assert math.isnan(faithfulness.kendall(np.ones(4), np.arange(4.0)))
    p, q = draw.dirichlet(np.ones(5), 2)
    found = adversary.divergence(torch.tensor(p), torch.tensor(q))
    assert float(found) == pytest.approx(spatial.distance.jensenshannon(p, q) ** 2)


def test_a_source_without_each_of_its_symbols() -> None:
    source = one_source([[7, 8, 9], [10, 11]], 20)
    found = faithfulness.without_each(source, 0)
    assert found.ids.tolist() == [[8, 9, END], [7, 9, END], [7, 8, END]]
    assert found.lengths.tolist() == [3, 3, 3]
    assert faithfulness.without_each(source, 1).ids.tolist() == [[11, END], [10, END]]


# ---- alignment ------------------------------------------------------------------------------------------------------


def test_the_diagonal_goes_from_corner_to_corner() -> None:
    assert alignment.diagonal(4, 4) == {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert alignment.diagonal(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert alignment.diagonal(0, 3) == frozenset()
    assert all(0 <= i < n for n, m in itertools.product(range(1, 6), repeat=2) for i, _ in alignment.diagonal(n, m))
