"""The ladder: the only table of names, one builder a rung."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eyeline.config_models import ModelSettings
from eyeline.ladder.bahdanau import bahdanau
from eyeline.ladder.luong import luong
from eyeline.ladder.model import Seq2Seq
from eyeline.ladder.pointer_generator import pointer_generator
from eyeline.ladder.pointer_generator_transformer import pointer_generator_transformer
from eyeline.ladder.pointer_network import pointer_network
from eyeline.ladder.seq2seq import seq2seq
from eyeline.ladder.state_space import state_space
from eyeline.ladder.transformer import transformer

LADDER: dict[str, Callable[..., Seq2Seq]] = {
    "seq2seq": seq2seq,
    "bahdanau": bahdanau,
    "luong": luong,
    "pointer-network": pointer_network,
    "pointer-generator": pointer_generator,
    "transformer": transformer,
    "state-space": state_space,
    "pointer-generator-transformer": pointer_generator_transformer,
}


def build(settings: ModelSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """The model that `settings` describe, for vocabularies of `source` and `target` entries, reserved ids counted.

    Raises:
        ConfigError: when settings contradict each other, such as a dot score over unequal widths.
    """
    builder: Callable[..., Any] = LADDER[settings.architecture]
    return builder(settings, source, target, shared)  # type: ignore[no-any-return]


__all__ = [
    "LADDER",
    "Seq2Seq",
    "bahdanau",
    "build",
    "luong",
    "pointer_generator",
    "pointer_generator_transformer",
    "pointer_network",
    "seq2seq",
    "state_space",
    "transformer",
]
