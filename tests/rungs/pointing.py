"""Pointer networks over symbols and over vectors of two numbers, with positions that may come again and without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from answers import FIRST, LENGTHS
from eyeline.config_models import PointerNetworkSettings
from eyeline.contracts import Source
from reference import pointing

from .family import Family

NUMBERS = 2  # in an element
TINY: dict[str, Any] = {"embedding_size": 5, "encoder_size": 4, "decoder_size": 6, "attention_size": 7, "dropout": 0.0}
WAYS: dict[str, dict[str, Any]] = {
    "symbols-lstm-1x1": {"cell": "lstm"},
    "symbols-gru-1x1-copied": {"cell": "gru", "encoder_size": 6},
    "symbols-rnn-2x1-bi": {"cell": "rnn", "encoder_layers": 2, "bidirectional": True},
    "symbols-distinct-lstm-2x2": {"cell": "lstm", "encoder_layers": 2, "decoder_layers": 2, "distinct": True},
    "vectors-gru-1x2": {"cell": "gru", "decoder_layers": 2},
    "vectors-lstm-1x1-bi": {"cell": "lstm", "bidirectional": True},
    "vectors-distinct-lstm-1x1": {"cell": "lstm", "distinct": True},
    "vectors-distinct-rnn-2x1-bi": {"cell": "rnn", "encoder_layers": 2, "bidirectional": True, "distinct": True},
}


def element_size(name: str) -> int:
    return NUMBERS if name.startswith("vectors") else 0


def vectors(source: Source, seed: int) -> Source:
    """Sources with numbers for their elements too: NaN at END and in the padding, where they mean nothing."""
    values = torch.randn(*source.ids.shape, NUMBERS, generator=torch.Generator().manual_seed(seed))
    real = torch.arange(source.ids.shape[1]) < source.lengths[:, None] - 1
    return replace(source, values=values.masked_fill(~real[..., None], torch.nan))


def width(source: Source) -> int:
    return FIRST + source.ids.shape[1]


def family(prefix: str) -> Family:
    settings = {
        f"pointer-network-{name}": PointerNetworkSettings(**{**TINY, **given, "element_size": element_size(name)})
        for name, given in WAYS.items()
        if name.startswith(prefix)
    }
    # Some inputs lie beyond their own source: they feed zeros.
    return Family(settings, pointing.log_probabilities, width=width, inputs=FIRST + max(LENGTHS) - 1)


SYMBOLS = family("symbols")
VECTORS = replace(family("vectors"), source=vectors)
