"""Additive attention before the step (Bahdanau et al. 2015, appendix A), with coverage if wanted (Tu et al. 2016)."""

from __future__ import annotations

from eyeline.config_models import BahdanauSettings
from eyeline.ladder import recurrent
from eyeline.ladder.coverage import covered
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import AdditiveAttention, AttendThenStep, Generate, Maxout


def bahdanau(settings: BahdanauSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = recurrent.embeddings(settings, source, target, shared)
    encoder = recurrent.encoder(settings, below)
    stack = recurrent.stack(settings, above.size + encoder.size)
    attention = AdditiveAttention(stack.size, encoder.size, settings.attention_size)
    readout = Maxout(stack.size + encoder.size + above.size, stack.size)
    looking = covered(attention, settings.coverage, stack.size, encoder.size)
    decoder = AttendThenStep(above, stack, recurrent.bridge(encoder, stack), looking, readout, settings.dropout)
    return Seq2Seq(encoder, decoder, Generate(readout.size, target))
