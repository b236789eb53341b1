"""What the builders of the recurrent rungs share: names of cells made into cells, stacks, encoders and bridges."""

from __future__ import annotations

from torch import nn

from eyeline.config_models import RecurrentSettings
from eyeline.nn import CopyBridge, DenseBridge, Embedding, RecurrentEncoder, RecurrentLayers, Stack

CELLS: dict[str, type[nn.RNN] | type[nn.LSTM] | type[nn.GRU]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


def embeddings(settings: RecurrentSettings, source: int, target: int, shared: bool) -> tuple[Embedding, Embedding]:
    """Tables for both sides; one and the same when the vocabulary is shared."""
    below = Embedding(source, settings.embedding_size, settings.dropout)
    return below, below if shared else Embedding(target, settings.embedding_size, settings.dropout)


def layers(settings: RecurrentSettings, input_size: int) -> list[nn.RNNBase]:
    """The encoder's layers: `encoder_layers` of `encoder_size` a direction."""
    width = settings.encoder_size * (2 if settings.bidirectional else 1)
    sizes = [input_size] + [width] * (settings.encoder_layers - 1)
    return [
        CELLS[settings.cell](size, settings.encoder_size, batch_first=True, bidirectional=settings.bidirectional)
        for size in sizes
    ]


def encoder(settings: RecurrentSettings, embedding: Embedding) -> RecurrentEncoder:
    """The encoder of symbols."""
    return RecurrentEncoder(embedding, layers(settings, embedding.size), settings.dropout)


def stack(settings: RecurrentSettings, input_size: int) -> Stack:
    """The decoder's recurrent layers."""
    sizes = [input_size] + [settings.decoder_size] * (settings.decoder_layers - 1)
    return Stack([CELLS[settings.cell](size, settings.decoder_size, batch_first=True) for size in sizes], settings.dropout)


def bridge(below: RecurrentLayers, above: Stack) -> nn.Module:
    """Last states as they are where shapes agree, else through a layer each."""
    if (below.depth, below.size) == (above.depth, above.size):
        return CopyBridge()
    return DenseBridge(below.depth, below.size, above.depth, above.size, above.planes)
