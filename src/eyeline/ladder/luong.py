"""Multiplicative attention after the step (Luong et al. 2015, sections 3.1 and 3.2, with or without the input feeding of 3.3)."""

from __future__ import annotations

from collections.abc import Callable

from eyeline.config_models import LuongSettings
from eyeline.ladder import recurrent
from eyeline.ladder.coverage import covered
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import (
    Attention,
    Attentional,
    ConcatScore,
    DotScore,
    GeneralScore,
    Generate,
    LocalMonotonic,
    LocalPredictive,
    ProjectedDotScore,
    ScaledDotScore,
    Score,
    StepThenAttend,
    StepThenAttendFed,
)

SCORES: dict[str, Callable[[int, int, int], Score]] = {  # from the widths of query and keys, and the rank
    "dot": lambda query, keys, rank: DotScore(query, keys),
    "general": lambda query, keys, rank: GeneralScore(query, keys),
    "concat": lambda query, keys, rank: ConcatScore(query, keys, query),
    "scaled-dot": lambda query, keys, rank: ScaledDotScore(query, keys),
    "projected-dot": ProjectedDotScore,
}
SCOPES: dict[str, Callable[[Score, int, int], Attention]] = {  # from a score, the window and the width of queries
    "global": lambda score, window, query: Attention(score),
    "local-m": lambda score, window, query: LocalMonotonic(score, window),
    "local-p": LocalPredictive,
}


def luong(settings: LuongSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = recurrent.embeddings(settings, source, target, shared)
    encoder = recurrent.encoder(settings, below)
    score = SCORES[settings.score](settings.decoder_size, encoder.size, settings.rank or settings.decoder_size)
    attention = SCOPES[settings.scope](score, settings.window, settings.decoder_size)
    readout = Attentional(encoder.size + settings.decoder_size, settings.decoder_size)
    stack = recurrent.stack(settings, above.size + (readout.size if settings.input_feeding else 0))
    order = StepThenAttendFed if settings.input_feeding else StepThenAttend
    looking = covered(attention, settings.coverage, settings.decoder_size, encoder.size)
    decoder = order(above, stack, recurrent.bridge(encoder, stack), looking, readout, settings.dropout)
    return Seq2Seq(encoder, decoder, Generate(readout.size, target))
