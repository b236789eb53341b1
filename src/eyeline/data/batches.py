"""Which pairs go together and in which order, from lengths alone. Knows nothing of ids, and keeps no state.

The size of a batch is rows × the longest sequence on either side, END counted: what the larger of its two rectangles
holds, padding included. It never exceeds the budget, unless a single pair does, which is then a batch of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

JITTER = 0.1  # a pair may move past others that are up to this much longer, so that batches differ between epochs


def epoch_batches(
    source_lengths: npt.ArrayLike, target_lengths: npt.ArrayLike, batch_tokens: int, seed: int, epoch: int
) -> list[Indices]:
    """The batches of one epoch, every pair in exactly one of them.

    A pure function of its arguments: batch number `step` of an epoch is `epoch_batches(…, seed, epoch)[step]`, whatever
    was run before it. Different epochs have different batches, and not always equally many.

    Args:
        source_lengths: [pairs] tokens of each source, END counted.
        target_lengths: [pairs] tokens of each target, END counted.
        batch_tokens: the budget of a batch.
        seed: of the run, ≥ 0.
        epoch: counted from 0.

    Returns:
        Indices [rows] of each batch, in the order of training.
    """
    return shuffled_batches(source_lengths, target_lengths, batch_tokens, (seed, epoch))


def shuffled_batches(
    source_lengths: npt.ArrayLike, target_lengths: npt.ArrayLike, batch_tokens: int, key: Sequence[int]
) -> list[Indices]:
    """As `epoch_batches`, for any `key` of whole numbers: each another order."""
    sources, targets = np.asarray(source_lengths, dtype=np.int64), np.asarray(target_lengths, dtype=np.int64)
    assert sources.shape == targets.shape
    random = np.random.default_rng(np.random.SeedSequence(list(key)))
    sizes = np.maximum(sources, targets)
    # Pairs of like size lie together; among these, pairs of like shape, so that the shorter side is filled too.
    shape = (targets - sources) * (1 + JITTER * random.random(len(sizes)))
    stretched = np.floor(sizes * (1 + JITTER * random.random(len(sizes))))
    order = np.lexsort((random.random(len(sizes)), shape, stretched))
    batches = _cut(order, sizes, batch_tokens)
    return [batches[i] for i in random.permutation(len(batches))]


def sequential_batches(lengths: npt.ArrayLike, batch_tokens: int) -> list[Indices]:
    """Batches for evaluation and prediction: longest first, equal lengths in their order, no chance in it.

    Args:
        lengths: [sequences] what a row of the batch costs when it is the longest; zero counts as one.
        batch_tokens: rows × the longest of a batch stay within it, but for a sequence that alone exceeds it.

    Returns:
        Indices [rows] of each batch. The first batch shows whether the memory suffices.
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    return _cut(_longest_first(sizes), sizes, batch_tokens)


class Waiting:
    """Sequences that wait to be taken, longest first, equal lengths in their order."""

    def __init__(self, lengths: npt.ArrayLike) -> None:
        """As for `sequential_batches`."""
        sizes = np.asarray(lengths, dtype=np.int64)
        self._order = _longest_first(sizes)
        self._ordered = np.maximum(sizes[self._order], 1)
        self._start = 0

    def take(self, room: int, whole: int) -> Indices | None:
        """The next rows of which rows × the longest stay within `room`; a sequence that exceeds `whole` alone fits where there is
        as much room as that. None where nothing is left, or nothing fits."""
        assert whole >= 1
        start = self._start
        if start == len(self._order) or (room < whole and room < self._ordered[start]):
            return None
        self._start += _fitting(self._ordered, start, room)
        return self._order[start : self._start]


def _longest_first(sizes: Indices) -> Indices:
    return np.argsort(-sizes, kind="stable")


def _cut(order: Indices, sizes: Indices, batch_tokens: int) -> list[Indices]:
    """Cuts an order into runs whose rows × longest stay within the budget, each as long as can be."""
    assert batch_tokens >= 1
    ordered = np.maximum(sizes[order], 1)
    batches, start = [], 0
    while start < len(order):
        rows = _fitting(ordered, start, batch_tokens)
        batches.append(order[start : start + rows])
        start += rows
    return batches


def _fitting(ordered: Indices, start: int, budget: int) -> int:
    """How many from `start` on have rows × longest within the budget; one at least."""
    most = max(1, budget // int(ordered[start]))
    longest = np.maximum.accumulate(ordered[start : start + most])
    cost = longest * np.arange(1, len(longest) + 1)  # rises, so that the place of the budget is found by halving
    return max(1, int(np.searchsorted(cost, budget, side="right")))
