"""The config that runs as it is: on the dates that ship with the package. Knows settings and samples; imports no torch."""

from __future__ import annotations

from eyeline.config import Config
from eyeline.config_models import MODEL_SETTINGS
from eyeline.data.generated import sample
from eyeline.errors import ConfigError, nearest

SMALL = {  # enough for the dates; an architecture has those of its settings
    "embedding_size": 64,
    "encoder_size": 96,
    "decoder_size": 128,
    "attention_size": 96,
    "size": 128,
    "feedforward_size": 256,
    "dropout": 0.1,
}


def starting_config(architecture: str = "bahdanau", seed: int | None = None) -> Config:
    """A complete config that runs as it is: the dates that ship with the package.

    Raises:
        ConfigError: the architecture is unknown.
    """
    if architecture not in MODEL_SETTINGS:
        raise ConfigError("unknown architecture", f"--architecture {architecture}", nearest(architecture, MODEL_SETTINGS))
    settings = MODEL_SETTINGS[architecture].model_fields
    values = {
        "data": {
            "train": [str(sample("dates", "train"))],
            "valid": [str(sample("dates", "valid"))],
            "test": [str(sample("dates", "test"))],
            "columns": ["source", "target", "alignment"],
            "target_language": "iso8601",
        },
        "tokenizer": {"kind": "character"},
        "model": {"architecture": architecture, **{name: SMALL[name] for name in SMALL if name in settings}},
        "training": {
            "epochs": 12,
            "batch_tokens": 2048,
            "learning_rate": 3e-3,
            "schedule": "linear",
            "warmup_steps": 100,
            "validate_every": 250,
            "checkpoint_every": 250,
            "metric": "exact_match",
        },
        "search": {"max_length": 20},
        "seed": 1 if seed is None else seed,
    }
    return Config.from_dict(values)
