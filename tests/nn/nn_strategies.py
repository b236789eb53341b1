"""Hypothesis strategies for batches of queries, keys and masks. Knows shapes only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """One draw."""

    query: Tensor  # [N·K, T, Dq] float64
    keys: Tensor  # [N, S, Dk] float64
    mask: Tensor  # [N, S], True = hidden; any pattern, whole rows too
    seed: int


@st.composite
def batches(draw: st.DrawFn, query_size: int = 4, key_size: int = 3) -> Batch:
    """Random vectors, with a mask that need not be a matter of lengths."""
    sources, k, t, s = (draw(st.integers(1, most)) for most in (3, 3, 3, 5))
    mask = draw(st.lists(st.lists(st.booleans(), min_size=s, max_size=s), min_size=sources, max_size=sources))
    seed = draw(st.integers(0, 2**20))
    random = torch.Generator().manual_seed(seed)
    query = torch.randn(sources * k, t, query_size, generator=random, dtype=torch.float64) * 2
    keys = torch.randn(sources, s, key_size, generator=random, dtype=torch.float64) * 2
    return Batch(query, keys, torch.tensor(mask), seed)


def lengths(most: int = 7, rows: int = 5) -> st.SearchStrategy[list[int]]:
    """Lengths of sources in any order, none of them empty."""
    return st.lists(st.integers(1, most), min_size=1, max_size=rows)
