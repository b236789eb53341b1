"""Ids to vectors. Knows the reserved ids PAD and UNKNOWN, and nothing else of vocabularies."""

from __future__ import annotations

from torch import Tensor, nn

from eyeline.contracts import PAD, UNKNOWN
from eyeline.nn.dropout import Dropout


class Embedding(nn.Module):
    """A table of vectors with dropout on what is read from it.

    Args:
        spread: the standard deviation that numbers are drawn with. Recurrent cells that read smaller ones learn late: nothing but
            the frequency of symbols for the first hundreds of updates. PAD stays zero.
    """

    def __init__(self, vocabulary: int, size: int, dropout: float = 0.0, spread: float = 1.0) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, size, padding_idx=PAD)
        nn.init.normal_(self.table.weight, std=spread)
        nn.init.zeros_(self.table.weight[PAD])
        self.dropout = Dropout(dropout)
        self.size = size

    def forward(self, ids: Tensor) -> Tensor:
        """[..., E] from ids [...]."""
        return self.dropout(self.table(ids))  # type: ignore[no-any-return]


class ExtendedEmbedding(nn.Module):
    """An embedding that is read with extended ids, as a decoder that copies is: a word of the source's own is fed as UNKNOWN.

    The table has no vector for it, and in another source the same id is another word. The model that See et al. 2017 released
    does the same.
    """

    def __init__(self, embedding: Embedding) -> None:
        super().__init__()
        self.held = embedding
        self.size = embedding.size

    def forward(self, ids: Tensor) -> Tensor:
        """[..., E] from ids [...]."""
        return self.held(ids.masked_fill(ids >= self.held.table.num_embeddings, UNKNOWN))  # type: ignore[no-any-return]
