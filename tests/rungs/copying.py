"""The rungs that copy. Sources use symbols of the target vocabulary beside their own, which differ from row to row and repeat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from eyeline.config_models import PointerGeneratorSettings
from eyeline.contracts import END, PAD, Source
from reference import copying

from .family import TARGET, Family
from .recurrent import TINY

HELD = 2  # source symbols below this, counted from the first that is not reserved, are entries of the target vocabulary


def copied(source: Source, seed: int) -> Source:
    """The same sources with extended ids: some symbols are held, the others numbered in each source in order of appearance.

    A source of three symbols or more is given its second symbol again as its last but one, END not counted.
    """
    ids = source.ids.clone()
    for row, length in enumerate(source.lengths.tolist()):
        if length > 3:
            ids[row, length - 2] = ids[row, 1]
    copies, most = torch.full_like(ids, PAD), 0
    for row, length in enumerate(source.lengths.tolist()):
        own: dict[int, int] = {}
        for column, symbol in enumerate(ids[row, :length].tolist()):
            held = END if symbol == END else symbol + 2 if symbol < 4 + HELD else None
            copies[row, column] = own.setdefault(symbol, TARGET + len(own)) if held is None else held
        most = max(most, len(own))
    return replace(source, ids=ids, copy_ids=copies, extra=most)


def width(source: Source) -> int:
    return TARGET + source.extra


def _settings(coverage: str, cell: str, below: int, above: int, bidirectional: bool) -> PointerGeneratorSettings:
    sizes = {"encoder_layers": below, "decoder_layers": above, "attention_size": 7}
    return PointerGeneratorSettings(**{**TINY, **sizes, "cell": cell, "bidirectional": bidirectional, "coverage": coverage})


SETTINGS: dict[str, Any] = {
    "pointer-generator-bi-lstm-1x1": _settings("none", "lstm", 1, 1, True),
    "pointer-generator-gru-2x2": _settings("none", "gru", 2, 2, False),
    "pointer-generator-bi-rnn-1x2": _settings("none", "rnn", 1, 2, True),
    "pointer-generator-sum-bi-lstm-1x1": _settings("sum", "lstm", 1, 1, True),
    "pointer-generator-sum-gru-2x1": _settings("sum", "gru", 2, 1, False),
    "pointer-generator-fertility-bi-gru-1x1": _settings("fertility", "gru", 1, 1, True),
    "pointer-generator-gated-rnn-1x2": _settings("gated", "rnn", 1, 2, False),
    "pointer-generator-location-bi-gru-1x1": _settings("location", "gru", 1, 1, True),
}
FAMILY = Family(
    SETTINGS,
    copying.log_probabilities,
    source=copied,
    width=width,
    inputs=TARGET + 1,  # a source's first own word is fed too; its second would be read as the same UNKNOWN
)
