"""The recurrent rungs of the first half of the ladder: every option with every cell, tiny."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from eyeline.config_models import BahdanauSettings, LuongSettings, Seq2SeqSettings
from reference import models

from .family import Family

Settings = Seq2SeqSettings | BahdanauSettings | LuongSettings
TINY: dict[str, Any] = {"embedding_size": 5, "encoder_size": 4, "decoder_size": 6, "dropout": 0.0}
LAYERS = [(1, 1), (2, 2), (1, 2), (2, 1)]  # of encoder and decoder
CELLS = ["rnn", "lstm", "gru"]


def options() -> Iterator[tuple[str, type[Settings], dict[str, Any]]]:
    """(name, settings class, options) of every way to build a rung, cells and layers aside."""
    for bidirectional, context, reverse in product([False, True], ["once", "every-step"], [False, True]):
        name = f"seq2seq-{context}{'-bi' if bidirectional else ''}{'-reversed' if reverse else ''}"
        yield name, Seq2SeqSettings, {"bidirectional": bidirectional, "context": context, "reverse_source": reverse}
    for bidirectional in (False, True):
        yield f"bahdanau{'-bi' if bidirectional else ''}", BahdanauSettings, {"bidirectional": bidirectional, "attention_size": 7}
    for bidirectional, score, feeding in product([False, True], ["dot", "general", "concat"], [False, True]):
        name = f"luong-{score}{'-bi' if bidirectional else ''}{'-fed' if feeding else ''}"
        widths = {"decoder_size": 8 if bidirectional else 4} if score == "dot" else {}
        yield name, LuongSettings, {"bidirectional": bidirectional, "score": score, "input_feeding": feeding, **widths}
    yield from _luong_further()


def _luong_further() -> Iterator[tuple[str, type[Settings], dict[str, Any]]]:
    """The scores after Luong's, and windows narrower than the sources over scores of several kinds."""
    one, both = {"bidirectional": False}, {"bidirectional": True}
    chosen: dict[str, dict[str, Any]] = {
        "scaled-dot-bi-fed": {**both, "score": "scaled-dot", "decoder_size": 8},
        "projected-dot": {**one, "score": "projected-dot", "input_feeding": False},
        "projected-dot-rank3-bi-fed": {**both, "score": "projected-dot", "rank": 3},
        "local-m-dot": {**one, "score": "dot", "scope": "local-m", "window": 1, "decoder_size": 4, "input_feeding": False},
        "local-m-concat-bi-fed": {**both, "score": "concat", "scope": "local-m", "window": 1},
        "local-p-general": {**one, "score": "general", "scope": "local-p", "window": 2, "input_feeding": False},
        "local-p-projected-dot-bi-fed": {**both, "score": "projected-dot", "rank": 4, "scope": "local-p", "window": 1},
    }
    for name, given in chosen.items():
        yield f"luong-{name}", LuongSettings, given


def _settings() -> dict[str, Settings]:
    """Every option with every cell; layers go round, so that each option meets three of them and each cell all of them."""
    made = {}
    for number, (name, kind, given) in enumerate(options()):
        for other, cell in enumerate(CELLS):
            below, above = LAYERS[(number + other) % len(LAYERS)]
            values = {**TINY, **given, "cell": cell, "encoder_layers": below, "decoder_layers": above}
            made[f"{name}-{cell}-{below}x{above}"] = kind(**values)
    return made


def _rows_sum_to_one(settings: Settings) -> bool:
    return not (isinstance(settings, LuongSettings) and settings.scope == "local-p")  # a Gaussian takes a share of each weight


FAMILY = Family(_settings(), models.log_probabilities, rows_sum_to_one=_rows_sum_to_one)
