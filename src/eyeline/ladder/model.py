"""The one model class: encoder → memory → decoder → head. Knows none of them by kind."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from eyeline.contracts import Source, Step


class Seq2Seq(nn.Module):
    """A sequence-to-sequence model of any architecture."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.decoder: Any = decoder  # keeps contracts.Decoder, and `remember`: from what the encoder made to its memory
        self.head: Any = head

    def encode(self, source: Source) -> Any:
        """The decoder's memory of a batch of sources: everything that is computed once a source, projected keys included."""
        return self.decoder.remember(self.encoder(source))

    def forward(self, source: Source, inputs: Tensor) -> Step:
        """Teacher forcing: the steps after each of `inputs` [B, T], BEGIN first. The head makes log-probabilities of them."""
        return self.decoder(inputs, self.encode(source))  # type: ignore[no-any-return]
