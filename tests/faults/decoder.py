"""Faults of what is handed from step to step, and of positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.contracts import Step
from eyeline.nn import attention, decoders, recurrent

from .registry import fault


@fault("luong-general-bi-fed-lstm-1x1", "what_is_handed_on_changes_and_is_read")
def input_feeding_dropped(patch: pytest.MonkeyPatch) -> None:
    real = decoders.StepThenAttendFed.advance
    patch.setattr(
        decoders.StepThenAttendFed,
        "advance",
        lambda self, embedded, state, memory: real(self, embedded, replace(state, feed=torch.zeros_like(state.feed)), memory),
    )


@fault("luong-general-bi-fed-lstm-1x1", "what_is_handed_on_changes_and_is_read")
def first_feed_handed_on_for_ever(patch: pytest.MonkeyPatch) -> None:
    real = decoders.StepThenAttendFed.advance

    def advance(self: Any, embedded: Tensor, state: Any, memory: Any) -> Any:
        step, after = real(self, embedded, state, memory)
        return step, replace(after, feed=state.feed)

    patch.setattr(decoders.StepThenAttendFed, "advance", advance)


@fault("bahdanau-bi-lstm-1x2", "what_is_handed_on_changes_and_is_read")
def lstm_cell_plane_not_handed_on(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.Stack.forward

    def forward(self: Any, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        outputs, after = real(self, inputs, state)
        return outputs, torch.stack([after[:, :, 0], torch.zeros_like(after[:, :, 1])], 2)

    patch.setattr(recurrent.Stack, "forward", forward)


@fault("seq2seq-once-lstm-2x2", "teacher_forcing_equals_stepping")
def upper_layer_starts_anew_at_each_step(patch: pytest.MonkeyPatch) -> None:
    real = decoders.Parallel.step

    def step(self: Any, token: Tensor, state: Any, memory: Any) -> Any:
        said, after = real(self, token, state, memory)
        return said, replace(after, hidden=torch.cat([after.hidden[:, :1], torch.zeros_like(after.hidden[:, 1:])], 1))

    patch.setattr(decoders.Parallel, "step", step)


@fault("luong-general-bi-fed-lstm-1x1", "select_equals_recomputing")
def select_leaves_the_feed_where_it_was(patch: pytest.MonkeyPatch) -> None:
    def select(self: Any, rows: Tensor) -> Any:
        feed = self.feed if len(rows) == len(self.feed) else self.feed[rows]
        return decoders.Fed(self.hidden[rows], feed)

    patch.setattr(decoders.Fed, "select", select)


@fault("bahdanau-bi-lstm-1x2", "select_equals_recomputing")
def select_leaves_the_cell_plane_where_it_was(patch: pytest.MonkeyPatch) -> None:
    def select(self: Any, rows: Tensor) -> Any:
        hidden = self.hidden[rows].clone()
        if len(rows) == len(self.hidden):
            hidden[:, :, 1] = self.hidden[:, :, 1]
        return decoders.Hidden(hidden)

    patch.setattr(decoders.Hidden, "select", select)


@fault("bahdanau-rnn-1x1", "a_step_leaves_its_arguments_alone")
def state_overwritten_in_place(patch: pytest.MonkeyPatch) -> None:
    real = decoders.AttendThenStep.advance

    def advance(self: Any, embedded: Tensor, state: Any, memory: Any) -> Any:
        step, after = real(self, embedded, state, memory)
        state.hidden.copy_(after.hidden)
        return step, state

    patch.setattr(decoders.AttendThenStep, "advance", advance)


@fault("luong-dot-rnn-1x2", "teacher_forcing_equals_stepping")
def context_of_the_previous_step(patch: pytest.MonkeyPatch) -> None:
    real = attention.Attention.look
    patch.setattr(
        attention.Attention, "look", lambda self, query, keys: real(self, torch.cat([query[:, :1], query[:, :-1]], 1), keys)
    )


@fault("coverage-sum-bahdanau-bi-gru", "teacher_forcing_equals_stepping")
def attention_reported_one_row_late(patch: pytest.MonkeyPatch) -> None:
    real = decoders.stack_steps

    def stack_steps(steps: list[Step]) -> Step:
        step = real(steps)
        return Step(step.features, {name: weights.roll(1, 1) for name, weights in step.attention.items()})

    patch.setattr(decoders, "stack_steps", stack_steps)


@fault("seq2seq-once-rnn-1x1", "the_future_is_not_seen")
def decoder_fed_what_it_should_say(patch: pytest.MonkeyPatch) -> None:
    real = decoders.Parallel.forward
    patch.setattr(decoders.Parallel, "forward", lambda self, tokens, memory: real(self, tokens.roll(-1, 1), memory))


@fault("bahdanau-rnn-1x1", "the_future_is_not_seen")
def sequential_decoder_fed_what_it_should_say(patch: pytest.MonkeyPatch) -> None:
    real = decoders.Sequential.forward
    patch.setattr(decoders.Sequential, "forward", lambda self, tokens, memory: real(self, tokens.roll(-1, 1), memory))


@fault("luong-dot-fed-lstm-1x1", "float64_equals_the_reference_formula")
def luong_looks_before_the_step(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Any, embedded: Tensor, state: Any, memory: Any) -> Any:
        context, weights = self.attention.look(state.hidden[:, -1, 0][:, None], memory.keys)
        outputs, hidden = self.stack(torch.cat([embedded, state.feed], -1)[:, None], state.hidden)
        features = self.readout(context[:, 0], outputs[:, 0])
        return Step(features, {"source": weights[:, 0]}), decoders.Fed(hidden, features)

    patch.setattr(decoders.StepThenAttendFed, "advance", advance)


@fault("bahdanau-lstm-2x2", "float64_equals_the_reference_formula")
def bahdanau_looks_with_the_bottom_layer(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Any, embedded: Tensor, state: Any, memory: Any) -> Any:
        context, weights = self.attention.look(state.hidden[:, 0, 0][:, None], memory.keys)
        outputs, hidden = self.stack(torch.cat([embedded[:, None], context], -1), state.hidden)
        return Step(self.readout(outputs[:, 0], context[:, 0], embedded), {"source": weights[:, 0]}), decoders.Hidden(hidden)

    patch.setattr(decoders.AttendThenStep, "advance", advance)
