"""The ladder as a comparison takes it by name: comparable sizes, and a learning rate and dropout of its own for each rung.

They are those of `replications/ladder.py`, chosen on validation pairs of French pronunciation and of image captions.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

_RECURRENT = {"embedding_size": 128, "encoder_size": 128, "decoder_size": 256, "dropout": 0.3}
_ADDITIVE = {**_RECURRENT, "attention_size": 128}
_TRANSFORMER = {"size": 128, "heads": 4, "feedforward_size": 512, "dropout": 0.1}
_STATE_SPACE = {"size": 128, "heads": 4, "dropout": 0.1}

# Of each architecture: what a rung of it starts from, in its own settings and in those of its training.
SIZES = MappingProxyType(
    {
        "seq2seq": {**_RECURRENT, "encoder_size": 256},  # one direction: as wide as two of the others'
        "bahdanau": _ADDITIVE,
        "luong": _RECURRENT,
        "pointer-network": {**_ADDITIVE, "encoder_size": 256, "dropout": 0.1},
        "pointer-generator": _ADDITIVE,
        "transformer": _TRANSFORMER,
        "pointer-generator-transformer": _TRANSFORMER,
        "state-space": _STATE_SPACE,
    }
)
LEARNING_RATES = MappingProxyType(dict.fromkeys(SIZES, 2e-3) | {"pointer-network": 1e-3})

_TEXT = (
    "seq2seq",
    "bahdanau",
    "luong",
    "pointer-generator",
    "transformer",
    "pointer-generator-transformer",
    "state-space",
)


def ladder(points: bool) -> list[dict[str, Any]]:
    """Every rung that fits a task: the pointer networks where outputs are positions, and else all others."""
    if not points:
        return [{"name": name, "architecture": name} for name in _TEXT]
    network = {"architecture": "pointer-network"}
    return [
        {"name": "pointer-network", **network},
        {"name": "pointer-network, both ways", **network, "bidirectional": True, "encoder_size": 128},
        {"name": "pointer-network, gru", **network, "cell": "gru"},
    ]
