"""What the loss must keep, as functions that raise AssertionError; test_loss runs them, and test_battery_bites breaks them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_loss_checks import ATTENTION_LOSS_CHECKS
from eyeline import loss
from eyeline.contracts import PAD, Source, Step
from eyeline.errors import UserError

CASE = torch.tensor([[[2.0, 1, 0, 0, 0], [0.0, 3, 0, 1, 0]]])  # [1, 2, 5] the logits whose losses were worked out apart
GOLD = torch.tensor([[0, 1]])
CASE_OBJECTIVE, CASE_NLL = 0.591847, 0.411847  # means over the two tokens, ε = 0.1


class Logits(nn.Module):
    """A head for which the features are the logits."""

    def forward(self, step: Step, source: Source) -> Tensor:
        return step.features.log_softmax(-1)


def loss_of(logits: Tensor, gold: Tensor, mask: Tensor | None = None, smoothing: float = 0.0) -> loss.Loss:
    """The loss of `logits` [B, T, V] as a head gives them."""
    source = Source(torch.ones(len(logits), 1, dtype=torch.long), torch.ones(len(logits), dtype=torch.long))
    mask = torch.zeros_like(gold, dtype=torch.bool) if mask is None else mask
    return loss.negative_log_likelihood(Logits(), Step(logits), source, gold, mask, smoothing)


def some_logits(rows: int = 5, positions: int = 4, vocabulary: int = 7, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits that ask for a gradient, gold ids, and a mask that hides the ends of all rows but one."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, positions, vocabulary, generator=random, dtype=torch.float64).requires_grad_()
    gold = torch.randint(0, vocabulary, (rows, positions), generator=random)
    lengths = torch.randint(1, positions, (rows, 1), generator=random)
    lengths[-1] = positions
    mask = torch.arange(positions) >= lengths
    return logits, gold.masked_fill(mask, PAD), mask


def near(a: Tensor, b: Tensor | float, tolerance: float = 1e-9) -> None:
    wanted = torch.as_tensor(b, dtype=a.dtype)
    assert torch.isfinite(a).all()
    assert torch.allclose(a, wanted, rtol=0, atol=tolerance), f"{a} is not {wanted}"


def numbers_worked_out_by_hand() -> None:
    result = loss_of(CASE, GOLD, smoothing=0.1)
    assert result.tokens == 2
    near(result.objective / result.tokens, CASE_OBJECTIVE, 1e-6)
    near(result.nll / result.tokens, CASE_NLL, 1e-6)


def padding_counts_nowhere() -> None:
    """Two hidden targets with wild logits: the same sums, the same count, and no gradient there."""
    wild = torch.tensor([[[50.0, -80, 7, 1e4, -1e4], [-3.0, 9, 1e3, 0, 4]]])
    mask = torch.tensor([[False, False, True, True]])
    for smoothing in (0.0, 0.1):
        logits = torch.cat([CASE, wild], 1).requires_grad_()
        padded = loss_of(logits, torch.tensor([[0, 1, PAD, PAD]]), mask, smoothing)
        plain = loss_of(CASE, GOLD, smoothing=smoothing)
        assert padded.tokens == 2
        near(padded.objective, plain.objective, 1e-6)
        near(padded.nll, plain.nll, 1e-6)
        padded.objective.backward()
        assert logits.grad is not None
        assert not logits.grad[mask].any()
        assert logits.grad[~mask].any()


def nothing_but_padding() -> None:
    for smoothing in (0.0, 0.1):
        logits, gold, _ = some_logits()
        result = loss_of(logits, gold, torch.ones_like(gold, dtype=torch.bool), smoothing)
        assert result.tokens == 0
        near(result.objective, 0.0)
        near(result.nll, 0.0)
        result.objective.backward()
        assert logits.grad is not None
        assert not logits.grad.any()


def an_impossible_symbol_stays_finite() -> None:
    """A vocabulary entry with logit -inf takes no share of the smoothing mass: all is as if it were not there."""
    logits, gold, mask = some_logits()
    gold = gold.clamp(max=5)
    blocked = logits.detach().clone()
    blocked[..., 6] = -torch.inf
    blocked.requires_grad_()
    result = loss_of(blocked, gold, mask, 0.1)
    without = logits.detach()[..., :6]
    near(result.nll, loss_of(without, gold, mask).nll)
    near(result.objective.detach(), loss_of(without, gold, mask, 0.1).objective)
    result.objective.backward()
    assert blocked.grad is not None
    assert torch.isfinite(blocked.grad).all()
    assert not blocked.grad[..., 6].any()


def an_impossible_gold_symbol_is_refused_by_place() -> None:
    """Where gradients are wanted; without them the loss is infinite, and hidden targets may be anything."""
    logits, gold, mask = some_logits()
    row, position = (~mask).nonzero()[-1].tolist()
    blocked = logits.detach().clone()
    blocked[row, position, gold[row, position]] = -torch.inf
    with torch.no_grad():
        assert loss_of(blocked, gold, mask, 0.1).nll == torch.inf
    hidden = mask.clone()
    hidden[row, position] = True
    assert torch.isfinite(loss_of(blocked.requires_grad_(), gold, hidden, 0.1).objective)
    said = ""
    try:
        loss_of(blocked, gold, mask)
    except UserError as error:
        said = str(error)
    assert f"id {gold[row, position]}, which is wanted at position {position} of row {row} " in said


def equals_the_library() -> None:
    """torch.nn.functional.cross_entropy smooths over all V symbols too; values and gradients agree."""
    for smoothing in (0.0, 0.1, 0.6):
        logits, gold, mask = some_logits()
        result = loss_of(logits, gold, mask, smoothing)
        (ours,) = torch.autograd.grad(result.objective, logits)
        wanted = nn.functional.cross_entropy(logits[~mask], gold[~mask], reduction="sum", label_smoothing=smoothing)
        (theirs,) = torch.autograd.grad(wanted, logits)
        near(result.objective.detach(), wanted.detach())
        near(ours, theirs)
        near(result.nll, nn.functional.cross_entropy(logits[~mask], gold[~mask], reduction="sum").detach())


def rows_add_up() -> None:
    """The loss of a batch is the sum over its rows, so that windows of batches can be added before anybody divides."""
    logits, gold, mask = some_logits()
    whole = loss_of(logits, gold, mask, 0.1)
    parts = [loss_of(logits[r : r + 1], gold[r : r + 1], mask[r : r + 1], 0.1) for r in range(len(gold))]
    near(whole.objective, sum(part.objective for part in parts))
    near(whole.nll, sum(part.nll for part in parts))
    assert whole.tokens == sum(part.tokens for part in parts) == int((~mask).sum())


def slices_equal_one_piece() -> None:
    """Whatever the size of a slice, one row at a time or three: the same sums, the same gradients, of features and head alike."""
    answers = []
    kept = loss.SLICE
    for size in (10**9, 1, 3 * 4 * 6, 4 * 4 * 6):
        loss.SLICE = size
        try:
            torch.manual_seed(0)
            head = Projected()
            features = torch.randn(5, 4, 3, dtype=torch.float64).requires_grad_()
            _, gold, mask = some_logits(vocabulary=6)
            source = Source(torch.ones(5, 1, dtype=torch.long), torch.ones(5, dtype=torch.long))
            result = loss.negative_log_likelihood(head, Step(features), source, gold, mask, 0.1)
            result.objective.backward()
        finally:
            loss.SLICE = kept
        assert features.grad is not None
        assert head.linear.weight.grad is not None
        answers.append((result.objective.detach(), result.nll, features.grad, head.linear.weight.grad))
        assert result.tokens == int((~mask).sum())
    for answer in answers[1:]:
        for one, other in zip(answers[0], answer, strict=True):
            near(other, one)


def an_output_layer_is_as_any_head() -> None:
    """A head that shows its weights, whose gradient is made at once, against one that does not: sums and all gradients.

    Some symbols are so unlikely that their share is no number of single precision, and slices are of every size.
    """
    random = torch.Generator().manual_seed(1)
    weight, bias, features = (torch.randn(*size, generator=random, dtype=torch.float64) for size in ((6, 3), (6,), (5, 4, 3)))
    bias[2] = -120.0
    _, gold, mask = some_logits(vocabulary=6)
    source = Source(torch.ones(5, 1, dtype=torch.long), torch.ones(5, dtype=torch.long))
    kept = loss.SLICE
    for smoothing in (0.0, 0.1):
        answers = []
        for head, size in ((Projected(), 10**9), (Shown(), 10**9), (Shown(), 1), (Shown(), 20)):
            head.linear.weight.data, head.linear.bias.data = weight.clone(), bias.clone()
            read, loss.SLICE = features.clone().requires_grad_(), size
            try:
                result = loss.negative_log_likelihood(head, Step(read), source, gold, mask, smoothing)
            finally:
                loss.SLICE = kept
            (3 * result.objective).backward()
            answers.append((result.objective.detach(), result.nll, read.grad, head.linear.weight.grad, head.linear.bias.grad))
        for answer in answers[1:]:
            for one, other in zip(answers[0], answer, strict=True):
                near(other, one)


class Projected(nn.Module):
    """A head with weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 6).double()

    def forward(self, step: Step, source: Source) -> Tensor:
        return self.linear(step.features).log_softmax(-1)  # type: ignore[no-any-return]


class Shown(Projected):
    """The same, whose weights may be taken."""

    def output_layer(self) -> tuple[Tensor, Tensor]:
        return self.linear.weight, self.linear.bias


LOSS_CHECKS: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        numbers_worked_out_by_hand,
        padding_counts_nowhere,
        nothing_but_padding,
        an_impossible_symbol_stays_finite,
        an_impossible_gold_symbol_is_refused_by_place,
        equals_the_library,
        rows_add_up,
        slices_equal_one_piece,
        an_output_layer_is_as_any_head,
    )
} | ATTENTION_LOSS_CHECKS
