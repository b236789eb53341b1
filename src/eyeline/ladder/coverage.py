"""What the builders of rungs with coverage share: its name made into attention that remembers where it has looked."""

from __future__ import annotations

from collections.abc import Callable

from eyeline.nn import (
    Attention,
    Coverage,
    CoveredAttention,
    FertilityCoverage,
    GatedCoverage,
    LocationCoverage,
    Looking,
    SumCoverage,
)

COVERAGES: dict[str, Callable[[int, int], Coverage]] = {  # from the widths of query and keys
    "sum": lambda query, key: SumCoverage(),
    "fertility": lambda query, key: FertilityCoverage(key),
    "gated": GatedCoverage,
    "location": lambda query, key: LocationCoverage(),
}


def covered(attention: Attention, coverage: str, query_size: int, key_size: int) -> Looking:
    """The same score with `coverage`; with none of it, the attention itself."""
    if coverage == "none":
        return attention
    return CoveredAttention(attention.score, COVERAGES[coverage](query_size, key_size))
