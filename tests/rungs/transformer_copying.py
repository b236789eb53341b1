"""The Transformer that copies, tiny: from an attention of its own, or from a head of its last layer."""

from __future__ import annotations

from typing import Any

from eyeline.config_models import PointerGeneratorTransformerSettings
from reference import transformer

from . import copying
from .family import Family
from .transformer import GELU, POST, ROTARY, TINY, WINDOW

GIVEN: dict[str, dict[str, Any]] = {
    "learned": {},  # the default
    "learned-post-untied": {**POST, **GELU, "tie_output": False},
    "head-1": {"copy_head": 1},
    "head-0-post-window-rotary": {**POST, **WINDOW, **ROTARY, "copy_head": 0, "encoder_layers": 1},
}
FAMILY = Family(
    {
        f"pointer-generator-transformer-{name}": PointerGeneratorTransformerSettings(**{**TINY, **given})
        for name, given in GIVEN.items()
    },
    transformer.copying_log_probabilities,
    source=copying.copied,
    width=copying.width,
    inputs=copying.FAMILY.inputs,
)
