"""eyeline: train, run, compare and understand sequence-to-sequence models."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from eyeline.config import Config
    from eyeline.contracts import Prediction
    from eyeline.explorer import explain
    from eyeline.predictor import Predictor, load
    from eyeline.training import train

__all__ = ["Config", "Prediction", "Predictor", "__version__", "explain", "load", "train"]

_HOMES = {
    "Config": "eyeline.config",
    "Prediction": "eyeline.contracts",
    "explain": "eyeline.explorer",
    "Predictor": "eyeline.predictor",
    "load": "eyeline.predictor",
    "train": "eyeline.training",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when first used: torch takes seconds, and `eyeline --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'eyeline' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
