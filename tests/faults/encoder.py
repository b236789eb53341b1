"""Faults of the encoder and the bridge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline.contracts import Source
from eyeline.nn import recurrent

from .registry import fault


@fault("bahdanau-bi-rnn-2x2", "neighbours_change_nothing")
def directions_joined_by_view(patch: pytest.MonkeyPatch) -> None:
    """(directions, batch, width) viewed as (batch, directions × width)."""
    real = recurrent.RecurrentEncoder.forward

    def forward(self: Any, source: Source) -> Any:
        encoding = real(self, source)
        directions = encoding.final.unflatten(-1, (2, -1)).permute(1, 2, 3, 0, 4).contiguous()  # [L, P, directions, B, D]
        joined = directions.view(*directions.shape[:2], len(source.ids), -1)
        return replace(encoding, final=joined.permute(2, 0, 1, 3))

    patch.setattr(recurrent.RecurrentEncoder, "forward", forward)


@fault("bahdanau-bi-rnn-2x2", "float64_equals_the_reference_formula")
def backward_state_taken_at_the_last_position(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.RecurrentEncoder.forward

    def forward(self: Any, source: Source) -> Any:
        encoding = real(self, source)
        last = encoding.states[torch.arange(len(source.ids)), (source.lengths - 1).clamp(min=0)]  # [B, D]
        final, half = encoding.final.clone(), last.shape[-1] // 2
        final[:, -1, 0, half:] = last[:, half:]
        return replace(encoding, final=final)

    patch.setattr(recurrent.RecurrentEncoder, "forward", forward)


@fault("seq2seq-once-bi-gru-1x2", "padding_changes_nothing")
def padding_read_by_the_encoder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recurrent, "_at_least_one", lambda source: torch.full_like(source.lengths, source.ids.shape[1]))


@fault("seq2seq-once-rnn-1x1", "order_changes_nothing")
def states_left_in_sorted_order(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.RecurrentEncoder.forward

    def forward(self: Any, source: Source) -> Any:
        encoding = real(self, source)
        return replace(encoding, final=encoding.final[source.lengths.argsort(descending=True)])

    patch.setattr(recurrent.RecurrentEncoder, "forward", forward)


@fault("seq2seq-once-reversed-rnn-2x2", "padding_changes_nothing")
def reversal_ignores_lengths(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recurrent.Reversed, "forward", lambda self, source: self.encoder(Source(source.ids.flip(1), source.lengths)))


@fault("seq2seq-once-rnn-1x1", "the_past_is_seen")
def source_never_reaches_the_decoder(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.DenseBridge.forward
    patch.setattr(recurrent.DenseBridge, "forward", lambda self, final: torch.zeros_like(real(self, final)))


@fault("bahdanau-bi-lstm-1x2", "float64_equals_the_reference_formula")
def bridge_squashes_the_cell_plane(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.DenseBridge.forward

    def forward(self: Any, final: Tensor) -> Tensor:
        first = real(self, final)
        return torch.cat([first[:, :, :1], first[:, :, 1:].tanh()], 2)

    patch.setattr(recurrent.DenseBridge, "forward", forward)


@fault("bahdanau-lstm-2x2", "float64_equals_the_reference_formula")
def bridge_turns_the_layers_round(patch: pytest.MonkeyPatch) -> None:
    real = recurrent.DenseBridge.forward
    patch.setattr(recurrent.DenseBridge, "forward", lambda self, final: real(self, final.flip(1)))
