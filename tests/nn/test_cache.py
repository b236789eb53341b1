"""A cache is a value, although what follows on it is written beside it."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eyeline.nn import Cache

R, H, E = 3, 2, 4


def some(length: int, seed: int, rows: int = R) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    return torch.randn(rows, H, length, E, generator=chance), torch.randn(rows, H, length, E, generator=chance)


def empty() -> Cache:
    return Cache(torch.zeros(R, H, 0, E), torch.zeros(R, H, 0, E))


def same(cache: Cache, keys: Tensor, values: Tensor) -> None:
    assert torch.equal(cache.keys, keys)
    assert torch.equal(cache.values, values)


@given(
    st.lists(st.one_of(st.integers(1, 20), st.permutations(range(R)), st.tuples(st.integers(0, 5))), max_size=12), st.booleans()
)
def test_every_cache_ever_made_keeps_what_it_held(doings: list[object], gradients: bool) -> None:
    """Numbers append so many positions, permutations reorder rows, a tuple goes back to an earlier cache and on from there."""
    with torch.set_grad_enabled(gradients):
        made = [(empty(), *some(0, 0))]
        for seed, doing in enumerate(doings):
            cache, keys, values = made[-1]
            if isinstance(doing, int):
                new = some(doing, seed)
                made.append((cache.followed(*new), torch.cat([keys, new[0]], 2), torch.cat([values, new[1]], 2)))
            elif isinstance(doing, tuple):
                made.append(made[doing[0] % len(made)])
            else:
                rows = torch.tensor(doing)
                made.append((cache.select(rows), keys[rows], values[rows]))
        for held in made:
            same(*held)


def test_one_more_position_is_not_a_copy_of_all() -> None:
    with torch.no_grad():
        cache = empty().followed(*some(5, 1)).select(torch.arange(R))
        after = cache.followed(*some(1, 2))
        assert after.room is cache.room
        again = cache.followed(*some(1, 3))
        assert again.room is not cache.room, "the place behind it is taken"


def test_rows_may_be_more_or_fewer() -> None:
    with torch.no_grad():
        keys, values = some(4, 1)
        cache = Cache(keys, values)
        for rows in ([0], [2, 2, 1, 0, 0], []):
            chosen = torch.tensor(rows, dtype=torch.long)
            same(cache.select(chosen), keys[chosen], values[chosen])
