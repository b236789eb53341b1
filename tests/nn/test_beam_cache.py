"""What beams hold is what plain caches hold, whoever is reordered, repeated or dropped; it is only not copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eyeline.nn import Alibi, BeamCache, Cache, CausalSelfAttention, Order, Rotary, Unordered

N, K, H, E = 4, 3, 2, 4


def some(length: int, seed: int, rows: int = N * K) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    return torch.randn(rows, H, length, E, generator=chance), torch.randn(rows, H, length, E, generator=chance)


def same(cache: Cache | BeamCache, wanted: Cache) -> None:
    held = cache.plain()
    assert torch.equal(held.keys, wanted.keys)
    assert torch.equal(held.values, wanted.values)


def of_sources(*sources: int, slots: tuple[int, ...] = (2, 0, 0)) -> Tensor:
    return torch.tensor([source * K + slot for source in sources for slot in slots])


@st.composite
def doings(draw: st.DrawFn) -> list[object]:
    """Permutations of a beam's slots, sources to be kept, any rows at all (a list), or back to an earlier cache (a number)."""
    slots = st.tuples(*[st.integers(0, K - 1)] * K)
    kept = st.sets(st.integers(0, N - 1), min_size=1).map(frozenset)
    anything = st.lists(st.integers(0, N * K - 1), min_size=1, max_size=2 * K)
    return draw(st.lists(st.one_of(slots, slots, kept, anything, st.integers(0, 9)), max_size=12))


@given(doings())
@torch.no_grad()
def test_every_cache_ever_made_holds_what_a_plain_one_does(doings: list[object]) -> None:
    plain = Cache(*some(2, 0))
    made: list[tuple[Cache | BeamCache, Cache]] = [(BeamCache.of(plain, K), plain)]
    for seed, doing in enumerate(doings, 1):
        cache, wanted = made[-1]
        rows = len(wanted.keys)
        sources = rows // K
        if isinstance(doing, int):
            made.append(made[doing % len(made)])
            continue
        if isinstance(doing, tuple):
            chosen = of_sources(*range(sources), slots=doing)
        elif isinstance(doing, frozenset):
            chosen = of_sources(*[source for source in range(sources) if source in doing] or [0])
        else:
            assert isinstance(doing, list)
            chosen = torch.tensor([row % rows for row in doing])
        new = some(1, seed, len(chosen))
        cache = cache.select(chosen)
        if len(chosen) % K:
            same(cache, wanted.select(chosen))
            continue
        made.append((BeamCache.of(cache, K).followed(*new), wanted.select(chosen).followed(*new)))
    for held, wanted in made:
        same(held, wanted)


@torch.no_grad()
def test_reordering_copies_nothing_and_leaving_little() -> None:
    cache = BeamCache.of(Cache(*some(5, 1)), K)
    chosen = cache.select(of_sources(0, 1, 2, 3))
    assert isinstance(chosen, BeamCache)
    assert chosen.ground is cache.ground
    fewer = chosen.select(of_sources(0, 1, 3))
    assert isinstance(fewer, BeamCache)
    assert fewer.ground is cache.ground, "one of four has left: it stays where it is"
    fewest = fewer.select(of_sources(0, 2))
    assert isinstance(fewest, BeamCache)
    assert fewest.ground is not cache.ground
    assert len(fewest.ground.keys) == 2, "half of them have left: memory is given back"
    after = chosen.followed(*some(1, 2))
    assert after.ground is cache.ground
    assert chosen.followed(*some(1, 3)).ground is not cache.ground, "the place behind it is taken"


@pytest.mark.parametrize("order", [Unordered, lambda: Rotary(E), lambda: Alibi(H)], ids=["unordered", "rotary", "alibi"])
@torch.no_grad()
def test_looking_through_ancestors_is_looking_at_copies(order: Callable[[], Order]) -> None:
    torch.manual_seed(1)
    attention = CausalSelfAttention(H * E, H, order()).double().eval()
    inputs = torch.randn(N * K, 40, H * E, dtype=torch.double)
    plain = beams = attention.start(N * K, inputs)
    chance = torch.Generator().manual_seed(2)
    sources = N
    for position in range(40):
        here = inputs[: sources * K, position : position + 1]
        wanted, plain = attention(here, plain)
        found, beams = attention(here, beams, K)
        assert position == 0 or isinstance(beams, BeamCache)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
        kept = [source for source in range(sources) if position not in (9, 20, 30) or source]
        rows = torch.tensor([source * K for source in kept]).repeat_interleave(K)
        rows += torch.randint(0, K, rows.shape, generator=chance)
        plain, beams, sources = plain.select(rows), beams.select(rows), len(kept)
    assert sources == 1
