"""Faults of coverage: what attention remembers of where it has looked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.nn import coverage, decoders
from eyeline.nn.attention import Keys

from .registry import fault


@fault("coverage-sum-bahdanau-bi-gru", "float64_equals_the_reference_formula")
def coverage_not_accumulated(patch: pytest.MonkeyPatch) -> None:
    """The last look alone."""
    patch.setattr(coverage.SumCoverage, "forward", lambda self, before, weights, query, known: weights[..., None])


@fault("coverage-sum-bahdanau-bi-gru", "float64_equals_the_reference_formula")
def coverage_holds_the_look_that_it_should_guide(patch: pytest.MonkeyPatch) -> None:
    """A first look fills the coverage with which the second, the one that counts, is made."""
    real = coverage.CoveredAttention._look

    def look(self: Any, query: Tensor, covered: Tensor, keys: Keys) -> Tensor:
        return real(self, query, covered + real(self, query, covered, keys)[..., None], keys)

    patch.setattr(coverage.CoveredAttention, "_look", look)


@fault("coverage-sum-luong-general-rnn", "teacher_forcing_equals_stepping")
def coverage_starts_anew_at_each_step(patch: pytest.MonkeyPatch) -> None:
    """It is kept within one call, and lost between two."""
    real = coverage.CoveredAttention.attend
    patch.setattr(
        coverage.CoveredAttention, "attend", lambda self, query, keys, looked: real(self, query, keys, torch.zeros_like(looked))
    )


@fault("coverage-sum-luong-general-rnn", "teacher_forcing_equals_stepping")
def coverage_the_same_for_all_positions_of_a_target(patch: pytest.MonkeyPatch) -> None:
    """All T looks are made at once, with the coverage before the first of them."""
    real = coverage.CoveredAttention.attend

    def attend(self: Any, query: Tensor, keys: Any, looked: Tensor) -> Any:
        parts = [real(self, query[:, t : t + 1], keys, looked) for t in range(query.shape[1])]
        return torch.cat([part[0] for part in parts], 1), torch.cat([part[1] for part in parts], 1), parts[-1][2]

    patch.setattr(coverage.CoveredAttention, "attend", attend)


@fault("coverage-gated-luong-dot-fed-gru", "what_is_handed_on_changes_and_is_read")
def coverage_handed_on_as_it_came(patch: pytest.MonkeyPatch) -> None:
    real = coverage.CoveredAttention.attend

    def attend(self: Any, query: Tensor, keys: Any, looked: Tensor) -> Any:
        context, weights, _ = real(self, query, keys, looked)
        return context, weights, looked

    patch.setattr(coverage.CoveredAttention, "attend", attend)


@fault("coverage-sum-luong-concat-bi-fed-lstm", "what_is_handed_on_changes_and_is_read")
def coverage_never_enters_the_score(patch: pytest.MonkeyPatch) -> None:
    real = coverage.CoveredAttention._look
    patch.setattr(
        coverage.CoveredAttention, "_look", lambda self, query, covered, keys: real(self, query, torch.zeros_like(covered), keys)
    )


@fault("coverage-sum-luong-concat-bi-fed-lstm", "select_equals_recomputing")
def select_leaves_the_coverage_where_it_was(patch: pytest.MonkeyPatch) -> None:
    real = decoders.Fed.select

    def select(self: Any, rows: Tensor) -> Any:
        return replace(real(self, rows), looked=self.looked if len(rows) == len(self.looked) else self.looked[rows])

    patch.setattr(decoders.Fed, "select", select)


@fault("coverage-sum-bahdanau-bi-gru", "a_step_leaves_its_arguments_alone")
def coverage_added_to_in_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coverage.SumCoverage, "forward", lambda self, before, weights, query, known: before.add_(weights[..., None]))


@fault("coverage-gated-bahdanau-bi-rnn", "hypotheses_share_their_source")
def coverage_shared_by_the_hypotheses_of_a_source(patch: pytest.MonkeyPatch) -> None:
    real = coverage.GatedCoverage.forward

    def forward(self: Any, before: Tensor, weights: Tensor, query: Tensor, known: Tensor) -> Tensor:
        return real(self, before, weights, query, known).mean(1, keepdim=True).expand_as(before)

    patch.setattr(coverage.GatedCoverage, "forward", forward)


@fault("coverage-fertility-bahdanau-lstm", "float64_equals_the_reference_formula")
def fertility_multiplied_with(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        coverage.FertilityCoverage,
        "forward",
        lambda self, before, weights, query, known: before + weights[..., None] * known[:, None],
    )


@fault("coverage-fertility-luong-concat-gru", "every_parameter_gets_a_gradient")
def fertility_cut_from_the_graph(patch: pytest.MonkeyPatch) -> None:
    real = coverage.FertilityCoverage.know
    patch.setattr(coverage.FertilityCoverage, "know", lambda self, states: real(self, states).detach())


@fault("coverage-location-bahdanau-bi-lstm", "float64_equals_the_reference_formula")
def neighbours_the_wrong_way_round(patch: pytest.MonkeyPatch) -> None:
    real = coverage.LocationCoverage.forward

    def forward(self: Any, before: Tensor, weights: Tensor, query: Tensor, known: None) -> Tensor:
        said = real(self, before, weights, query, known)
        return torch.cat([said[..., :1], said[..., 1:].flip(-1)], -1)

    patch.setattr(coverage.LocationCoverage, "forward", forward)


@fault("coverage-location-luong-dot-bi-fed-gru", "float64_equals_the_reference_formula")
def location_of_the_last_look_alone(patch: pytest.MonkeyPatch) -> None:
    real = coverage.LocationCoverage.forward
    patch.setattr(
        coverage.LocationCoverage,
        "forward",
        lambda self, before, weights, query, known: real(self, torch.zeros_like(before), weights, query, known),
    )


@fault("coverage-gated-luong-general-bi-lstm", "float64_equals_the_reference_formula")
def gates_the_wrong_way_round(patch: pytest.MonkeyPatch) -> None:
    real = coverage.GatedCoverage.forward

    def forward(self: Any, before: Tensor, weights: Tensor, query: Tensor, known: Tensor) -> Tensor:
        return before + weights[..., None] - real(self, before, weights, query, known)

    patch.setattr(coverage.GatedCoverage, "forward", forward)


@fault("coverage-gated-luong-general-bi-lstm", "float64_equals_the_reference_formula")
def coverage_updated_without_the_query(patch: pytest.MonkeyPatch) -> None:
    real = coverage.GatedCoverage.forward
    patch.setattr(
        coverage.GatedCoverage,
        "forward",
        lambda self, before, weights, query, known: real(self, before, weights, torch.zeros_like(query), known),
    )


@fault("coverage-fertility-luong-concat-gru", "nan_in_hidden_states_stays_there")
def hidden_states_reach_the_fertility(patch: pytest.MonkeyPatch) -> None:
    def remember(self: Any, states: Tensor, mask: Tensor) -> Any:
        values = states.masked_fill(mask[..., None], 0.0)
        return coverage.CoveredKeys(Keys(self.score.project(values), values, mask), self.coverage.know(states))

    patch.setattr(coverage.CoveredAttention, "remember", remember)


@fault("coverage-sum-bahdanau-bi-gru", "padding_changes_nothing")
def mask_lost_under_coverage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coverage, "masked_softmax", lambda scores, mask: scores.softmax(-1))
