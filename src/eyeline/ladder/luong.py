"""Multiplicative attention after the step (Luong et al. 2015, section 3.1, with or without the input feeding of 3.3)."""

from __future__ import annotations

from eyeline.config_models import LuongSettings
from eyeline.ladder import recurrent
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import (
    Attentional,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    Generate,
    StepThenAttend,
    StepThenAttendFed,
)

SCORES = {"dot": DotAttention, "general": GeneralAttention, "concat": ConcatAttention}


def luong(settings: LuongSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = recurrent.embeddings(settings, source, target, shared)
    encoder = recurrent.encoder(settings, below)
    attention = SCORES[settings.score](settings.decoder_size, encoder.size)
    readout = Attentional(encoder.size + settings.decoder_size, settings.decoder_size)
    stack = recurrent.stack(settings, above.size + (readout.size if settings.input_feeding else 0))
    order = StepThenAttendFed if settings.input_feeding else StepThenAttend
    decoder = order(above, stack, recurrent.bridge(encoder, stack), attention, readout, settings.dropout)
    return Seq2Seq(encoder, decoder, Generate(readout.size, target))
