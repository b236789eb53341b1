"""Losses over real target positions. Knows steps, heads and masks; not models, batches or optimisers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from eyeline.contracts import Head, LinearHead, Source, Step
from eyeline.errors import UserError
from eyeline.loss_linear import linear_loss

SLICE = 2**22  # log-probabilities that stand in memory at a time: 16 MB in fp32
LEAST_WEIGHT = 1e-20  # what attention without any weight on a gold link counts as: -log is 46, and the gradient a number


@dataclass(frozen=True)
class Loss:
    """Sums over a batch, so that windows of batches add up before anybody divides."""

    objective: Tensor  # [] what is minimised, smoothing included, summed over real tokens
    nll: Tensor  # [] plain negative log-likelihood, natural log, summed over real tokens
    tokens: int  # real target tokens, END counted
    coverage: Tensor | None = None  # [] See et al.'s coverage loss, without its weight; None where it is not asked for
    alignment: Tensor | None = None  # [] cross-entropy against gold links, without its weight
    consistency: Tensor | None = None  # [] divergence of two passes with different dropout, without its weight
    risk: Tensor | None = None  # [] what outputs drawn from the model cost in expectation, without its weight


def negative_log_likelihood(
    head: Head, step: Step, source: Source, outputs: Tensor, target_mask: Tensor, label_smoothing: float = 0.0
) -> Loss:
    """Negative log-likelihood of `outputs` [B, T] under `head`, with label smoothing (Szegedy et al. 2016, section 7).

    The smoothed target puts 1 - ε on the gold symbol and ε / V on each of the V symbols that are possible at its position, the
    gold and the reserved ones included. A symbol with probability zero (log -inf) takes no share and is not counted: the loss
    stays finite, and one source's words of its own, or its greater length, do not thin out the smoothing of its neighbours.
    Hidden positions (`target_mask` True) count neither in sums nor in gradients. The batch is worked through in slices, so that
    log-probabilities of the whole batch never stand in memory: for a head that is a linear map, slices of real positions whose
    gradient is made at once; for others slices of rows that are made again in the backward pass.

    Raises:
        UserError: where gradients are wanted, and a gold symbol has probability zero: there is nothing to learn from it. Without
            gradients the loss is infinite, which is what a perplexity must say.
    """
    if isinstance(head, LinearHead) and _plain(step, head.output_layer()[1]):
        objective, nll = linear_loss(*head.output_layer(), step.features, outputs, target_mask, label_smoothing, SLICE)
    else:
        objective, nll = _in_rows(head, step, source, outputs, target_mask, label_smoothing)
    if torch.is_grad_enabled() and bool(nll.isinf()):
        _refuse_the_impossible(head, step, source, outputs, target_mask)
    return Loss(objective, nll.detach(), int((~target_mask).sum()))


def _in_rows(
    head: Head, step: Step, source: Source, outputs: Tensor, target_mask: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Objective and plain likelihood, whatever the head."""
    rows_at_a_time = max(1, SLICE // (outputs.shape[1] * _width(head, step, source)))
    objective = step.features.new_zeros(())
    nll = step.features.new_zeros(())
    whole = rows_at_a_time >= outputs.shape[0]
    for start in range(0, outputs.shape[0], rows_at_a_time):
        rows = slice(start, start + rows_at_a_time)
        index = torch.arange(outputs.shape[0], device=outputs.device)[rows]
        arguments = (head, step.at(rows), source.select(index), outputs[rows], target_mask[rows], label_smoothing)
        if whole or not torch.is_grad_enabled():
            part = _sums(*arguments)
        else:
            part = checkpoint(_sums, *arguments, use_reentrant=False)
        objective, nll = objective + part[0], nll + part[1]
    return objective, nll


def _plain(step: Step, bias: Tensor) -> bool:
    """Whether numbers are of one type, no less than single precision, and every symbol is possible."""
    mixed = torch.is_autocast_enabled(step.features.device.type) or torch.finfo(step.features.dtype).bits < 32
    return not mixed and not bool(bias.isneginf().any())


def _width(head: Head, step: Step, source: Source) -> int:
    with torch.no_grad():
        one = torch.zeros(1, dtype=torch.long, device=source.ids.device)
        return head(step.at((slice(0, 1), slice(0, 1))), source.select(one)).shape[-1]


def _sums(
    head: Head, step: Step, source: Source, outputs: Tensor, target_mask: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    log_probs = head(step, source)  # [b, T, X]
    gold = log_probs.gather(-1, outputs.clamp(min=0)[..., None]).squeeze(-1)  # [b, T]
    nll = -gold.masked_fill(target_mask, 0.0).sum()
    if label_smoothing == 0.0:
        return nll, nll
    impossible = log_probs.isneginf()
    shares = (~impossible).sum(-1).clamp(min=1)  # [b, T]
    uniform = -(log_probs.masked_fill(impossible, 0.0).sum(-1) / shares).masked_fill(target_mask, 0.0).sum()
    return (1 - label_smoothing) * nll + label_smoothing * uniform, nll


def _refuse_the_impossible(head: Head, step: Step, source: Source, outputs: Tensor, target_mask: Tensor) -> None:
    """Raises UserError for the first gold symbol with probability zero, if there is one."""
    with torch.no_grad():
        gold = head(step, source).gather(-1, outputs.clamp(min=0)[..., None]).squeeze(-1)
    for row, position in (gold.isneginf() & ~target_mask).nonzero().tolist():
        raise UserError(
            f"the model cannot say id {outputs[row, position]}, which is wanted at position {position} of row {row} of a batch",
            hint="a model that points at distinct positions cannot learn from a target that has one of them twice",
        )


def coverage_loss(attention: Tensor, target_mask: Tensor) -> Tensor:
    """Σ_t Σ_j min(α_tj, c_tj) with c_t = Σ_{t'<t} α_t', the steps BEFORE t: See et al. 2017, equations 10 and 12.

    The first step costs nothing, and neither does one that looks where none has looked. Hidden target positions (`target_mask`
    [B, T] True) cost nothing and cover nothing. Any attention [B, T, S] has this loss, with coverage in its score or not.

    Returns:
        [] summed over real target positions.
    """
    weights = attention.masked_fill(target_mask[..., None], 0.0)
    before = pad(weights.cumsum(1)[:, :-1], (0, 0, 1, 0))  # [B, T, S]
    return torch.minimum(weights, before).sum()


def guided_alignment_loss(attention: Tensor, links: Tensor, target_mask: Tensor) -> Tensor:
    """-Σ_t Σ_j A_tj log α_tj, cross-entropy of attention [B, T, S] against gold links: Chen et al. 2016, section 3.

    Chen et al. divide by the number of target words; whoever adds this to a likelihood divides both alike. Finite where the
    attention has no weight on a gold link.

    Args:
        links: [B, T, S], each row the gold distribution A_t; a row of zeros has no gold links and costs nothing.
        target_mask: [B, T] True where hidden, which costs nothing.

    Returns:
        [] summed over real target positions.
    """
    gold = links.masked_fill(target_mask[..., None], 0.0)
    counted = attention.masked_fill(gold == 0, 1.0)  # its log is 0, and no gradient comes from what has no link
    return -(gold * counted.clamp(LEAST_WEIGHT, 1.0).log()).sum()  # rounding makes no weight more than 1, no cost negative
