"""Faults of the losses on attention: coverage and guided alignment."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eyeline import loss

from .registry import fault


@fault("", "coverage_holds_the_steps_before")
def coverage_loss_counts_its_own_step(patch: pytest.MonkeyPatch) -> None:
    """c_t holds α_t, so that min(α, c) is α and the loss is 1 for ever."""

    def broken(attention: Tensor, target_mask: Tensor) -> Tensor:
        weights = attention.masked_fill(target_mask[..., None], 0.0)
        return torch.minimum(weights, weights.cumsum(1)).sum()

    patch.setattr(loss, "coverage_loss", broken)


@fault("", "coverage_equals_a_loop")
def coverage_summed_over_the_source(patch: pytest.MonkeyPatch) -> None:
    def broken(attention: Tensor, target_mask: Tensor) -> Tensor:
        weights = attention.masked_fill(target_mask[..., None], 0.0)
        return torch.minimum(weights, weights.cumsum(2) - weights).sum()

    patch.setattr(loss, "coverage_loss", broken)


@fault("", "padded_steps_and_columns_cost_nothing")
def coverage_loss_of_padded_steps(patch: pytest.MonkeyPatch) -> None:
    real = loss.coverage_loss
    patch.setattr(loss, "coverage_loss", lambda attention, mask: real(attention.nan_to_num(0.1), torch.zeros_like(mask)))


@fault("", "rows_of_losses_add_up")
def coverage_loss_as_a_mean(patch: pytest.MonkeyPatch) -> None:
    real = loss.coverage_loss
    patch.setattr(loss, "coverage_loss", lambda attention, mask: real(attention, mask) / (~mask).sum())


@fault("", "padded_steps_and_columns_cost_nothing")
def guided_by_links_of_padded_steps(patch: pytest.MonkeyPatch) -> None:
    real = loss.guided_alignment_loss
    patch.setattr(
        loss,
        "guided_alignment_loss",
        lambda attention, links, mask: real(attention.nan_to_num(0.1), links, torch.zeros_like(mask)),
    )


@fault("", "links_are_the_gold_of_their_rows")
def rows_without_links_pushed_apart(patch: pytest.MonkeyPatch) -> None:
    """A row without gold links is taken for one that is linked to everything alike."""
    real = loss.guided_alignment_loss

    def broken(attention: Tensor, links: Tensor, mask: Tensor) -> Tensor:
        even = torch.full_like(links, 1 / links.shape[-1])
        return real(attention, torch.where(links.sum(-1, keepdim=True) > 0, links, even), mask)

    patch.setattr(loss, "guided_alignment_loss", broken)


@fault("", "a_gold_link_without_attention_stays_finite")
def logarithm_of_no_attention(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loss, "guided_alignment_loss", lambda attention, links, mask: -(links * attention.log()).sum())


@fault("", "a_little_attention_on_a_gold_link_learns")
def floor_that_stops_learning(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loss, "LEAST_WEIGHT", 1e-8)
