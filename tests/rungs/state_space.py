"""The state-space rung, tiny: every option away from its default, with each other in turn."""

from __future__ import annotations

from typing import Any

from eyeline.config_models import StateSpaceSettings
from reference import state_space

from .family import Family

TINY: dict[str, Any] = {"size": 6, "heads": 2, "state_size": 3, "expansion": 1, "dropout": 0.0}
GIVEN: dict[str, dict[str, Any]] = {
    "tied": {},  # the default
    "1x1": {"encoder_layers": 1, "decoder_layers": 1, "tie_output": False},
    "1x2-wide": {"encoder_layers": 1, "expansion": 2, "size": 4, "alignment_layer": 0},
    "2x1-narrow-window": {"decoder_layers": 1, "convolution": 2, "tie_output": False},
    "no-window": {"convolution": 1, "heads": 3, "alignment_head": 1},
    "one-number": {"convolution": 3, "state_size": 1, "heads": 1},
    "rank-of-two": {"size": 20, "state_size": 2, "encoder_layers": 1, "decoder_layers": 1},
}
FAMILY = Family(
    {f"state-space-{name}": StateSpaceSettings(**{**TINY, **given}) for name, given in GIVEN.items()},
    state_space.log_probabilities,
)
