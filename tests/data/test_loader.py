"""Batches are the same with any number of workers, wherever one begins, and whatever was made ahead in vain."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from eyeline.data import plan as plans
from eyeline.data.corpus import Batch, Corpus, Sequences
from eyeline.data.loader import Loader
from eyeline.data.rows import Indices


def corpus(pairs: int = 120) -> Corpus:
    random = np.random.default_rng(2)
    ids = [random.integers(4, 90, random.integers(1, 12)).tolist() for _ in range(pairs)]
    return Corpus.of(ids, [list(reversed(row)) for row in ids])


def noisy() -> Corpus:
    """Every target is another one in every epoch: its pair's number and the epoch."""

    def noise(pairs: Corpus, rows: Indices, epoch: int) -> Corpus:
        return replace(pairs, targets=Sequences.of([[int(row) + 4, epoch + 4] for row in rows]))

    return replace(corpus(), noise=noise)


def flat(batch: Batch) -> list[object]:
    return [batch.rows.tolist(), batch.source.ids.tolist(), batch.outputs.tolist(), batch.epoch]


def run(loader: Loader, epoch: int, first: int, windows: int, accumulate: int) -> list[object]:
    """What a run gets that begins there, as the loop asks."""
    said = []
    for _ in range(windows):
        window = loader.window(epoch, first, accumulate)
        assert window
        said.append([flat(batch) for batch in window])
        first += accumulate
        if not loader.plan.has(epoch, first):
            epoch, first = epoch + 1, 0
    loader.close()
    return said


@pytest.mark.parametrize("make", [corpus, noisy])
@pytest.mark.parametrize("pool", [40, 10_000])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_any_number_of_workers_from_any_place(make: object, pool: int, accumulate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "POOL", pool)
    held = make()  # type: ignore[operator]
    count = -(-Loader(held, 60, 1).plan.count(0) // accumulate)
    expected = run(Loader(held, 60, 1), 0, 0, 2 * count, accumulate)
    for workers in (1, 4):
        assert run(Loader(held, 60, 1, workers), 0, 0, 2 * count, accumulate) == expected
        assert run(Loader(held, 60, 1, workers), 0, 2 * accumulate, 9, accumulate) == expected[2:11]
    assert sorted(row for window in expected[:count] for batch in window for row in batch[0]) == list(range(120))  # type: ignore[attr-defined, index]


def test_noise_is_of_the_epoch_and_of_the_pair() -> None:
    loader = Loader(noisy(), 60, 1, 2)
    for epoch in (0, 5):
        (batch,) = loader.window(epoch, 1, 1)
        assert batch.outputs[:, :2].tolist() == [[row + 4, epoch + 4] for row in batch.rows.tolist()]
        assert batch.epoch == epoch
        assert batch.target_tokens == 3 * len(batch.rows)
    loader.close()


def test_a_run_that_jumps_gets_what_it_asks_for() -> None:
    loader, alone = Loader(corpus(), 60, 1, 3), Loader(corpus(), 60, 1)
    for epoch, first in ((0, 3), (0, 3), (7, 0), (0, 4), (7, 1)):
        assert [flat(batch) for batch in loader.window(epoch, first, 2)] == [
            flat(batch) for batch in alone.window(epoch, first, 2)
        ]
    loader.close()


def test_shares_of_a_window_are_all_of_it_once() -> None:
    held = corpus()
    whole = [flat(batch) for batch in Loader(held, 60, 1).window(0, 2, 5)]
    for ranks in (2, 3, 7):
        loaders = [
            Loader(held, 60, 1, workers, (rank, ranks)) for rank, workers in zip(range(ranks), [0, 1, 2] * 3, strict=False)
        ]
        parts = [[flat(batch) for batch in loader.window(0, 2, 5)] for loader in loaders]
        assert [parts[place % ranks][place // ranks] for place in range(5)] == whole
        again = [[flat(batch) for batch in loader.window(0, 7, 5)] for loader in loaders]
        assert sum(map(len, again)) == 5
        for loader in loaders:
            loader.close()


def test_threads_end_and_leave_the_random_numbers_alone() -> None:
    before, state = threading.active_count(), torch.get_rng_state()
    loader = Loader(noisy(), 60, 1, 4)
    for first in range(5):
        loader.window(0, first, 1)
    assert threading.active_count() > before
    loader.close()
    assert threading.active_count() == before
    assert torch.equal(torch.get_rng_state(), state)


def test_what_goes_wrong_in_a_thread_is_told() -> None:
    def broken(pairs: Corpus, rows: Indices, epoch: int) -> Corpus:
        raise ZeroDivisionError

    loader = Loader(replace(corpus(), noise=broken), 60, 1, 2)
    with pytest.raises(ZeroDivisionError):
        loader.window(0, 0, 1)
    loader.close()
