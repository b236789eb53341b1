"""What else could stand at a position. Knows the contracts' Model and nothing of any architecture."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eyeline.contracts import BEGIN, PAD, Model, Source
from eyeline.errors import ConfigError
from eyeline.search.candidates import best_allowed


def next_tokens(model: Model, source: Source, prefix: Sequence[int], count: int) -> list[int]:
    """The `count` likeliest ids after `prefix`, the likeliest first, END among them; fewer where fewer are possible.

    Args:
        source: of one sequence.
    """
    if count < 1:
        raise ConfigError("at least 1 alternative is wanted", f"count={count}")
    with torch.no_grad():
        read = torch.tensor([[BEGIN, *prefix]], device=source.ids.device)
        step = model.decoder(read, model.encode(source)).at((slice(None), -1))
        values, ids = best_allowed(model.head(step, source), count, [PAD, BEGIN])
    return [token for value, token in zip(values[0].tolist(), ids[0].tolist(), strict=True) if value > -torch.inf][:count]
