"""Faults of what a Transformer hands from step to step, and of positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from eyeline.nn import beam_cache, linear_attention, positions, self_attention, transformer

from .registry import fault
from .transformer import DEFAULT, LINEAR, ROTARY


@fault(DEFAULT, "teacher_forcing_equals_stepping")
def position_off_by_one_when_stepping(patch: pytest.MonkeyPatch) -> None:
    real = transformer.PlacedEmbedding.forward
    patch.setattr(
        transformer.PlacedEmbedding, "forward", lambda self, ids, start=0, mask=None: real(self, ids, max(0, start - 1), mask)
    )


@fault(ROTARY, "teacher_forcing_equals_stepping")
def turned_as_if_every_step_were_the_first(patch: pytest.MonkeyPatch) -> None:
    real = self_attention.Heads.split
    patch.setattr(self_attention.Heads, "split", lambda self, inputs, places, _: real(self, inputs, torch.arange(len(places))))


@fault(DEFAULT, "what_is_handed_on_changes_and_is_read")
def cache_handed_on_as_it_came(patch: pytest.MonkeyPatch) -> None:
    real = self_attention.CausalSelfAttention.forward
    patch.setattr(
        self_attention.CausalSelfAttention,
        "forward",
        lambda self, inputs, past, together=1, real_ones=None: (real(self, inputs, past)[0], past),
    )


@fault(DEFAULT, "what_is_handed_on_changes_and_is_read")
def cache_keeps_the_latest_alone(patch: pytest.MonkeyPatch) -> None:
    real = self_attention.CausalSelfAttention.forward

    def forward(self: Any, inputs: Tensor, past: Any, together: int = 1, real_ones: Any = None) -> Any:
        output, now = real(self, inputs, past)
        again = [torch.cat([part[:, :, -1:]] * part.shape[2], 2) for part in (now.keys, now.values)]
        return output, self_attention.Cache(*again)

    patch.setattr(self_attention.CausalSelfAttention, "forward", forward)


@fault(DEFAULT, "what_is_handed_on_changes_and_is_read")
def cached_values_never_read(patch: pytest.MonkeyPatch) -> None:
    real = self_attention.CausalSelfAttention.forward
    patch.setattr(
        self_attention.CausalSelfAttention,
        "forward",
        lambda self, inputs, past, together=1, real_ones=None: real(
            self, inputs, replace(past, values=torch.zeros_like(past.values), room=None)
        ),
    )


@fault(DEFAULT, "select_equals_recomputing")
def cached_values_not_reordered(patch: pytest.MonkeyPatch) -> None:
    def select(self: Any, rows: Tensor) -> Any:
        values = self.values if len(rows) == len(self.values) else self.values[rows]
        return self_attention.Cache(self.keys[rows], values)

    patch.setattr(self_attention.Cache, "select", select)


@fault(DEFAULT, "select_equals_recomputing")
def ancestors_not_reordered(patch: pytest.MonkeyPatch) -> None:
    real = beam_cache.BeamCache.select

    def select(self: Any, rows: Tensor) -> Any:
        chosen = real(self, rows)
        same = isinstance(chosen, beam_cache.BeamCache) and chosen.ancestors.shape == self.ancestors.shape
        return replace(chosen, ancestors=self.ancestors) if same else chosen

    patch.setattr(beam_cache.BeamCache, "select", select)


@fault(DEFAULT, "select_equals_recomputing")
def sources_of_beams_not_dropped(patch: pytest.MonkeyPatch) -> None:
    real = beam_cache.BeamCache.select

    def select(self: Any, rows: Tensor) -> Any:
        chosen = real(self, rows)
        fewer = isinstance(chosen, beam_cache.BeamCache) and len(chosen.places) < len(self.places)
        return replace(chosen, places=torch.arange(len(chosen.places))) if fewer else chosen

    patch.setattr(beam_cache.BeamCache, "select", select)


@fault(DEFAULT, "hypotheses_share_their_source")
def hypotheses_see_their_siblings(patch: pytest.MonkeyPatch) -> None:
    real = beam_cache.BeamCache.asked

    def asked(self: Any, queries: Tensor) -> Any:
        *others, seen = real(self, queries)
        return *others, torch.ones_like(seen)

    patch.setattr(beam_cache.BeamCache, "asked", asked)


@fault(LINEAR, "select_equals_recomputing")
def sums_not_reordered(patch: pytest.MonkeyPatch) -> None:
    real = linear_attention.Sums.select
    patch.setattr(linear_attention.Sums, "select", lambda self, rows: self if len(rows) == len(self.totals) else real(self, rows))


@fault(LINEAR, "a_step_leaves_its_arguments_alone")
def sums_added_to_in_place(patch: pytest.MonkeyPatch) -> None:
    real = linear_attention.CausalLinearSelfAttention.forward

    def forward(self: Any, inputs: Tensor, past: Any, together: int = 1, real_ones: Any = None) -> Any:
        output, now = real(self, inputs, past)
        past.totals.copy_(now.totals)
        return output, past

    patch.setattr(linear_attention.CausalLinearSelfAttention, "forward", forward)


@fault(LINEAR, "teacher_forcing_equals_stepping")
def sums_start_anew_at_each_step(patch: pytest.MonkeyPatch) -> None:
    real = linear_attention.CausalLinearSelfAttention.forward
    patch.setattr(
        linear_attention.CausalLinearSelfAttention,
        "forward",
        lambda self, inputs, past, together=1, real_ones=None: real(self, inputs, self.start(len(inputs), inputs)),
    )


@fault("transformer-pre-gelu-learned-1x2", "save_and_load_change_nothing")
def table_of_positions_outside_the_state_dict(patch: pytest.MonkeyPatch) -> None:
    def init(self: Any, max_positions: int, size: int) -> None:
        nn.Module.__init__(self)
        self.table = torch.randn(max_positions, size)

    patch.setattr(positions.LearnedPositions, "__init__", init)
