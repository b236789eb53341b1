"""Faults of masks, rows and neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.contracts import PAD, Source
from eyeline.nn import attention, decoders, heads
from eyeline.nn.attention import Keys

from .registry import fault


def unmasked(memory: Any) -> Any:
    keys = memory.keys
    return replace(memory, keys=Keys(keys.projected, keys.values, torch.zeros_like(keys.mask)))


@fault("luong-dot-rnn-1x2", "teacher_forcing_equals_stepping")
def mask_lost_in_stepping(patch: pytest.MonkeyPatch) -> None:
    real = decoders.Parallel.step
    patch.setattr(decoders.Parallel, "step", lambda self, token, state, memory: real(self, token, state, unmasked(memory)))


@fault("luong-dot-rnn-1x2", "padding_changes_nothing")
def mask_lost_in_teacher_forcing(patch: pytest.MonkeyPatch) -> None:
    real = decoders.Parallel.forward
    patch.setattr(decoders.Parallel, "forward", lambda self, tokens, memory: real(self, tokens, unmasked(memory)))


@fault("bahdanau-bi-gru-2x1", "attention_rows_sum_to_one_over_real_columns")
def mask_lost_everywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "masked_softmax", lambda scores, mask: scores.softmax(-1))


@fault("bahdanau-bi-gru-2x1", "attention_rows_sum_to_one_over_real_columns")
def mask_that_only_discourages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "masked_softmax", lambda scores, mask: (scores - 10.0 * mask).softmax(-1))


@fault("bahdanau-bi-gru-2x1", "attention_rows_sum_to_one_over_real_columns")
def mask_after_softmax_without_a_new_sum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "masked_softmax", lambda scores, mask: scores.softmax(-1).masked_fill(mask, 0.0))


@fault("bahdanau-bi-gru-2x1", "an_empty_source_stays_finite")
def mask_of_minus_infinity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "masked_softmax", lambda scores, mask: scores.masked_fill(mask, -torch.inf).softmax(-1))


@fault("luong-concat-bi-rnn-1x1", "nan_in_hidden_states_stays_there")
def hidden_states_multiplied_by_zero(patch: pytest.MonkeyPatch) -> None:
    def remember(self: Any, states: Tensor, mask: Tensor) -> Keys:
        values = states * (~mask)[..., None]
        return Keys(self.score.project(values), values, mask)

    patch.setattr(attention.Attention, "remember", remember)


@fault("luong-general-fed-gru-2x1", "neighbours_change_nothing")
def mask_one_column_too_wide(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Source, "mask", property(lambda self: torch.arange(self.ids.shape[1]) > self.lengths[:, None]))


@fault("luong-general-fed-gru-2x1", "garbage_in_the_padding_changes_nothing")
def mask_guessed_from_the_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Source, "mask", property(lambda self: self.ids.eq(PAD)))


@fault("luong-general-fed-gru-2x1", "float64_equals_the_reference_formula")
def last_symbol_hidden(patch: pytest.MonkeyPatch) -> None:
    def mask(self: Source) -> Tensor:
        return torch.arange(self.ids.shape[1]) >= (self.lengths - 1).clamp(min=1)[:, None]

    patch.setattr(Source, "mask", property(mask))


@fault("bahdanau-bi-rnn-2x2", "neighbours_change_nothing")
def keys_of_the_neighbour(patch: pytest.MonkeyPatch) -> None:
    real = attention.Attention.remember
    patch.setattr(attention.Attention, "remember", lambda self, states, mask: real(self, states.roll(1, 0), mask))


@fault("bahdanau-bi-rnn-2x2", "hypotheses_share_their_source")
def rows_interleaved_the_other_way(patch: pytest.MonkeyPatch) -> None:
    """Row k·N + n is taken to read source n, where it is row n·K + k."""
    real = attention.Attention.look

    def look(self: Any, query: Tensor, keys: Keys) -> Any:
        sources = len(keys.mask)
        turn = torch.arange(len(query)).view(-1, sources).T.flatten()  # the row each folded query is taken from
        context, weights = real(self, query[turn], keys)
        back = turn.argsort()
        return context[back], weights[back]

    patch.setattr(attention.Attention, "look", look)


@fault("seq2seq-every-step-rnn-1x2", "hypotheses_share_their_source")
def vector_repeated_the_other_way(patch: pytest.MonkeyPatch) -> None:
    real = decoders.ContextEveryStep.advance

    def advance(self: Any, tokens: Tensor, hidden: Tensor, memory: Any) -> Any:
        beams = len(tokens) // len(memory.vector)
        return real(self, tokens, hidden, replace(memory, vector=memory.vector.repeat(beams, 1)))

    patch.setattr(decoders.ContextEveryStep, "advance", advance)


@fault("bahdanau-bi-gru-2x1", "probabilities_sum_to_one")
def probabilities_over_the_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heads.Generate, "forward", lambda self, step, source: self.project(step.features).log_softmax(0))


@fault("luong-dot-rnn-1x2", "attention_rows_sum_to_one_over_real_columns")
def softmax_over_the_queries(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        attention,
        "masked_softmax",
        lambda scores, mask: scores.masked_fill(mask, -1e9).softmax(-2).masked_fill(mask, 0.0),
    )
