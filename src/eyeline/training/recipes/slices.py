"""Log-probabilities a few rows at a time, for those of a whole batch are large. Knows heads and steps."""

from __future__ import annotations

from typing import Any

import torch

from eyeline.contracts import Source, Step

SLICE = 4_000_000  # log-probabilities that stand in memory at a time: 16 MB in fp32


def row_slices(head: Any, step: Step, source: Source, rows: int, positions: int) -> list[slice]:
    """The first `rows` rows of a step, in slices of as many as `SLICE` allows, one at least; each row has `positions`."""
    with torch.no_grad():
        one = torch.zeros(1, dtype=torch.long, device=source.ids.device)
        width = head(step.at((slice(0, 1), slice(0, 1))), source.select(one)).shape[-1]
    size = max(1, SLICE // max(1, positions * width))
    return [slice(start, min(rows, start + size)) for start in range(0, rows, size)]
