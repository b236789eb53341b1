"""Faults of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from eyeline import loss, loss_linear
from eyeline.contracts import Source, Step

from .registry import fault


def sums(patch: pytest.MonkeyPatch, count: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]) -> None:
    """Puts `count(log_probs, gold, mask, smoothing)` in the place of what is summed over a slice."""

    def broken(head: Any, step: Step, source: Source, outputs: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        log_probs = head(step, source)
        return count(log_probs, log_probs.gather(-1, outputs[..., None]).squeeze(-1), mask, smoothing)

    patch.setattr(loss, "_sums", broken)


@fault("", "padding_counts_nowhere")
def smoothing_counts_padding(patch: pytest.MonkeyPatch) -> None:
    def count(log_probs: Tensor, gold: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        nll = -gold.masked_fill(mask, 0.0).sum()
        return (1 - smoothing) * nll - smoothing * log_probs.mean(-1).sum(), nll

    sums(patch, count)


@fault("", "rows_add_up")
def mean_instead_of_sum(patch: pytest.MonkeyPatch) -> None:
    def count(log_probs: Tensor, gold: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        nll, uniform = -gold[~mask].mean(), -log_probs.mean(-1)[~mask].mean()
        return (1 - smoothing) * nll + smoothing * uniform, nll

    sums(patch, count)


@fault("", "padding_counts_nowhere")
def mask_the_wrong_way_round(patch: pytest.MonkeyPatch) -> None:
    real = loss._sums
    patch.setattr(loss, "_sums", lambda head, step, source, out, mask, smoothing: real(head, step, source, out, ~mask, smoothing))


@fault("", "numbers_worked_out_by_hand")
def smoothed_loss_reported_as_likelihood(patch: pytest.MonkeyPatch) -> None:
    real = loss._sums

    def broken(*arguments: Any) -> tuple[Tensor, Tensor]:
        objective, _ = real(*arguments)
        return objective, objective

    patch.setattr(loss, "_sums", broken)


@fault("", "equals_the_library")
def smoothing_spread_over_the_others_alone(patch: pytest.MonkeyPatch) -> None:
    def count(log_probs: Tensor, gold: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        others = (log_probs.sum(-1) - gold) / (log_probs.shape[-1] - 1)
        nll = -gold.masked_fill(mask, 0.0).sum()
        return (1 - smoothing) * nll - smoothing * others.masked_fill(mask, 0.0).sum(), nll

    sums(patch, count)


@fault("", "an_impossible_symbol_stays_finite")
def smoothing_given_to_the_impossible(patch: pytest.MonkeyPatch) -> None:
    def count(log_probs: Tensor, gold: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        nll = -gold.masked_fill(mask, 0.0).sum()
        return (1 - smoothing) * nll - smoothing * log_probs.mean(-1).masked_fill(mask, 0.0).sum(), nll

    sums(patch, count)


@fault("", "an_impossible_symbol_stays_finite")
def impossible_symbols_counted_among_the_shares(patch: pytest.MonkeyPatch) -> None:
    def count(log_probs: Tensor, gold: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        nll = -gold.masked_fill(mask, 0.0).sum()
        uniform = -log_probs.masked_fill(log_probs.isneginf(), 0.0).mean(-1).masked_fill(mask, 0.0).sum()
        return (1 - smoothing) * nll + smoothing * uniform, nll

    sums(patch, count)


@fault("", "nothing_but_padding")
def divided_by_no_tokens(patch: pytest.MonkeyPatch) -> None:
    def count(log_probs: Tensor, gold: Tensor, mask: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        tokens = (~mask).sum()
        nll = -gold.masked_fill(mask, 0.0).sum() / tokens * tokens
        return nll, nll

    sums(patch, count)


@fault("", "an_output_layer_is_as_any_head")
def gradient_made_at_once_and_never_scaled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loss_linear._LinearLoss, "backward", staticmethod(lambda ctx, gradient, _: (None, *ctx.saved_tensors)))


@fault("", "an_output_layer_is_as_any_head")
def logarithm_of_a_share_that_is_none(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loss_linear, "_cost", lambda shares, gold, logits_of: -shares.float().gather(1, gold).squeeze(1).log().double())


@fault("", "an_output_layer_is_as_any_head")
def smoothing_left_out_of_the_features_gradient(patch: pytest.MonkeyPatch) -> None:
    real = Tensor.sub_
    patch.setattr(Tensor, "sub_", lambda self, other, alpha=1: self if self.dim() == 2 else real(self, other, alpha=alpha))


@fault("", "slices_equal_one_piece")
def slices_cut_the_features_from_the_graph(patch: pytest.MonkeyPatch) -> None:
    def broken(function: Any, head: Any, step: Step, *others: Any, use_reentrant: bool) -> Any:
        return function(head, Step(step.features.detach()), *others)

    patch.setattr(loss, "checkpoint", broken)
