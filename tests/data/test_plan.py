"""The order of training, of any number of pairs: every pair as often as its corpus asks, in a pure function of seed and epoch."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.data import plan as plans
from eyeline.data.batches import epoch_batches, sequential_batches
from eyeline.data.permutation import permuted
from eyeline.data.plan import Part, Plan, shares


def a_plan(sources: np.ndarray, targets: np.ndarray, parts: tuple[Part, ...] = (), budget: int = 90, seed: int = 1) -> Plan:
    parts = parts or (Part(len(sources), len(sources)),)
    return Plan(lambda rows: (sources[rows], targets[rows]), parts, budget, seed)


def some_lengths(pairs: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(1, 30, pairs), random.integers(1, 30, pairs)


def whole(plan: Plan, epoch: int) -> list[list[int]]:
    return [plan.rows(epoch, number).tolist() for number in range(plan.count(epoch))]


# ---- permutations -------------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.integers(1, 700), st.lists(st.integers(0, 2**40), min_size=1, max_size=3))
def test_a_permutation_has_everything_once(size: int, key: list[int]) -> None:
    assert sorted(permuted(np.arange(size), size, key).tolist()) == list(range(size))


@given(st.integers(1, 10**12), st.integers(0, 2**31), st.data())
def test_any_place_of_it_can_be_asked_for_alone(size: int, seed: int, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=9))
    together = permuted(places, size, [seed])
    assert [int(permuted([place], size, [seed])[0]) for place in places] == together.tolist()
    assert (together < size).all()
    assert (together >= 0).all()


def test_keys_give_permutations_that_look_like_chance() -> None:
    """Fixed points of a random permutation are Poisson(1); neighbours do not stay neighbours; halves are mixed."""
    size = 4099
    drawn = [permuted(np.arange(size), size, [1, number]) for number in range(60)]
    fixed = [int((one == np.arange(size)).sum()) for one in drawn]
    assert 0.5 < np.mean(fixed) < 1.5
    assert max(fixed) < 8
    close = [int((np.abs(np.diff(one)) == 1).sum()) for one in drawn]
    assert np.mean(close) < 5
    low = [int((one[: size // 2] < size // 2).sum()) for one in drawn]
    assert abs(np.mean(low) - size / 4) < size / 100
    assert len({one.tobytes() for one in drawn}) == 60


# ---- one pool -----------------------------------------------------------------------------------------------------------


def test_what_fits_into_a_pool_is_ordered_as_a_whole() -> None:
    sources, targets = some_lengths(300)
    plan = a_plan(sources, targets)
    for epoch in (0, 3):
        expected = [rows.tolist() for rows in epoch_batches(sources, targets, 90, 1, epoch)]
        assert whole(plan, epoch) == expected


# ---- many pools ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "POOL", 50)


@pytest.mark.usefixtures("small_pools")
@pytest.mark.parametrize("pairs", [51, 149, 1000])
def test_every_pair_once_an_epoch_and_never_over_the_budget(pairs: int) -> None:
    sources, targets = some_lengths(pairs)
    plan = a_plan(sources, targets)
    for epoch in (0, 1):
        batches = whole(plan, epoch)
        assert sorted(row for rows in batches for row in rows) == list(range(pairs))
        for rows in batches:
            assert len(rows) * max(sources[rows].max(), targets[rows].max()) <= 90 or len(rows) == 1
        assert not plan.has(epoch, len(batches))
        assert plan.has(epoch, len(batches) - 1)
    assert whole(plan, 0) != whole(plan, 1)


@pytest.mark.usefixtures("small_pools")
def test_whatever_was_asked_before_the_order_is_the_same() -> None:
    sources, targets = some_lengths(1000)
    expected = whole(a_plan(sources, targets), 2)
    for number in (len(expected) - 1, 0, 17):
        assert a_plan(sources, targets).rows(2, number).tolist() == expected[number]
    jumping = a_plan(sources, targets)
    places = np.random.default_rng(1).permutation(len(expected))[:40]
    assert [jumping.rows(2, int(place)).tolist() for place in places] == [expected[place] for place in places]
    assert whole(a_plan(sources, targets, seed=2), 2) != expected


@pytest.mark.usefixtures("small_pools")
def test_pairs_that_lie_together_in_the_file_are_spread_over_the_epoch() -> None:
    """A corpus sorted by source, as alphabetical ones are, is no epoch that begins with A."""
    sources = targets = np.full(1000, 9)
    order = np.array([row for rows in whole(a_plan(sources, targets), 0) for row in rows])
    assert 350 < order[:200].mean() < 650
    assert abs(np.corrcoef(np.arange(1000), order)[0, 1]) < 0.15


@pytest.mark.usefixtures("small_pools")
def test_only_a_few_pools_are_in_memory() -> None:
    sources, targets = some_lengths(2000)
    plan = a_plan(sources, targets)
    plan.count(0)
    assert plan.pools == 40
    assert len(plan._cut) <= plans.KEPT


def test_a_million_pairs_are_ordered_in_the_memory_of_a_pool() -> None:
    """Lengths of these are computed, not stored, as those of mapped files are."""

    def lengths(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows % 23 + 1, rows % 29 + 1

    plan = Plan(lengths, (Part(10**6, 10**6),), 4096, 1)
    assert plan.pools == 4
    tracemalloc.start()
    first, last = plan.rows(0, 0), plan.rows(0, 4000)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(first) > 100
    assert len(last) > 100
    assert used < 60e6


def test_the_longest_pairs_are_those_that_sorting_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = some_lengths(733)
    sizes = np.maximum(sources, targets)
    for budget in (10, 90, 900, 10**6):
        for pool in (7, 50, 10_000):
            monkeypatch.setattr(plans, "POOL", pool)
            longest = a_plan(sources, targets, budget=budget).longest()
            assert longest.tolist() == sequential_batches(sizes, budget)[0].tolist()


# ---- several corpora ----------------------------------------------------------------------------------------------------


def test_weights_say_how_often_an_epoch_sees_a_pair() -> None:
    assert shares([100, 10], [1.0, 1.0], 1.0) == (Part(100, 100), Part(10, 10))
    assert shares([100, 10], [1.0, 3.0], 1.0) == (Part(100, 100), Part(10, 30))
    assert shares([100, 10], [0.25, 1.0], 1.0) == (Part(100, 25), Part(10, 10))


def test_temperature_lifts_small_corpora() -> None:
    """T = 5 of Arivazhagan et al. 2019: shares go as n^(1/5); the total stays; an infinite T would make them equal."""
    parts = shares([100_000, 1_000], [1.0, 1.0], 5.0)
    big, small = 100_000**0.2, 1_000**0.2
    assert [part.draws for part in parts] == [round(101_000 * big / (big + small)), round(101_000 * small / (big + small))]
    flat = shares([100_000, 1_000], [1.0, 1.0], 1e9)
    assert [part.draws for part in flat] == pytest.approx([50_500, 50_500], abs=2)
    assert [part.draws for part in shares([100_000, 1_000], [1.0, 3.0], 1e9)] == pytest.approx([103_000 / 4, 309_000 / 4], abs=2)


@pytest.mark.parametrize("pool", [50, 10_000])
@pytest.mark.parametrize("draws", [(40, 300), (100, 7), (13, 1)])
def test_each_pair_of_a_corpus_comes_once_before_any_comes_again(
    draws: tuple[int, int], pool: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "POOL", pool)
    sources, targets = some_lengths(140)
    plan = a_plan(sources, targets, (Part(100, draws[0]), Part(40, draws[1])))
    seen: Counter[int] = Counter()
    for epoch in range(12):
        rows = [row for batch in whole(plan, epoch) for row in batch]
        assert sum(row < 100 for row in rows) == draws[0]
        assert len(rows) == sum(draws)
        seen.update(rows)
        for places in (range(100), range(100, 140)):
            counts = {seen[place] for place in places}
            assert max(counts) - min(counts) <= 1


@pytest.mark.usefixtures("small_pools")
def test_every_pool_has_its_share_of_every_corpus() -> None:
    sources, targets = some_lengths(1000)
    plan = a_plan(sources, targets, (Part(900, 900), Part(100, 300)))
    for pool in range(plan.pools):
        chosen = plan._chosen(0, pool)
        assert (chosen >= 900).sum() == pytest.approx(len(chosen) / 4, abs=2)
