"""The mixture of generating and copying: numbers worked out by hand, saturated gates, a slow loop, the loss over it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from eyeline import loss
from eyeline.contracts import END, PAD, UNKNOWN, Source, Step
from eyeline.errors import UserError
from eyeline.nn import Embedding, ExtendedEmbedding, Gate, Generate, PointOrGenerate
from reference.copying import mixture

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
V = 4
SATURATED = (200.0, -200.0, 40.0, -40.0, 0.0)


class Given(nn.Module):
    """A head of P_vocab for which the features are the probabilities."""

    def forward(self, step: Step, source: Source) -> Tensor:
        return step.features.log()


HEAD = PointOrGenerate(Given())


def of(copies: list[list[int]], lengths: list[int] | None = None, extra: int = 0) -> Source:
    ids = torch.tensor(copies)
    return Source(torch.full_like(ids, UNKNOWN), torch.tensor(lengths or [len(row) for row in copies]), ids, extra)


def step_of(probabilities: Any, gate: Any, attention: Any, **how: Any) -> Step:
    features, logit, weights = (torch.as_tensor(value, **how) for value in (probabilities, gate, attention))
    return Step(features, {"source": weights}, logit)


# Case O18


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_repeated_words_of_the_source_add_up(device: str, kind: torch.dtype) -> None:
    """Gate .5, source ids [2, 2, 5], 5 beyond the vocabulary of 4: [.05, .10, .50, .20, 0, .15]; assigning gives .35 for 2."""
    step = step_of([[0.1, 0.2, 0.3, 0.4]], [0.0], [[0.3, 0.4, 0.3]], dtype=kind, device=device)
    source = of([[2, 2, 5]], extra=2).to(device)
    first, again = (HEAD(step, source).exp() for _ in range(2))
    assert torch.equal(first, again)
    torch.testing.assert_close(first.cpu(), torch.tensor([[0.05, 0.10, 0.50, 0.20, 0.0, 0.15]], dtype=kind), rtol=0, atol=1e-7)
    assert float(first.sum()) == pytest.approx(1.0, abs=1e-6)
    assert torch.isneginf(HEAD(step, source)[0, 4])


def test_a_word_unknown_to_the_vocabulary_keeps_its_copies() -> None:
    """All attention on three occurrences of one own word: it has all of what is copied, and UNKNOWN has none of it."""
    step = step_of([[0.25, 0.25, 0.25, 0.25]], [-math.log(3)], [[0.2, 0.3, 0.5, 0.0]])
    found = HEAD(step, of([[4, 4, 4, END]], extra=1)).exp()
    torch.testing.assert_close(found, torch.tensor([[0.0625, 0.0625, 0.0625, 0.0625, 0.75]]))


# Case O17


@pytest.mark.parametrize("logit", SATURATED)
@pytest.mark.parametrize("gold", [0, 2, 4])  # generated alone, both, copied alone
@pytest.mark.parametrize("hidden", [False, True])
def test_any_gate_and_any_target_have_a_finite_loss(logit: float, gold: int, hidden: bool) -> None:
    """In float32, where the gate is 0 or 1 exactly; also with all the mass of attention on hidden places."""
    scores = torch.zeros(1, 4, requires_grad=True)
    logits = torch.tensor([[1.0, 0, -1, 2]], requires_grad=True)
    gate = torch.tensor([logit], requires_grad=True)
    attention = torch.cat([torch.zeros(1, 2), scores[:, 2:].softmax(-1)], 1) if hidden else scores.softmax(-1)
    lengths = [2] if hidden else [4]
    source = of([[4, 2, 4, 2]], lengths, 1)
    log_probs = HEAD(Step(logits.softmax(-1), {"source": attention}, gate), source)
    assert float(log_probs.detach().exp().sum()) == pytest.approx(1.0, abs=1e-5)
    assert (log_probs <= 0).all()
    assert torch.isfinite(log_probs).all()
    log_probs[0, gold].neg().backward()
    for each in (scores, logits, gate):
        assert each.grad is None or torch.isfinite(each.grad).all()


def test_what_saturation_costs_is_what_the_logarithm_says() -> None:
    """σ(-200) is 0 in float32, its logarithm -200: a word that can only be copied costs 200 nats, not infinitely many."""
    sure = step_of([[0.25, 0.25, 0.25, 0.25]], [200.0], [[0.5, 0.5]])
    assert float(HEAD(sure, of([[4, 5]], extra=2))[0, 4]) == pytest.approx(-200 + math.log(0.5), abs=1e-4)
    copying = step_of([[0.25, 0.25, 0.25, 0.25]], [-200.0], [[0.5, 0.5]])
    assert float(HEAD(copying, of([[4, 5]], extra=2))[0, 0]) == pytest.approx(-200 + math.log(0.25), abs=1e-4)


def test_attention_that_underflows_leaves_a_word_possible() -> None:
    weights = torch.tensor([[0.0, 1.0]], requires_grad=True)
    log_probs = HEAD(Step(torch.full((1, 4), 0.25), {"source": weights}, torch.zeros(1)), of([[4, 5]], extra=2))
    assert -80 < float(log_probs[0, 4].detach()) < -60
    log_probs[0, 4].backward()
    assert weights.grad is not None
    assert torch.isfinite(weights.grad).all()


def test_a_source_of_nothing_is_generated_from() -> None:
    step = step_of([[0.1, 0.2, 0.3, 0.4]], [-5.0], [[0.0, 0.0]])
    found = HEAD(step, of([[4, 2]], [0], 1))
    torch.testing.assert_close(found.exp(), torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.0]]))
    assert torch.isneginf(found[0, 4])


def test_what_stands_in_hidden_places_is_never_read() -> None:
    """Neither ids that no vocabulary has nor NaN."""
    step = step_of([[0.1, 0.2, 0.3, 0.4]], [0.3], [[0.5, 0.5, 0.0]])
    wanted = HEAD(step, of([[4, 2, PAD]], [2], 1))
    odd = step_of([[0.1, 0.2, 0.3, 0.4]], [0.3], [[0.5, 0.5, math.nan]])
    torch.testing.assert_close(HEAD(odd, of([[4, 2, 999]], [2], 1)), wanted)


def test_certain_either_way_is_no_more_than_certain() -> None:
    """Rounding makes no log-probability positive, wherever the gate stands."""
    gates = torch.linspace(-6, 6, 2001)
    features = torch.tensor([0.0, 0.0, 1.0, 0.0]).expand(len(gates), -1)
    step = Step(features, {"source": torch.tensor([[0.3, 0.7]]).expand(len(gates), -1)}, gates)
    log_probs = HEAD(step, of([[2, 2]]))
    assert (log_probs <= 0).all()
    torch.testing.assert_close(log_probs[:, 2], torch.zeros(len(gates)), rtol=0, atol=1e-6)


# Against the paper's sum, and shapes


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[Step, Source]:
    """Any number of sources and rows, B × T or K rows a source, own words that repeat, some sources short."""
    sources, rows, width, extra = (draw(st.integers(low, high)) for low, high in ((1, 3), (1, 3), (1, 6), (0, 3)))
    folded = draw(st.booleans())
    chance = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    lengths = torch.randint(1, width + 1, (sources,), generator=chance)
    copies = torch.randint(0, V + extra, (sources, width), generator=chance)
    source = Source(torch.full_like(copies, UNKNOWN), lengths, copies, extra)
    shape = (sources * rows,) if folded else (sources, rows)
    gate = 3 * torch.randn(shape, generator=chance, dtype=torch.float64)
    features = torch.randn(*shape, V, generator=chance, dtype=torch.float64).softmax(-1)
    scores = torch.randn(sources, rows, width, generator=chance, dtype=torch.float64)
    weights = scores.masked_fill(source.mask[:, None], -torch.inf).softmax(-1).view(*shape, width)
    return Step(features, {"source": weights}, gate), source


@given(mixtures())
def test_every_row_is_the_sum_that_the_paper_writes(case: tuple[Step, Source]) -> None:
    step, source = case
    log_probs = HEAD(step, source)
    assert log_probs.shape == (*step.features.shape[:-1], V + source.extra)
    assert source.copy_ids is not None
    assert step.gate is not None
    rows = step.gate.numel() // len(source.ids)
    flat = log_probs.flatten(0, -2)
    for row, found in enumerate(flat):
        own = source.copy_ids[row // rows, : int(source.lengths[row // rows])].tolist()
        wanted = mixture(
            step.features.flatten(0, -2)[row].numpy(),
            float(step.gate.flatten()[row].sigmoid()),
            step.attention["source"].flatten(0, -2)[row, : len(own)].numpy(),
            own,
            source.extra,
        )
        torch.testing.assert_close(found.exp(), torch.tensor(wanted, dtype=torch.float64), rtol=0, atol=1e-12)
        assert found.isneginf().nonzero().flatten().tolist() == [x for x in range(V, V + source.extra) if x not in own]


@settings(max_examples=10)
@given(mixtures())
def test_gradients_are_those_of_the_formula(case: tuple[Step, Source]) -> None:
    step, source = case
    generate = Generate(V, V).double()
    head = PointOrGenerate(generate)

    def answer(features: Tensor, weights: Tensor, gate: Tensor) -> Tensor:
        log_probs = head(Step(features, {"source": weights}, gate), source)
        return log_probs[log_probs > -torch.inf]

    assert step.gate is not None
    inputs = [each.clone().requires_grad_() for each in (step.features, step.attention["source"].clamp(min=1e-2), step.gate)]
    assert torch.autograd.gradcheck(answer, inputs)


def test_a_source_without_extended_ids_is_refused() -> None:
    step = step_of([[0.1, 0.2, 0.3, 0.4]], [0.0], [[1.0]])
    with pytest.raises(UserError, match=r"this model copies, and the source has no extended ids.*copy_ids"):
        HEAD(step, Source(torch.tensor([[END]]), torch.tensor([1])))


def test_words_beyond_the_vocabulary_are_fed_as_unknown() -> None:
    table = Embedding(V, 3)
    read = ExtendedEmbedding(table)
    ids = torch.tensor([[0, 1, 3], [4, 5, 99]])
    torch.testing.assert_close(read(ids), table(torch.tensor([[0, 1, 3], [UNKNOWN, UNKNOWN, UNKNOWN]])))
    assert read.size == 3


def test_the_gate_is_a_logit_that_starts_near_even_odds() -> None:
    gate = Gate(5)
    vectors = torch.randn(2, 3, 4), torch.zeros(2, 3, 1)
    assert gate(*vectors).shape == (2, 3)
    assert not gate(torch.zeros(5)).any()


# The loss over extended ids


class Learned(nn.Module):
    """A head with weights, and what it needs of a batch: features, attention scores and gates that ask for gradients."""

    def __init__(self, sources: int, positions: int, width: int) -> None:
        super().__init__()
        chance = torch.Generator().manual_seed(3)
        self.head = PointOrGenerate(Generate(5, V)).double()
        self.features, self.scores, self.gate = (
            nn.Parameter(torch.randn(*shape, generator=chance, dtype=torch.float64))
            for shape in ((sources, positions, 5), (sources, positions, width), (sources, positions))
        )

    def loss(self, source: Source, outputs: Tensor, mask: Tensor, rows: slice, smoothing: float) -> loss.Loss:
        part = source.select(torch.arange(len(source.ids))[rows])
        weights = self.scores[rows].masked_fill(part.mask[:, None], -1e9).softmax(-1)
        step = Step(self.features[rows], {"source": weights}, self.gate[rows])
        return loss.negative_log_likelihood(self.head, step, part, outputs[rows], mask[rows], smoothing)

    def gradients(self) -> list[Tensor]:
        found = [parameter.grad.clone() for parameter in self.parameters() if parameter.grad is not None]
        self.zero_grad()
        return found


SOURCE = of([[4, 5, 4, 6, END], [2, END, PAD, PAD, PAD], [4, 1, END, PAD, PAD], [5, 4, 2, 4, END]], [5, 2, 3, 5], 3)
OUTPUTS = torch.tensor([[6, 4, END], [2, 0, END], [4, END, PAD], [5, 3, 4]])
MASK = OUTPUTS.eq(PAD) & torch.tensor([False, False, True])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_slices_of_the_loss_and_accumulation_change_nothing(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece, slices of one row and of two, and batches of their own whose `extra` is smaller: the same sums and gradients."""
    model = Learned(4, 3, 5)
    whole = model.loss(SOURCE, OUTPUTS, MASK, slice(None), smoothing)
    whole.objective.backward()
    wanted = model.gradients()
    for size in (1, 2 * 3 * (V + 3)):
        monkeypatch.setattr(loss, "SLICE", size)
        sliced = model.loss(SOURCE, OUTPUTS, MASK, slice(None), smoothing)
        torch.testing.assert_close(sliced.objective, whole.objective)
        torch.testing.assert_close(sliced.nll, whole.nll)
        sliced.objective.backward()
        for ours, theirs in zip(model.gradients(), wanted, strict=True):
            torch.testing.assert_close(ours, theirs)
    total, nll = torch.zeros(()).double(), torch.zeros(()).double()
    for rows, extra in ((slice(0, 1), 3), (slice(1, 2), 0), (slice(2, 4), 2)):
        part = model.loss(replace(SOURCE, extra=extra), OUTPUTS, MASK, rows, smoothing)
        part.objective.backward()
        total, nll = total + part.objective, nll + part.nll
    torch.testing.assert_close(total, whole.objective)
    torch.testing.assert_close(nll, whole.nll)
    for ours, theirs in zip(model.gradients(), wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_smoothing_is_spread_over_the_vocabulary_and_a_source_s_own_words() -> None:
    """0.1 / 6 on each of V = 4 and two own words; the third that the batch has room for is another source's."""
    model = Learned(4, 3, 5)
    row = slice(3, 4)
    with torch.no_grad():
        found = model.loss(SOURCE, OUTPUTS, MASK, row, 0.1)
        weights = model.scores[row].softmax(-1)
        log_probs = model.head(Step(model.features[row], {"source": weights}, model.gate[row]), SOURCE.select(torch.tensor([3])))
    assert log_probs.shape[-1] == 7
    assert log_probs[..., 6].isneginf().all()
    wanted = sum(-0.9 * log_probs[0, t, y] - 0.1 * log_probs[0, t, :6].sum() / 6 for t, y in enumerate(OUTPUTS[3]))
    torch.testing.assert_close(found.objective, wanted)
