"""Approximate randomisation against all exchanges there are, and the share of what is copied."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eyeline.errors import UserError
from eyeline.metrics import aggregate, approximate_randomisation, copy_rate, statistics


@pytest.mark.parametrize("name", ["exact_match", "cer", "chrf"])
def test_the_share_is_that_of_all_exchanges(name: str) -> None:
    references = ["one two", "three", "four five", "six", "seven eight", "nine", "ten", "eleven"]
    a = statistics(name, ["one two", "three", "four five", "six", "seven", "nine", "ten", "eleven"], references)
    b = statistics(name, ["one", "three", "four", "sx", "seven eight", "nine", "tn", "elven"], references)
    observed = abs(aggregate(name, a.sum(0)) - aggregate(name, b.sum(0)))
    as_large = 0
    for kept in itertools.product((0, 1), repeat=8):
        mask = np.array(kept)[:, None]
        first, second = (a * mask + b * (1 - mask)).sum(0), (b * mask + a * (1 - mask)).sum(0)
        as_large += abs(aggregate(name, first) - aggregate(name, second)) >= observed - 1e-9
    found = approximate_randomisation(name, a, b, samples=4000)
    assert found == pytest.approx(as_large / 2**8, abs=0.03)


def test_equal_systems_are_never_told_apart_and_others_by_either_order() -> None:
    lines = [f"line {number}" for number in range(50)]
    right, wrong = statistics("exact_match", lines, lines), statistics("exact_match", ["x"] * 50, lines)
    assert approximate_randomisation("exact_match", right, right) == 1
    assert approximate_randomisation("exact_match", right, wrong) == pytest.approx(1 / 1001)
    assert approximate_randomisation("exact_match", wrong, right) == pytest.approx(1 / 1001)
    assert approximate_randomisation("exact_match", right, wrong, seed=3) == approximate_randomisation(
        "exact_match", right, wrong, seed=3
    )


def test_draws_do_not_depend_on_how_many_are_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"line {number}" for number in range(20)]
    a = statistics("exact_match", lines, lines)
    b = statistics("exact_match", [line if number % 4 else "" for number, line in enumerate(lines)], lines)
    whole = approximate_randomisation("exact_match", a, b, samples=50)
    monkeypatch.setattr("eyeline.metrics.significance._COUNTS_AT_ONCE", 60)
    assert approximate_randomisation("exact_match", a, b, samples=50) == whole


def test_other_lines_are_refused_with_both_counts() -> None:
    lines = ["a", "b"]
    rows = statistics("exact_match", lines, lines)
    with pytest.raises(UserError, match="2 and 1 lines"):
        approximate_randomisation("exact_match", rows, rows[:1])
    with pytest.raises(UserError, match="no lines"):
        approximate_randomisation("exact_match", rows[:0], rows[:0])


def test_copied_lines_and_words() -> None:
    found = copy_rate(["a b", "c d", "e", ""], ["a b", "x d", "e", ""], ["x y", "c z", "e", "w"])
    assert found["lines"] == 1 / 4  # the third should be its source, the last source has nothing to copy
    assert found["words"] == 4 / 5
    assert found["reference_words"] == 2 / 6
