"""Additive attention with coverage after the step; words are generated or copied from where it looks (See et al. 2017)."""

from __future__ import annotations

from eyeline.config_models import PointerGeneratorSettings
from eyeline.ladder import recurrent
from eyeline.ladder.coverage import covered
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import (
    AdditiveAttention,
    Affine,
    ExtendedEmbedding,
    Gate,
    Generate,
    PointOrGenerate,
    StepThenAttendGated,
)


def pointer_generator(settings: PointerGeneratorSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = recurrent.embeddings(settings, source, target, shared)
    encoder = recurrent.encoder(settings, below)
    stack = recurrent.stack(settings, above.size + encoder.size)
    attention = AdditiveAttention(stack.size, encoder.size, settings.attention_size)
    decoder = StepThenAttendGated(
        ExtendedEmbedding(above),
        stack,
        recurrent.bridge(encoder, stack),
        covered(attention, settings.coverage, stack.size, encoder.size),
        Affine(stack.size + encoder.size, stack.size),
        Gate(encoder.size + stack.size + above.size),
        encoder.size,
        settings.dropout,
    )
    return Seq2Seq(encoder, decoder, PointOrGenerate(Generate(stack.size, target)))
