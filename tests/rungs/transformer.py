"""The Transformer, tiny: norm, activation, positions and attention, each with each other at least once."""

from __future__ import annotations

from typing import Any

from eyeline.config_models import TransformerSettings
from reference import transformer

from .family import Family

TINY: dict[str, Any] = {"size": 8, "heads": 2, "feedforward_size": 12, "dropout": 0.0, "encoder_layers": 2, "decoder_layers": 2}
SWIGLU, GELU, ROTARY, ALIBI, LEARNED = (
    {"activation": "swiglu"},
    {"activation": "gelu"},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"positions": "learned", "max_positions": 7},
)
POST, WINDOW, LINEAR = {"norm": "post"}, {"attention": "window", "window": 2}, {"attention": "linear"}
GIVEN: dict[str, dict[str, Any]] = {
    "post-relu-sinusoidal": {**POST, "tie_output": False},  # as in the paper
    "pre-relu-sinusoidal-tied": {},  # the default
    "pre-gelu-learned-1x2": {**GELU, **LEARNED, "encoder_layers": 1, "alignment_head": 1},
    "post-swiglu-rotary": {**POST, **SWIGLU, **ROTARY, "alignment_layer": 0},
    "pre-swiglu-alibi-2x1": {**SWIGLU, **ALIBI, "decoder_layers": 1, "tie_output": False},
    "post-gelu-none": {**POST, **GELU, "positions": "none", "heads": 4},
    "pre-relu-window": WINDOW,
    "post-swiglu-window-rotary": {**POST, **SWIGLU, **WINDOW, **ROTARY},
    "pre-gelu-window-alibi": {**GELU, **ALIBI, "attention": "window", "window": 3},
    "pre-relu-linear": {**LINEAR, "tie_output": False},
    "post-gelu-linear-learned": {**POST, **GELU, **LINEAR, **LEARNED},
}
FAMILY = Family(
    {f"transformer-{name}": TransformerSettings(**{**TINY, **given}) for name, given in GIVEN.items()},
    transformer.log_probabilities,
)
