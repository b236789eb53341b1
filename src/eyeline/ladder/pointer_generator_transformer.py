"""A Transformer (Vaswani et al. 2017) whose words are generated or copied from the source (See et al. 2017, section 2.2)."""

from __future__ import annotations

from eyeline.config_models import PointerGeneratorTransformerSettings
from eyeline.ladder.model import Seq2Seq
from eyeline.ladder.transformer import decoder, encoder, generate, tables
from eyeline.nn import (
    Attention,
    ExtendedEmbedding,
    Gate,
    GatedTransformerDecoder,
    OwnLook,
    PointOrGenerate,
    ProjectedDotScore,
    ShownLook,
)


def pointer_generator_transformer(
    settings: PointerGeneratorTransformerSettings, source: int, target: int, shared: bool = False
) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = tables(settings, source, target, shared)
    size, head = settings.size, settings.copy_head
    if head == "learned":
        plain = decoder(settings, ExtendedEmbedding(above))
        look: OwnLook | ShownLook = OwnLook(Attention(ProjectedDotScore(size, size, size)))
    else:
        plain, look = decoder(settings, ExtendedEmbedding(above), layer=-1, head=head), ShownLook()
    gated = GatedTransformerDecoder(plain, look, Gate(3 * size))
    return Seq2Seq(encoder(settings, below), gated, PointOrGenerate(generate(settings, above, target)))
