"""The rung without attention: the source is squeezed into one fixed vector (Sutskever et al. 2014; Cho et al. 2014)."""

from __future__ import annotations

from eyeline.config_models import Seq2SeqSettings
from eyeline.ladder import recurrent
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import ContextEveryStep, Generate, Maxout, Reversed, StateOnly


def seq2seq(settings: Seq2SeqSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = recurrent.embeddings(settings, source, target, shared)
    encoder = recurrent.encoder(settings, below)
    reader = Reversed(encoder) if settings.reverse_source else encoder
    if settings.context == "once":
        stack = recurrent.stack(settings, above.size)
        plain = StateOnly(above, stack, recurrent.bridge(encoder, stack), settings.dropout)
        return Seq2Seq(reader, plain, Generate(stack.size, target))
    stack = recurrent.stack(settings, above.size + encoder.size)
    readout = Maxout(stack.size + encoder.size + above.size, stack.size)
    decoder = ContextEveryStep(above, stack, recurrent.bridge(encoder, stack), readout, settings.dropout)
    return Seq2Seq(reader, decoder, Generate(readout.size, target))
