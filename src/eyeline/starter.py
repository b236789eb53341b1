"""The config that runs as it is: on a sample that ships with the package. Knows settings and samples; imports no torch."""

from __future__ import annotations

from typing import Any

from eyeline.config import Config
from eyeline.config_models import MODEL_SETTINGS
from eyeline.data.generated import sample
from eyeline.errors import ConfigError, nearest

SMALL = {  # enough for the samples; an architecture has those of its settings
    "embedding_size": 64,
    "encoder_size": 96,
    "decoder_size": 128,
    "attention_size": 96,
    "size": 128,
    "feedforward_size": 256,
    "dropout": 0.1,
}


def starting_config(architecture: str = "bahdanau", seed: int | None = None) -> Config:
    """A complete config that runs as it is: on dates, or, for outputs that are positions, on numbers to be sorted.

    Raises:
        ConfigError: the architecture is unknown.
    """
    if architecture not in MODEL_SETTINGS:
        raise ConfigError("unknown architecture", f"--architecture {architecture}", nearest(architecture, MODEL_SETTINGS))
    settings = MODEL_SETTINGS[architecture]
    model = {"architecture": architecture, **{name: SMALL[name] for name in SMALL if name in settings.model_fields}}
    values = _sorting(model) if settings.outputs == "positions" else _dates(model)
    return Config.from_dict({**values, "seed": 1 if seed is None else seed})


def _dates(model: dict[str, Any]) -> dict[str, Any]:
    written = {"columns": ["source", "target", "alignment"], "links": "characters", "target_language": "iso8601"}
    return {
        "data": {**_files("dates"), **written},
        "tokenizer": {"kind": "character"},
        "model": model,
        "training": _training(batch_tokens=2048, validate_every=250),
        "search": {"max_length": 20},
    }


def _sorting(model: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": _files("sorting"),
        "model": {**model, "distinct": True},
        "training": _training(batch_tokens=1024, validate_every=100),
    }


def _files(name: str) -> dict[str, list[str]]:
    return {part: [str(sample(name, part))] for part in ("train", "valid", "test")}


def _training(batch_tokens: int, validate_every: int) -> dict[str, Any]:
    return {
        "epochs": 12,
        "batch_tokens": batch_tokens,
        "learning_rate": 3e-3,
        "schedule": "linear",
        "warmup_steps": 100,
        "validate_every": validate_every,
        "checkpoint_every": validate_every,
        "metric": "exact_match",
    }
