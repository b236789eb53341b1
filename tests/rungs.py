"""The rungs that the battery runs over: every option of every rung with every cell, tiny. Knows the ladder's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import torch

from answers import Dims
from eyeline.config import BahdanauSettings, LuongSettings, Seq2SeqSettings
from eyeline.ladder import Seq2Seq, build
from reference.models import log_probabilities

Settings = Seq2SeqSettings | BahdanauSettings | LuongSettings
SOURCE, TARGET = 13, 11  # entries of the vocabularies
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


RUNGS: Mapping[str, Settings] = _settings()


def drawn(settings: Settings, seed: int, shared: bool) -> Seq2Seq:
    """A model whose every weight matters: all of them drawn anew, biases too, so that no fault hides behind a zero."""
    torch.manual_seed(seed)
    model = build(settings, SOURCE, SOURCE if shared else TARGET, shared)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(std=0.5)
            if name.endswith("table.weight"):
                parameter[0] = 0.0  # PAD
    return model.eval()


def make(settings: Settings, shared: bool = False) -> tuple[Seq2Seq, Dims]:
    """A model and what the battery must know of it."""

    def reference(weights: Mapping[str, Any], source: list[int], inputs: list[int]) -> tuple[Any, Any]:
        arrays = {name: np.asarray(weight, dtype=np.float64) for name, weight in weights.items()}
        return log_probabilities(settings, arrays, source, inputs)

    dims = Dims(SOURCE, SOURCE if shared else TARGET, reference, lambda: drawn(settings, 1, shared))
    return drawn(settings, 0, shared), dims
