"""Faults of windows over the source, of the counter they remember, and of scaled scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.nn import local, scores
from eyeline.nn.attention import Keys

from .registry import fault

MONOTONIC, MONOTONIC_FED = "luong-local-m-dot-rnn-2x2", "luong-local-m-concat-bi-fed-lstm-2x1"
PREDICTIVE, PREDICTIVE_FED = "luong-local-p-general-rnn-2x1", "luong-local-p-projected-dot-bi-fed-gru-1x2"


def weighed(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Puts `change(real, self, query, keys, centre)` in the place of what weighs the positions of a window."""
    real = local.WindowedAttention.weigh
    patch.setattr(local.WindowedAttention, "weigh", lambda self, query, keys, centre: change(real, self, query, keys, centre))


@fault(MONOTONIC, "float64_equals_the_reference_formula")
def window_one_too_wide(patch: pytest.MonkeyPatch) -> None:
    weighed(patch, lambda real, self, *given: real(SimpleNamespace(score=self.score, window=self.window + 1), *given))


@fault(MONOTONIC_FED, "float64_equals_the_reference_formula")
def window_without_its_edges(patch: pytest.MonkeyPatch) -> None:
    weighed(patch, lambda real, self, *given: real(SimpleNamespace(score=self.score, window=self.window - 0.5), *given))


@fault(PREDICTIVE, "float64_equals_the_reference_formula")
def window_around_the_whole_number_below(patch: pytest.MonkeyPatch) -> None:
    def change(real: Any, self: Any, query: Tensor, keys: Keys, centre: Tensor) -> tuple[Tensor, Tensor]:
        weights, _ = real(self, query, keys, centre.floor())
        return weights, real(self, query, keys, centre)[1]

    weighed(patch, change)


@fault(PREDICTIVE_FED, "float64_equals_the_reference_formula")
def gaussian_dropped(patch: pytest.MonkeyPatch) -> None:
    weighed(patch, lambda real, *given: (real(*given)[0], torch.zeros_like(real(*given)[1])))


@fault(PREDICTIVE, "float64_equals_the_reference_formula")
def gaussian_twice_as_wide(patch: pytest.MonkeyPatch) -> None:
    weighed(patch, lambda real, *given: (real(*given)[0], real(*given)[1] / 2))


@fault(PREDICTIVE, "every_parameter_gets_a_gradient")
def predicted_position_does_not_learn(patch: pytest.MonkeyPatch) -> None:
    weighed(patch, lambda real, self, query, keys, centre: real(self, query, keys, centre.detach()))


@fault(PREDICTIVE_FED, "neighbours_change_nothing")
def predicted_position_of_the_neighbour(patch: pytest.MonkeyPatch) -> None:
    weighed(patch, lambda real, self, query, keys, centre: real(self, query, keys, centre.roll(1, 0)))


@fault(PREDICTIVE, "padding_changes_nothing")
def predicted_position_counts_padding(patch: pytest.MonkeyPatch) -> None:
    def change(real: Any, self: Any, query: Tensor, keys: Keys, centre: Tensor) -> tuple[Tensor, Tensor]:
        lengths = (~keys.mask).sum(1, keepdim=True)
        return real(self, query, keys, centre * keys.mask.shape[1] / lengths)  # type: ignore[no-any-return]

    weighed(patch, change)


@fault(MONOTONIC_FED, "attention_rows_sum_to_one_over_real_columns")
def mask_lost_inside_the_window(patch: pytest.MonkeyPatch) -> None:
    def change(real: Any, self: Any, query: Tensor, keys: Keys, centre: Tensor) -> tuple[Tensor, Tensor]:
        return real(self, query, Keys(keys.projected, keys.values, torch.zeros_like(keys.mask)), centre)  # type: ignore[no-any-return]

    weighed(patch, change)


@fault(MONOTONIC, "attention_rows_sum_to_one_over_real_columns")
def window_leaves_the_source(patch: pytest.MonkeyPatch) -> None:
    def minimum(position: Tensor, last: Tensor) -> Tensor:
        return position

    patch.setattr(torch, "minimum", minimum)


@fault(MONOTONIC_FED, "neighbours_change_nothing")
def window_ends_with_the_neighbour(patch: pytest.MonkeyPatch) -> None:
    real = torch.minimum
    patch.setattr(torch, "minimum", lambda position, last: real(position, last.roll(1, 0)))


def counted(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Puts `change(real, self, query, keys, looked)` in the place of a look that counts."""
    real = local.LocalMonotonic.attend
    patch.setattr(local.LocalMonotonic, "attend", lambda self, query, keys, looked: change(real, self, query, keys, looked))


@fault(MONOTONIC, "teacher_forcing_equals_stepping")
def counter_not_handed_on(patch: pytest.MonkeyPatch) -> None:
    counted(patch, lambda real, self, query, keys, looked: (*real(self, query, keys, looked)[:2], looked))


@fault(MONOTONIC_FED, "what_is_handed_on_changes_and_is_read")
def counter_not_handed_on_by_the_fed_decoder(patch: pytest.MonkeyPatch) -> None:
    counted(patch, lambda real, self, query, keys, looked: (*real(self, query, keys, looked)[:2], looked))


@fault(MONOTONIC_FED, "what_is_handed_on_changes_and_is_read")
def counter_never_read(patch: pytest.MonkeyPatch) -> None:
    def change(real: Any, self: Any, query: Tensor, keys: Keys, looked: Tensor) -> Any:
        context, weights, _ = real(self, query, keys, torch.zeros_like(looked))
        return context, weights, looked + query.shape[1]

    counted(patch, change)


@fault(MONOTONIC, "a_step_leaves_its_arguments_alone")
def counter_counted_up_in_place(patch: pytest.MonkeyPatch) -> None:
    def change(real: Any, self: Any, query: Tensor, keys: Keys, looked: Tensor) -> Any:
        context, weights, after = real(self, query, keys, looked)
        return context, weights, looked.copy_(after)

    counted(patch, change)


@fault(MONOTONIC_FED, "float64_equals_the_reference_formula")
def counting_from_one(patch: pytest.MonkeyPatch) -> None:
    counted(patch, lambda real, self, query, keys, looked: real(self, query, keys, looked + 1))


@fault(MONOTONIC, "hypotheses_share_their_source")
def window_of_hypotheses_interleaved_the_other_way(patch: pytest.MonkeyPatch) -> None:
    real = torch.minimum

    def minimum(position: Tensor, last: Tensor) -> Tensor:
        rows = last.flatten().repeat(position.shape[1])  # row k·N + n, where it is row n·K + k
        return real(position.flatten(), rows).view_as(position)

    patch.setattr(torch, "minimum", minimum)


@fault("luong-projected-dot-rnn-2x1", "float64_equals_the_reference_formula")
def projected_scores_not_scaled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scores.ProjectedDotScore, "forward", lambda self, query, keys: self.query(query) @ keys.transpose(1, 2))


@fault("luong-projected-dot-rank3-bi-fed-lstm-2x2", "float64_equals_the_reference_formula")
def scaled_by_the_width_instead_of_the_rank(patch: pytest.MonkeyPatch) -> None:
    real = scores.ProjectedDotScore.__init__

    def init(self: Any, query_size: int, key_size: int, rank: int) -> None:
        real(self, query_size, key_size, rank)
        self.size = query_size

    patch.setattr(scores.ProjectedDotScore, "__init__", init)
