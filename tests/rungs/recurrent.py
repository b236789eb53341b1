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


def _settings() -> dict[str, Settings]:
    """Every option with every cell; layers go round, so that each option meets three of them and each cell all of them."""
    made = {}
    for number, (name, kind, given) in enumerate(options()):
        for other, cell in enumerate(CELLS):
            below, above = LAYERS[(number + other) % len(LAYERS)]
            values = {**TINY, **given, "cell": cell, "encoder_layers": below, "decoder_layers": above}
            made[f"{name}-{cell}-{below}x{above}"] = kind(**values)
    return made


FAMILY = Family(_settings(), models.log_probabilities)
