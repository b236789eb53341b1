"""Faults of the loop over a target whose derivatives are written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.nn import cells, looking, through_time

from .registry import fault


@fault("luong-general-bi-fed-lstm-1x1", "teacher_forcing_equals_stepping")
def loop_feeds_nothing(patch: pytest.MonkeyPatch) -> None:
    real = through_time._Forward._look

    def look(self: Any, t: int) -> Tensor:
        return torch.zeros_like(real(self, t))

    patch.setattr(through_time._Forward, "_look", look)


@fault("pointer-generator-bi-lstm-1x1", "teacher_forcing_equals_stepping")
def loop_looks_at_the_padding(patch: pytest.MonkeyPatch) -> None:
    real = looking.Look.__init__

    def init(self: Any, keys: Tensor, values: Tensor, hidden: Tensor, vector: Tensor | None) -> None:
        real(self, keys, values, torch.zeros_like(hidden), vector)

    patch.setattr(looking.Look, "__init__", init)


@fault("bahdanau-bi-lstm-1x2", "gradients_agree_both_ways")
def gradient_of_the_cell_plane_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = cells.LongShortTerm.backward

    def backward(self: Any, gates: Tensor, before: Tensor, after: Tensor, slope: Tensor, products: Tensor) -> None:
        real(self, gates, before, after, slope, products)
        slope.zero_()

    patch.setattr(cells.LongShortTerm, "backward", backward)


@fault("bahdanau-bi-gru-2x1", "gradients_agree_both_ways")
def gradient_around_the_gates_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = cells.Gated.backward

    def backward(self: Any, gates: Tensor, before: Tensor, after: Tensor, slope: Tensor, products: Tensor) -> None:
        real(self, gates, before, after, slope, products)
        slope.zero_()

    patch.setattr(cells.Gated, "backward", backward)


@fault("luong-concat-bi-fed-rnn-2x2", "gradients_agree_both_ways")
def keys_learn_from_one_look_alone(patch: pytest.MonkeyPatch) -> None:
    real = looking.Additive.backward

    def backward(self: Any, query: Tensor, slope: Tensor, out: Tensor) -> Tensor:
        self.of_keys = None
        return real(self, query, slope, out)

    patch.setattr(looking.Additive, "backward", backward)


@fault("luong-general-bi-fed-lstm-1x1", "gradients_agree_both_ways")
def gradient_of_the_feed_cut(patch: pytest.MonkeyPatch) -> None:
    real = through_time._Backward._look

    def look(self: Any, t: int) -> None:
        self.feed.zero_()
        real(self, t)

    patch.setattr(through_time._Backward, "_look", look)


@fault("pointer-generator-bi-lstm-1x1", "gradients_agree_both_ways")
def gradient_of_the_weights_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = through_time._Backward.run

    def run(self: Any) -> Any:
        self.of_weights = None
        return real(self)

    patch.setattr(through_time._Backward, "run", run)


@fault("bahdanau-bi-lstm-1x2", "gradients_agree_both_ways")
def recurrent_weights_read_the_state_after(patch: pytest.MonkeyPatch) -> None:
    """The gradient of W in W h₋ is taken with h."""
    real = through_time._Backward._of_layer

    def of_layer(self: Any, number: int) -> Any:
        states = tuple(torch.cat([each[1:], each[-1:]]) for each in self.record.states)
        self.record = replace(self.record, states=states)
        return real(self, number)

    patch.setattr(through_time._Backward, "_of_layer", of_layer)
