"""The one model class: encoder → memory → decoder → head. Knows none of them by kind."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from eyeline.contracts import Source, Step
from eyeline.nn import Embedding


class Seq2Seq(nn.Module):
    """A sequence-to-sequence model of any architecture."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.decoder: Any = decoder  # keeps contracts.Decoder, and `remember`: from what the encoder made to its memory
        self.head: Any = head

    @property
    def source_table(self) -> nn.Embedding | None:
        """The vectors that source symbols are read as; None where sources are no symbols. Writing rows in place changes them
        wherever else the same table serves, such as in an output layer."""
        return _table(self.encoder)

    @property
    def target_table(self) -> nn.Embedding | None:
        """The same of target symbols; None where the decoder is fed no symbols. It is the source's where both share one."""
        return _table(self.decoder)

    def encode(self, source: Source) -> Any:
        """The decoder's memory of a batch of sources: everything that is computed once a source, projected keys included."""
        return self.decoder.remember(self.encoder(source))

    def forward(self, source: Source, inputs: Tensor) -> Step:
        """Teacher forcing: the steps after each of `inputs` [B, T], BEGIN first. The head makes log-probabilities of them."""
        return self.decoder(inputs, self.encode(source))  # type: ignore[no-any-return]


def _table(part: nn.Module) -> nn.Embedding | None:
    """The one table of an encoder or a decoder, wherever in it the embedding stands."""
    return next((module.table for module in part.modules() if isinstance(module, Embedding)), None)
