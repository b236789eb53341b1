"""Batches by budget: every pair once, never over it, the order a function of seed and epoch, and little padding."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.data.batches import epoch_batches, sequential_batches

lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=120)


def corpus_lengths(pairs: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Sentences of about 13 words, log-normal, and translations of about the same length, as in captions and news."""
    random = np.random.default_rng(7)
    sources = np.exp(random.normal(2.6, 0.5, pairs)).astype(np.int64) + 2
    targets = np.maximum(2, np.rint(sources * 1.05 * np.exp(random.normal(0, 0.2, pairs)))).astype(np.int64)
    return sources, targets


@settings(max_examples=150)
@given(lengths, st.integers(1, 300), st.integers(0, 2**32), st.integers(0, 50))
def test_every_pair_once_and_never_over_the_budget(pairs: list[tuple[int, int]], budget: int, seed: int, epoch: int) -> None:
    sources, targets = np.array(pairs).T
    batches = epoch_batches(sources, targets, budget, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    for batch in batches:
        size = len(batch) * max(sources[batch].max(), targets[batch].max())
        assert size <= budget or len(batch) == 1


@settings(max_examples=60)
@given(lengths, st.integers(0, 9), st.integers(0, 9))
def test_the_order_depends_on_nothing_but_its_arguments(pairs: list[tuple[int, int]], seed: int, epoch: int) -> None:
    sources, targets = np.array(pairs).T
    before = [batch.tolist() for batch in epoch_batches(sources, targets, 90, seed, epoch)]
    np.random.default_rng().random(3)
    epoch_batches(sources, targets, 90, seed, epoch + 1)
    assert [batch.tolist() for batch in epoch_batches(sources.tolist(), targets.tolist(), 90, seed, epoch)] == before


def test_another_process_has_the_same_order() -> None:
    program = (
        "import numpy as np; from eyeline.data.batches import epoch_batches; n = np.arange(1, 200) % 23 + 1;"
        "print([b.tolist() for b in epoch_batches(n, n[::-1], 100, 5, 3)])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    n = np.arange(1, 200) % 23 + 1
    assert said.strip() == str([batch.tolist() for batch in epoch_batches(n, n[::-1], 100, 5, 3)])


def together(batches: list[np.ndarray]) -> set[tuple[int, ...]]:
    return {tuple(sorted(batch.tolist())) for batch in batches}


@pytest.mark.parametrize("length", [None, 5, 12])
def test_epochs_and_seeds_have_other_batches_in_another_order(length: int | None) -> None:
    sources, targets = corpus_lengths(3_000)
    if length:  # all alike: only chance can tell pairs apart
        sources = targets = np.full(3_000, length)
    first = epoch_batches(sources, targets, 1_000, 1, 0)
    for other in (epoch_batches(sources, targets, 1_000, 1, 1), epoch_batches(sources, targets, 1_000, 2, 0)):
        assert len(together(first) & together(other)) < len(first) / 10
    widest = [int(max(sources[b].max(), targets[b].max())) for b in first]
    if not length:
        assert widest not in (sorted(widest), sorted(widest, reverse=True))


def test_seed_and_epoch_are_not_added_up() -> None:
    sources, targets = corpus_lengths(500)
    assert together(epoch_batches(sources, targets, 500, 1, 2)) != together(epoch_batches(sources, targets, 500, 2, 1))


@pytest.mark.parametrize(("budget", "fill"), [(1_000, 0.93), (4_096, 0.89), (16_000, 0.85)])
def test_little_of_a_batch_is_padding(budget: int, fill: float) -> None:
    sources, targets = corpus_lengths()
    batches = epoch_batches(sources, targets, budget, 1, 0)
    cells = sum(len(b) * (sources[b].max() + targets[b].max()) for b in batches)
    assert (sources.sum() + targets.sum()) / cells >= fill
    used = [len(b) * max(sources[b].max(), targets[b].max()) for b in batches]
    assert max(used) <= budget
    assert np.mean(used) >= 0.93 * budget


def test_a_pair_larger_than_the_budget_stands_alone() -> None:
    batches = epoch_batches([3, 100, 4], [3, 2, 90], 10, 0, 0)
    assert sorted(batch.tolist() for batch in batches) == [[0], [1], [2]]


@settings(max_examples=100)
@given(st.lists(st.integers(0, 40), max_size=80), st.integers(1, 200))
def test_sequential_batches_are_longest_first_and_complete(sizes: list[int], budget: int) -> None:
    batches = sequential_batches(sizes, budget)
    order = [int(i) for batch in batches for i in batch]
    assert order == sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    for batch in batches:
        assert len(batch) * max(1, *(sizes[i] for i in batch), 1) <= budget or len(batch) == 1


def test_sequential_batches_are_as_large_as_the_budget_allows() -> None:
    assert [b.tolist() for b in sequential_batches([2, 5, 3, 5, 1, 1], 10)] == [[1, 3], [2, 0, 4], [5]]
