"""Ids to vectors. Knows the reserved PAD id and nothing else of vocabularies."""

from __future__ import annotations

from torch import Tensor, nn

from eyeline.contracts import PAD


class Embedding(nn.Module):
    """A table of vectors with dropout on what is read from it.

    Rows are drawn from N(0, 1/size), so that a vector has length about one whatever the width; PAD stays zero.
    """

    def __init__(self, vocabulary: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, size, padding_idx=PAD)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        nn.init.zeros_(self.table.weight[PAD])
        self.dropout = nn.Dropout(dropout)
        self.size = size

    def forward(self, ids: Tensor) -> Tensor:
        """[..., E] from ids [...]."""
        return self.dropout(self.table(ids))  # type: ignore[no-any-return]
