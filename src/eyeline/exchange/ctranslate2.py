"""Transformers as CTranslate2 has them: weights and vocabularies written for it. Knows its public converter API and the names of
our weights; no text, no search.

What it has no kind for (rotary and ALiBi positions between an encoder and a decoder, windows, linear attention) is refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.config_models import Architecture, TransformerSettings
from eyeline.contracts import BEGIN, END, RESERVED, UNKNOWN
from eyeline.errors import ConfigError, require
from eyeline.files import directory_beside

QUANTIZATIONS = ("float32", "int8", "int16", "float16")
POSITIONS = ("sinusoidal", "learned", "none")
ACTIVATIONS: Mapping[str, str] = {"relu": "RELU", "gelu": "GELU", "swiglu": "SWISH"}


def check_convertible(settings: Architecture) -> None:
    """Raises ConfigError for a model that CTranslate2 has no kind for."""
    hint = "a transformer with full attention and sinusoidal, learned or no positions can be"
    where = f"model.architecture={settings.architecture}"
    if isinstance(settings, TransformerSettings):
        if settings.positions in POSITIONS and settings.attention == "full":
            return
        where = f"model.positions={settings.positions}, model.attention={settings.attention}"
    raise ConfigError("CTranslate2 cannot hold this model", where, hint)


def names_of(tokens: Sequence[str]) -> list[str]:
    """A name for each id of a vocabulary: its token, with its number behind where another one is shown alike."""
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens):
        seen.setdefault(token, number)
    return [token if seen[token] == number else f"{token}#{number}" for number, token in enumerate(tokens)]


def write_ctranslate2(
    model: nn.Module,
    settings: TransformerSettings,
    vocabularies: tuple[Sequence[str], Sequence[str]],
    longest: int,
    out: Path,
    quantization: str = "float32",
    beside: Sequence[Path] = (),
) -> None:
    """Writes a model directory for `ctranslate2.Translator`, whole or not at all.

    Args:
        vocabularies: the names of all ids, of sources and of targets; see `names_of`.
        longest: positions that a source or a target may have, where they are not learned.
        quantization: one of QUANTIZATIONS.
        beside: files that are copied into it.

    Raises:
        ConfigError: a model that CTranslate2 has no kind for.
        MissingExtra: it is not installed.
    """
    check_convertible(settings)
    spec = _specification(model, settings, longest)
    source, target = vocabularies
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (RESERVED[one] for one in (UNKNOWN, BEGIN, END))
    spec.config.decoder_start_token = RESERVED[BEGIN]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    with directory_beside(out) as folder:
        spec.save(str(folder))
        for path in beside:
            shutil.copyfile(path, folder / path.name)


def _specification(model: Any, settings: TransformerSettings, longest: int) -> Any:
    specs: Any = require("ctranslate2.specs.transformer_spec", "exchange")
    common: Any = require("ctranslate2.specs.common_spec", "exchange")
    kind = {
        "num_heads": settings.heads,
        "pre_norm": settings.norm == "pre",
        "activation": getattr(common.Activation, ACTIVATIONS[settings.activation]),
        "ffn_glu": settings.activation == "swiglu",
    }
    encoder = specs.TransformerEncoderSpec(settings.encoder_layers, **kind)
    decoder = specs.TransformerDecoderSpec(settings.decoder_layers, **kind)
    _stack(encoder, model.encoder, encoder.embeddings[0], longest)
    _stack(decoder, model.decoder, decoder.embeddings, longest)
    for ours, theirs in zip(model.encoder.layers, encoder.layer, strict=True):
        _self_attention(ours, theirs)
        _feedforward(ours.feedforward, ours.second, theirs.ffn)
    for ours, theirs in zip(model.decoder.layers, decoder.layer, strict=True):
        _self_attention(ours, theirs)
        for part, linear in zip(theirs.attention.linear, ("query", "keys_and_values", "output"), strict=True):
            _linear(part, getattr(ours.cross, linear))
        _norm(theirs.attention.layer_norm, ours.second.norm)
        _feedforward(ours.feedforward, ours.third, theirs.ffn)
    _linear(decoder.projection, model.head.project)
    return specs.TransformerSpec(encoder, decoder)


def _stack(theirs: Any, ours: Any, embeddings: Any, longest: int) -> None:
    """What stands around the layers: embeddings, which both sides scale by √D, positions, and the last norm."""
    placed = ours.embedding
    table = placed.embedding.table.weight
    embeddings.weight = _numbers(table)
    if hasattr(placed.positions, "table"):
        theirs.position_encodings.encodings = _numbers(placed.positions.table)
    else:
        theirs.position_encodings.encodings = _numbers(placed.positions(torch.zeros(1, longest, table.shape[1]))[0])
    if isinstance(ours.norm, nn.LayerNorm):
        _norm(theirs.layer_norm, ours.norm)


def _self_attention(ours: Any, theirs: Any) -> None:
    _linear(theirs.self_attention.linear[0], ours.attention.inward)
    _linear(theirs.self_attention.linear[1], ours.attention.outward)
    _norm(theirs.self_attention.layer_norm, ours.first.norm)


def _feedforward(ours: Any, around: Any, theirs: Any) -> None:
    if hasattr(theirs, "linear_0_noact"):  # one product of both maps, the one that is activated first
        for part, weight, bias in zip(
            (theirs.linear_0, theirs.linear_0_noact), ours.inward.weight.chunk(2), ours.inward.bias.chunk(2), strict=True
        ):
            part.weight, part.bias = _numbers(weight), _numbers(bias)
    else:
        _linear(theirs.linear_0, ours.inward)
    _linear(theirs.linear_1, ours.outward)
    _norm(theirs.layer_norm, around.norm)


def _linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight, theirs.bias = _numbers(ours.weight), _numbers(ours.bias)


def _norm(theirs: Any, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = _numbers(ours.weight), _numbers(ours.bias)


def _numbers(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().contiguous().numpy()
