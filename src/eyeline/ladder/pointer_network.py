"""Pointing at the source's positions (Vinyals et al. 2015)."""

from __future__ import annotations

from eyeline.config_models import PointerNetworkSettings
from eyeline.errors import ConfigError
from eyeline.ladder import recurrent
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import AdditiveScore, Distinct, ElementEncoder, Embedding, Point, Repeatable, StepThenPoint, Symbols, Vectors


def pointer_network(settings: PointerNetworkSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for a vocabulary of `source` entries, or for elements of `element_size` numbers; there is none of targets.

    Raises:
        ConfigError: when a vocabulary is to be shared.
    """
    if shared:
        raise ConfigError(
            "a pointer network answers with positions: there is no second vocabulary to share", "shared=true", "leave it out"
        )
    size = settings.embedding_size
    numbers = settings.element_size
    elements = Vectors(numbers, size, settings.dropout) if numbers else Symbols(Embedding(source, size, settings.dropout))
    encoder = ElementEncoder(elements, recurrent.layers(settings, size), settings.dropout)
    stack = recurrent.stack(settings, size)
    score = AdditiveScore(stack.size, encoder.size, settings.attention_size)
    choice = Distinct() if settings.distinct else Repeatable()
    decoder = StepThenPoint(stack, recurrent.bridge(encoder, stack), score, choice, size, settings.dropout)
    return Seq2Seq(encoder, decoder, Point())
