"""Self-attention and cross-attention, no recurrence (Vaswani et al. 2017), and what its builder shares with the copying one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from eyeline.config_models import AttentiveSettings, StateSpaceSettings, TransformerSettings
from eyeline.ladder.model import Seq2Seq
from eyeline.nn import (
    Alibi,
    BothWays,
    Causal,
    CausalLinearSelfAttention,
    CausalSelfAttention,
    CausalWindowSelfAttention,
    DecoderLayer,
    Embedding,
    EncoderLayer,
    ExtendedEmbedding,
    FeedForward,
    Generate,
    LearnedPositions,
    LinearSelfAttention,
    MultiHeadAttention,
    NoPositions,
    Order,
    PlacedEmbedding,
    Positions,
    PostNorm,
    PreNorm,
    Residual,
    Rotary,
    SelfAttention,
    Sinusoidal,
    SwiGLU,
    TransformerDecoder,
    TransformerEncoder,
    Unordered,
    WindowSelfAttention,
)

POSITIONS: Mapping[str, Callable[[AttentiveSettings], tuple[Positions, Order]]] = {  # what is added, and what attention knows
    "sinusoidal": lambda s: (Sinusoidal(s.size), Unordered()),
    "learned": lambda s: (LearnedPositions(s.max_positions, s.size), Unordered()),
    "rotary": lambda s: (NoPositions(), Rotary(s.size // s.heads)),
    "alibi": lambda s: (NoPositions(), Alibi(s.heads)),
    "none": lambda s: (NoPositions(), Unordered()),
}
BOTH_WAYS: Mapping[str, Callable[[AttentiveSettings, Order], BothWays]] = {
    "full": lambda s, order: SelfAttention(s.size, s.heads, order, s.dropout),
    "window": lambda s, order: WindowSelfAttention(s.size, s.heads, order, s.window, s.dropout),
    "linear": lambda s, order: LinearSelfAttention(s.size, s.heads),
}
CAUSAL: Mapping[str, Callable[[AttentiveSettings, Order], Causal]] = {
    "full": lambda s, order: CausalSelfAttention(s.size, s.heads, order, s.dropout),
    "window": lambda s, order: CausalWindowSelfAttention(s.size, s.heads, order, s.window, s.dropout),
    "linear": lambda s, order: CausalLinearSelfAttention(s.size, s.heads),
}
FEEDFORWARD: Mapping[str, Callable[[AttentiveSettings], nn.Module]] = {
    "relu": lambda s: FeedForward(s.size, s.feedforward_size, nn.ReLU()),
    "gelu": lambda s: FeedForward(s.size, s.feedforward_size, nn.GELU()),
    "swiglu": lambda s: SwiGLU(s.size, s.feedforward_size),
}
RESIDUALS: Mapping[str, Callable[[AttentiveSettings], Residual]] = {
    "pre": lambda s: PreNorm(s.size, s.dropout),
    "post": lambda s: PostNorm(s.size, s.dropout),
}
LAST_NORM: Mapping[str, Callable[[int], nn.Module]] = {"pre": nn.LayerNorm, "post": lambda size: nn.Identity()}


def encoder(settings: AttentiveSettings, table: Embedding) -> TransformerEncoder:
    attention, feedforward = BOTH_WAYS[settings.attention], FEEDFORWARD[settings.activation]
    around, norm = RESIDUALS[settings.norm], LAST_NORM[settings.norm]
    positions, order = POSITIONS[settings.positions](settings)
    layers = [
        EncoderLayer(attention(settings, order), feedforward(settings), around(settings), around(settings))
        for _ in range(settings.encoder_layers)
    ]
    return TransformerEncoder(PlacedEmbedding(table, positions, settings.dropout), layers, norm(settings.size))


def decoder(
    settings: AttentiveSettings, table: Embedding | ExtendedEmbedding, layer: int = -1, head: int | None = None
) -> TransformerDecoder:
    """The decoder, which shows the cross-attention of one layer: of `head`, or the mean of all."""
    attention, feedforward = CAUSAL[settings.attention], FEEDFORWARD[settings.activation]
    around, norm = RESIDUALS[settings.norm], LAST_NORM[settings.norm]
    positions, order = POSITIONS[settings.positions](settings)
    layers = [
        DecoderLayer(
            attention(settings, order),
            MultiHeadAttention(settings.size, settings.heads, dropout=settings.dropout),
            feedforward(settings),
            *(around(settings) for _ in range(3)),
        )
        for _ in range(settings.decoder_layers)
    ]
    return TransformerDecoder(PlacedEmbedding(table, positions, settings.dropout), layers, norm(settings.size), layer, head)


def tables(
    settings: AttentiveSettings | StateSpaceSettings, source: int, target: int, shared: bool
) -> tuple[Embedding, Embedding]:
    """Tables for both sides; one and the same when the vocabulary is shared. Dropout follows once positions are added.

    Vectors are drawn of length one, since they are scaled when they are read, and may be the output layer's, too.
    """
    spread = settings.size**-0.5
    below = Embedding(source, settings.size, spread=spread)
    return below, below if shared else Embedding(target, settings.size, spread=spread)


def generate(settings: AttentiveSettings | StateSpaceSettings, above: Embedding, target: int) -> Generate:
    """The output layer, whose weights may be the target table's (Press and Wolf 2017)."""
    head = Generate(settings.size, target)
    if settings.tie_output:
        head.project.weight = above.table.weight
    return head


def transformer(settings: TransformerSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = tables(settings, source, target, shared)
    shown = settings.alignment_layer, settings.alignment_head
    return Seq2Seq(encoder(settings, below), decoder(settings, above, *shown), generate(settings, above, target))
