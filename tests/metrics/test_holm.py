"""Holm's correction by numbers worked out by hand, and differences from resamples made elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from eyeline.metrics import difference, holm, paired_bootstrap, resampled_scores, statistics


def test_by_hand() -> None:
    """Sorted .01 .02 .03 .04: times 4, 3, 2, 1 is .04 .06 .06 .04, and none may be below one before it."""
    assert holm([0.02, 0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.06, 0.04, 0.06])


def test_never_above_one_and_never_below_its_own() -> None:
    assert holm([0.9, 0.8, 0.001]) == pytest.approx([1.0, 1.0, 0.003])
    assert holm([]) == []
    assert holm([0.3]) == [0.3]


def test_equal_ones_are_corrected_alike() -> None:
    assert holm([0.01, 0.01]) == pytest.approx([0.02, 0.02])


def test_a_difference_from_resamples_is_the_paired_bootstraps() -> None:
    references = [str(i % 7) for i in range(60)]
    a = statistics("exact_match", [str(i % 7) if i % 3 else "x" for i in range(60)], references)
    b = statistics("exact_match", [str(i % 7) if i % 2 else "x" for i in range(60)], references)
    deltas = resampled_scores("exact_match", a, seed=3) - resampled_scores("exact_match", b, seed=3)
    delta = 100 * float(np.mean(a[:, 0]) - np.mean(b[:, 0]))
    theirs = paired_bootstrap("exact_match", a, b, seed=3)
    assert difference(delta, deltas).p == theirs.p
    assert difference(delta, deltas).low == theirs.low
