"""The battery over every rung, cell, depth and option."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from torch import Tensor

import battery
from answers import Dims
from eyeline.contracts import Source
from eyeline.nn.cells import by_hand
from eyeline.nn.recurrent import Encoding, RecurrentLayers
from eyeline.nn.through_time import ThroughTime
from rungs import RUNGS, make


@functools.cache
def built(name: str) -> tuple[Any, Dims]:
    return make(RUNGS[name])


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("check", battery.CHECKS)
def test_battery(rung: str, check: str) -> None:
    battery.run(check, *built(rung))


@pytest.mark.parametrize(
    "rung", ["seq2seq-once-rnn-1x1", "bahdanau-bi-lstm-1x2", "luong-general-bi-fed-gru-2x2", "pointer-generator-bi-lstm-1x1"]
)
@pytest.mark.parametrize("check", battery.CHECKS)
def test_battery_with_one_embedding_for_both_sides(rung: str, check: str) -> None:
    battery.run(check, *make(RUNGS[rung], shared=True))


@pytest.mark.parametrize("rung", ["bahdanau-bi-lstm-1x2", "luong-general-bi-fed-gru-2x2", "pointer-generator-bi-rnn-1x2"])
@pytest.mark.parametrize("check", battery.CHECKS)
def test_battery_without_derivatives_by_hand(rung: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain loop, which mixed precision, coverage and windows take."""
    monkeypatch.setattr(ThroughTime, "of", lambda stack, attention, embedded: None)
    battery.run(check, *built(rung))


@pytest.mark.parametrize("rung", ["seq2seq-once-bi-gru-1x2", "bahdanau-bi-lstm-1x2", "luong-general-bi-fed-gru-2x2"])
@pytest.mark.parametrize("check", battery.CHECKS)
def test_battery_with_sources_read_by_hand(rung: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in training, where there is a gradient; without one packed sequences are taken."""

    def read(self: RecurrentLayers, inputs: Tensor, source: Source) -> Encoding:
        return self._padded(inputs, source, [by_hand(layer) for layer in self.layers])

    monkeypatch.setattr(RecurrentLayers, "read", read)
    battery.run(check, *built(rung))
