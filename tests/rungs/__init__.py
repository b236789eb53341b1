"""The rungs that the battery runs over. A new family of rungs has a module here and a line in FAMILIES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from answers import Dims
from eyeline.contracts import Source
from eyeline.ladder import Seq2Seq, build

from . import copying, coverage, pointing, recurrent, state_space, transformer, transformer_copying
from .family import SOURCE, TARGET, Family
from .recurrent import CELLS, LAYERS, TINY, options

__all__ = ["CELLS", "FAMILIES", "LAYERS", "RUNGS", "SOURCE", "TARGET", "TINY", "drawn", "make", "options"]

FAMILIES: list[Family] = [
    recurrent.FAMILY,
    pointing.SYMBOLS,
    pointing.VECTORS,
    coverage.FAMILY,
    copying.FAMILY,
    transformer.FAMILY,
    transformer_copying.FAMILY,
    state_space.FAMILY,
]
RUNGS: Mapping[str, Any] = {name: settings for family in FAMILIES for name, settings in family.settings.items()}


def drawn(settings: Any, seed: int, shared: bool) -> Seq2Seq:
    """A model whose every weight matters: all of them drawn anew, biases too, so that no fault hides behind a zero."""
    torch.manual_seed(seed)
    model = build(settings, SOURCE, SOURCE if shared else TARGET, shared)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(std=0.5)
            if name.endswith("norm.weight"):
                parameter += 1.0  # a scale about zero would fade out what is below
            if name.endswith("table.weight"):
                parameter[0] = 0.0  # PAD
    return model.eval()


def make(settings: Any, shared: bool = False) -> tuple[Seq2Seq, Dims]:
    """A model and what the battery must know of it."""
    family = next(each for each in FAMILIES if settings in each.settings.values())

    def reference(weights: Mapping[str, Any], source: Source, inputs: list[int]) -> tuple[Any, Any]:
        arrays = {name: np.asarray(weight, dtype=np.float64) for name, weight in weights.items()}
        return family.reference(settings, arrays, source, inputs)

    more = SOURCE - TARGET if shared else 0
    dims = Dims(
        source=SOURCE,
        inputs=family.inputs + more,
        reference=reference,
        another=lambda: drawn(settings, 1, shared),
        dress=family.source,
        width=lambda source: family.width(source) + more,
        rows_sum_to_one=family.rows_sum_to_one(settings),
        no_gradient=family.no_gradient,
        constant=family.constant,
        unread=family.unread,
    )
    return drawn(settings, 0, shared), dims
