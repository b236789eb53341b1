"""Faults of states and memories of batches that are stepped as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from eyeline import contracts
from eyeline.nn import side_by_side, transformer

from .registry import fault
from .transformer import DEFAULT, ROTARY

BAHDANAU = "bahdanau-bi-lstm-1x2"


@fault(DEFAULT, "joined_equals_apart")
def positions_of_the_first_batch(patch: pytest.MonkeyPatch) -> None:
    real = transformer.LayerStates.joined

    def joined(self: Any, others: Any, width: int) -> Any:
        found = real(self, others, width)
        return replace(found, position=torch.full_like(found.position, int(found.position[0])))

    patch.setattr(transformer.LayerStates, "joined", joined)


@fault(ROTARY, "joined_equals_apart")
def turned_by_the_position_of_the_first_batch(patch: pytest.MonkeyPatch) -> None:
    real = side_by_side.SideBySide.places

    def places(self: Any, length: int, device: torch.device) -> Tensor:
        found = real(self, length, device)
        return found[:1].expand_as(found)

    patch.setattr(side_by_side.SideBySide, "places", places)


@fault(DEFAULT, "joined_equals_apart")
def rows_of_a_part_turned_round(patch: pytest.MonkeyPatch) -> None:
    real = side_by_side._selected
    patch.setattr(side_by_side, "_selected", lambda part, rows: real(part, rows.flip(0)))


@fault(BAHDANAU, "joined_equals_apart")
def what_is_added_to_a_source_is_seen(patch: pytest.MonkeyPatch) -> None:
    real = contracts.fitted

    def fitted(value: Tensor, place: Any, width: int) -> Tensor:
        return real(value, None if place is None else replace(place, beyond=False), width)

    patch.setattr(contracts, "fitted", fitted)


@fault(BAHDANAU, "joined_equals_apart")
def rows_of_the_others_in_front(patch: pytest.MonkeyPatch) -> None:
    real = contracts.join
    patch.setattr(contracts, "join", lambda values, width: real([*values[1:], values[0]], width))
