"""Bootstrap intervals, paired comparisons and scores by length: on systems whose difference is known."""

import itertools

import numpy as np
import pytest

from eyeline.errors import UserError
from eyeline.metrics import METRICS, bootstrap_interval, by_length, length_edges, paired_bootstrap, statistics
from eyeline.metrics.significance import resampled_scores


def exact_matches(right, n):
    """Statistics of a system that has the first `right` of n lines."""
    return statistics("exact_match", ["x"] * right + ["y"] * (n - right), ["x"] * n)


def test_the_interval_of_a_share_is_that_of_the_binomial():
    interval = bootstrap_interval("exact_match", exact_matches(70, 100), samples=4000)
    spread = 100 * np.sqrt(0.7 * 0.3 / 100)
    assert interval.low == pytest.approx(70 - 1.96 * spread, abs=1.1)
    assert interval.high == pytest.approx(70 + 1.96 * spread, abs=1.1)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_an_interval_holds_the_score_and_the_seed_repeats_it(name):
    references = [f"word{i} and another {i % 7}" for i in range(60)]
    hypotheses = [line if i % 3 else line.replace("and", "or") for i, line in enumerate(references)]
    rows = statistics(name, hypotheses, references)
    interval = bootstrap_interval(name, rows, seed=3, samples=200)
    assert interval.low < METRICS[name].aggregate(rows.sum(axis=0)) < interval.high
    assert interval == bootstrap_interval(name, rows, seed=3, samples=200)
    assert interval != bootstrap_interval(name, rows, seed=4, samples=200)


def test_resamples_do_not_depend_on_how_many_are_held_in_memory(monkeypatch):
    rows = exact_matches(30, 50)
    at_once = resampled_scores("exact_match", rows, seed=1, samples=40)
    monkeypatch.setattr("eyeline.metrics.significance._COUNTS_AT_ONCE", 60)
    assert np.array_equal(at_once, resampled_scores("exact_match", rows, seed=1, samples=40))


def test_a_single_line_has_an_interval_of_no_width():
    interval = bootstrap_interval("exact_match", exact_matches(1, 1))
    assert (interval.low, interval.high) == (100, 100)


def test_equal_systems_do_not_differ():
    difference = paired_bootstrap("exact_match", exact_matches(70, 100), exact_matches(70, 100))
    assert (difference.delta, difference.low, difference.high, difference.p) == (0, 0, 0, 1)


def test_pairing_sees_what_two_intervals_do_not():
    a, b = exact_matches(58, 100), exact_matches(50, 100)  # a has every line that b has, and eight more
    difference = paired_bootstrap("exact_match", a, b)
    assert difference.delta == pytest.approx(8)
    assert 0 < difference.low < 8 < difference.high < 16
    assert difference.p < 0.02
    apart_a, apart_b = (bootstrap_interval("exact_match", rows) for rows in (a, b))
    assert apart_a.low < apart_b.high  # their own intervals overlap


def test_a_difference_is_signed_and_chance_is_called_chance():
    order = np.random.default_rng(0).permutation(100)
    a, b = exact_matches(51, 100), exact_matches(50, 100)[order]
    there, back = paired_bootstrap("exact_match", a, b, seed=2), paired_bootstrap("exact_match", b, a, seed=2)
    assert (there.delta, there.low, there.high) == pytest.approx((-back.delta, -back.high, -back.low))
    assert there.p == pytest.approx(back.p)
    assert there.p > 0.5


def test_systems_on_other_lines_are_refused_with_both_counts():
    with pytest.raises(UserError, match="10 and 11 lines"):
        paired_bootstrap("exact_match", exact_matches(1, 10), exact_matches(1, 11))
    with pytest.raises(UserError, match="no lines"):
        bootstrap_interval("wer", np.zeros((0, 2)))


# by length


def test_buckets_are_scored_apart_and_cover_every_line():
    lengths = [*range(1, 11), *range(11, 41)]
    rows = statistics("exact_match", ["x"] * 10 + ["y"] * 30, ["x"] * 40)
    buckets = by_length("exact_match", rows, lengths, edges=[10, 20, 30, 40])
    assert [(b["min"], b["max"], b["n"], b["score"]) for b in buckets] == [
        (1, 10, 10, 100),
        (11, 20, 10, 0),
        (21, 30, 10, 0),
        (31, 40, 10, 0),
    ]
    assert all(b["low"] <= b["score"] <= b["high"] for b in buckets)
    assert all(b["metric"] == "exact_match" for b in buckets)


def test_the_score_of_a_bucket_is_that_of_its_lines_alone():
    references = ["a b c d", "e f g h i", "a", "k l m n o p"]
    hypotheses = ["a b c d", "e f g x i", "b", "k l m n q p"]
    rows = statistics("bleu", hypotheses, references)
    first, second = by_length("bleu", rows, [4, 5, 1, 6], edges=[4, 6])
    assert first["score"] == METRICS["bleu"].aggregate(rows[[0, 2]].sum(axis=0))
    assert second["score"] == METRICS["bleu"].aggregate(rows[[1, 3]].sum(axis=0))


def test_given_edges_leave_no_line_out_and_make_no_empty_bucket():
    rows = exact_matches(4, 4)
    buckets = by_length("exact_match", rows, [0, 7, 25, 90], edges=[10, 20, 30])
    assert [(b["min"], b["max"], b["n"]) for b in buckets] == [(0, 10, 2), (21, 30, 1), (31, 90, 1)]


@pytest.mark.parametrize(
    "lengths", [[5], [5, 5, 5], [0, 1], list(range(1, 400)), [1] * 99 + [1000], [3, 3, 3, 8, 8, 21, 34, 350], [0, 0, 0, 5]]
)
def test_edges_from_the_data_rise_and_end_at_the_longest(lengths):
    edges = length_edges(lengths)
    assert edges == sorted(set(edges))
    assert edges[-1] == max(lengths)
    assert len(edges) <= 5
    buckets = by_length("exact_match", exact_matches(1, len(lengths)), lengths, samples=20)
    assert sum(b["n"] for b in buckets) == len(lengths)
    assert all(a["max"] + 1 <= b["min"] for a, b in itertools.pairwise(buckets))


def test_edges_are_round_and_buckets_about_equal():
    lengths = np.random.default_rng(1).integers(1, 51, size=1000).tolist()
    edges = length_edges(lengths)
    assert edges == [12, 20, 30, 40, 50]  # the first fifth ends at 11
    assert all(150 < bucket["n"] < 250 for bucket in by_length("exact_match", exact_matches(500, 1000), lengths, samples=5))


def test_lengths_must_belong_to_the_lines():
    with pytest.raises(UserError, match="3 source lengths for 4 lines"):
        by_length("exact_match", exact_matches(4, 4), [1, 2, 3])
