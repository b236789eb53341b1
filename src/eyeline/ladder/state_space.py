"""Selective state spaces both ways, and before cross-attention (Gu & Dao 2023 for the layer)."""

from __future__ import annotations

from torch import nn

from eyeline.config_models import StateSpaceSettings
from eyeline.ladder.model import Seq2Seq
from eyeline.ladder.transformer import generate, tables
from eyeline.nn import (
    Embedding,
    MultiHeadAttention,
    NoPositions,
    PlacedEmbedding,
    PreNorm,
    SelectiveLayer,
    StateSpaceDecoder,
    StateSpaceDecoderLayer,
    StateSpaceEncoder,
    TwoWayLayer,
)


def _selective(settings: StateSpaceSettings) -> SelectiveLayer:
    return SelectiveLayer(settings.size, settings.expansion * settings.size, settings.state_size, settings.convolution)


def encoder(settings: StateSpaceSettings, table: Embedding) -> StateSpaceEncoder:
    layers = [
        TwoWayLayer(_selective(settings), _selective(settings), PreNorm(settings.size, settings.dropout))
        for _ in range(settings.encoder_layers)
    ]
    return StateSpaceEncoder(PlacedEmbedding(table, NoPositions(), settings.dropout), layers, nn.LayerNorm(settings.size))


def decoder(settings: StateSpaceSettings, table: Embedding) -> StateSpaceDecoder:
    layers = [
        StateSpaceDecoderLayer(
            _selective(settings),
            MultiHeadAttention(settings.size, settings.heads, dropout=settings.dropout),
            PreNorm(settings.size, settings.dropout),
            PreNorm(settings.size, settings.dropout),
        )
        for _ in range(settings.decoder_layers)
    ]
    shown = settings.alignment_layer, settings.alignment_head
    return StateSpaceDecoder(PlacedEmbedding(table, NoPositions(), settings.dropout), layers, nn.LayerNorm(settings.size), *shown)


def state_space(settings: StateSpaceSettings, source: int, target: int, shared: bool = False) -> Seq2Seq:
    """Builds the rung for vocabularies of `source` and `target` entries."""
    below, above = tables(settings, source, target, shared)
    return Seq2Seq(encoder(settings, below), decoder(settings, above), generate(settings, above, target))
