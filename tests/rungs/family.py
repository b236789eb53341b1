"""What the battery must be told of a family of rungs. Knows no architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from answers import some_symbols
from eyeline.contracts import Source

SOURCE, TARGET = 13, 11  # entries of the vocabularies


@dataclass(frozen=True)
class Family:
    """Settings by name, and what is special about their models."""

    settings: Mapping[str, Any]
    # (settings, weights, source, inputs) -> log-probabilities [T, X] and attention [T, S] or None, float64, of one source alone
    reference: Callable[[Any, Mapping[str, Any], Source, list[int]], tuple[Any, Any]]
    source: Callable[[Source, int], Source] = some_symbols  # (ids and lengths, seed) -> what these rungs read
    width: Callable[[Source], int] = lambda source: TARGET  # X of a batch, when the vocabulary is not shared
    inputs: int = TARGET  # decoder inputs are drawn below this
    rows_sum_to_one: Callable[[Any], bool] = lambda settings: True  # whether these settings' attention is a distribution
    no_gradient: Mapping[str, str] = field(default_factory=dict)  # parameter that may have none -> why
    constant: Mapping[str, str] = field(default_factory=dict)  # plane of the state that a step may leave as it was -> why
    unread: Mapping[str, str] = field(default_factory=dict)  # plane of the state that may be nudged unnoticed -> why
