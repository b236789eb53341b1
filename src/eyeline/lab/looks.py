"""Where a model looks, whatever it is: every attention to the source by name. Knows models and batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eyeline.data.corpus import Batch
from eyeline.ladder import Seq2Seq


def looks(model: Seq2Seq, batch: Batch) -> dict[str, Tensor]:
    """[B, T, S] for each attention to the source: one named "source", or "layer L head H" of each head. Empty without any."""
    memory = model.encode(batch.source)
    maps = getattr(model.decoder, "maps", None)
    if maps is None:
        attention = model.decoder(batch.inputs, memory).attention
        return {"source": attention["source"]} if "source" in attention else {}
    found: dict[str, Tensor] = {}
    for name, heads in sorted(maps(batch.inputs, memory).items(), key=_number):
        place, _, layer = name.partition(".")
        if place == "source":
            found |= {f"layer {layer} head {head}": heads[:, head] for head in range(heads.shape[1])}
    return found


def _number(item: tuple[str, Any]) -> tuple[str, int]:
    place, _, number = item[0].partition(".")
    return place, int(number)


def spread(weights: Tensor, dim: int = -1) -> Tensor:
    """Entropy in nats of distributions along `dim`; what is zero counts as nothing."""
    entropy: Tensor = torch.special.entr(weights).sum(dim)
    return entropy
