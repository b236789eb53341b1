"""Attention with coverage: every kind, under additive, concat and product scores, in either order of looking and stepping."""

from __future__ import annotations

from typing import Any

from eyeline.config_models import BahdanauSettings, LuongSettings
from reference import coverage

from .family import Family
from .recurrent import TINY


def _bahdanau(kind: str, cell: str, below: int, above: int, bidirectional: bool) -> BahdanauSettings:
    sizes = {"encoder_layers": below, "decoder_layers": above, "attention_size": 7}
    return BahdanauSettings(**{**TINY, **sizes, "cell": cell, "bidirectional": bidirectional, "coverage": kind})


def _luong(kind: str, score: str, cell: str, bidirectional: bool, fed: bool) -> LuongSettings:
    widths = {"decoder_size": 8 if bidirectional else 4} if score in ("dot", "scaled-dot") else {}
    given = {"score": score, "cell": cell, "bidirectional": bidirectional, "input_feeding": fed, "coverage": kind}
    return LuongSettings(**{**TINY, **widths, **given})


SETTINGS: dict[str, Any] = {
    "coverage-sum-bahdanau-bi-gru": _bahdanau("sum", "gru", 1, 1, True),
    "coverage-fertility-bahdanau-lstm": _bahdanau("fertility", "lstm", 1, 2, False),
    "coverage-gated-bahdanau-bi-rnn": _bahdanau("gated", "rnn", 2, 1, True),
    "coverage-location-bahdanau-bi-lstm": _bahdanau("location", "lstm", 1, 1, True),
    "coverage-location-luong-dot-bi-fed-gru": _luong("location", "dot", "gru", True, True),
    "coverage-sum-luong-general-rnn": _luong("sum", "general", "rnn", False, False),
    "coverage-sum-luong-concat-bi-fed-lstm": _luong("sum", "concat", "lstm", True, True),
    "coverage-fertility-luong-concat-gru": _luong("fertility", "concat", "gru", False, False),
    "coverage-fertility-luong-dot-bi-fed-rnn": _luong("fertility", "dot", "rnn", True, True),
    "coverage-sum-luong-projected-dot-bi-fed-gru": _luong("sum", "projected-dot", "gru", True, True),
    "coverage-fertility-luong-scaled-dot-rnn": _luong("fertility", "scaled-dot", "rnn", False, False),
    "coverage-gated-luong-general-bi-lstm": _luong("gated", "general", "lstm", True, False),
    "coverage-gated-luong-dot-fed-gru": _luong("gated", "dot", "gru", False, True),
}
FAMILY = Family(SETTINGS, coverage.log_probabilities)
