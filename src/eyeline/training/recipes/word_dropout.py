"""Symbols that are read as unknown, so that a model learns to do without any one of them. Knows batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, UNKNOWN
from eyeline.data.corpus import Batch


@dataclass(frozen=True)
class WordDropout:
    """Each symbol that is read is UNKNOWN with a probability of its own, drawn anew each time (Bowman et al. 2016, section 3).

    END and BEGIN stay, and so do what the decoder should say and what may be copied. Elements that are numbers become zeros.

    Args:
        source: share of the source's symbols.
        target: share of the symbols that the decoder is fed.
    """

    source: float
    target: float

    def __call__(self, batch: Batch) -> Batch:
        source, inputs = batch.source, batch.inputs
        if self.source:
            dropped = _drawn(source.ids, self.source) & (source.ids != END) & ~source.mask
            values = None if source.values is None else source.values.masked_fill(dropped[..., None], 0.0)
            source = replace(source, ids=source.ids.masked_fill(dropped, UNKNOWN), values=values)
        if self.target:
            dropped = _drawn(inputs, self.target) & (inputs != BEGIN) & ~batch.target_mask
            inputs = inputs.masked_fill(dropped, UNKNOWN)
        return replace(batch, source=source, inputs=inputs)


def _drawn(like: Tensor, share: float) -> Tensor:
    return torch.rand(like.shape, device=like.device) < share
