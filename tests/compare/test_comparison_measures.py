"""What is measured of outputs: seeds laid together, differences over common seeds, common buckets, examples. By small numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyeline.compare.measuring import Measured, differences, edges, examples, fall, fill, lengthwise, metric_names, scores
from eyeline.compare.plan import Member
from eyeline.compare.report import still_better
from eyeline.config import Config
from eyeline.config_compare import Rung

REFERENCES = ["a", "b", "c", "d"]


def measured(name: str, *outputs: list[str], seeds: tuple[int, ...] = (1, 2)) -> Measured:
    rung = Rung(name, {"architecture": "luong"}, {})
    found: list[dict[str, Any]] = [
        {"outputs": lines, "references": REFERENCES, "sources": REFERENCES, "lengths": [1, 2, 8, 9], "unfinished": 0}
        for lines in outputs
    ]
    members = [Member(rung, seed, Config(), Path()) for seed in seeds]
    made = Measured(name, members[: len(found)], found)
    fill([made], ["exact_match"])
    return made


def test_seeds_are_laid_together_and_shown_apart() -> None:
    score = scores(measured("x", REFERENCES, ["a", "b", "", ""]), ["exact_match"], 1)["exact_match"]
    assert score["score"] == 75
    assert score["seeds"] == {"1": 100.0, "2": 50.0}
    assert score["low"] <= 75 <= score["high"]


def test_differences_are_over_the_seeds_that_both_have() -> None:
    both = measured("x", REFERENCES, ["", "", "", ""])
    one = measured("y", ["a", "", "", ""], seeds=(1,))
    (entry,) = differences([both, one], ["exact_match"], 1)
    assert (entry["a"], entry["b"], entry["delta"], entry["seeds"]) == ("x", "y", 75.0, {"1": 75.0})
    assert entry["p_holm"] == entry["p"]


def test_every_pair_of_rungs_is_compared() -> None:
    rungs = [measured(name, REFERENCES) for name in "xyz"]
    found = differences(rungs, ["exact_match"], 1)
    assert [(entry["a"], entry["b"]) for entry in found] == [("x", "y"), ("x", "z"), ("y", "z")]
    assert all(entry["delta"] == 0 and entry["p_holm"] == 1 for entry in found)


def test_a_bucket_ends_where_training_ends() -> None:
    assert 5 in edges([1, 2, 8, 9], None, 5)
    assert edges([1, 2, 8, 9], [4, 9], 5) == [4, 9]
    buckets = lengthwise(measured("x", REFERENCES), "exact_match", [4, 9], 4, 1)
    assert [(b["max"], b["n"], b["trained"]) for b in buckets] == [(4, 2, True), (9, 2, False)]


def test_a_fall_with_length() -> None:
    rung = measured("x", ["a", "b", "", ""])
    buckets = lengthwise(rung, "exact_match", [4, 9], 4, 1)
    found = fall(rung, "exact_match", buckets, 1)
    assert found is not None
    assert (found["delta"], found["low"], found["high"]) == (100, 100, 100)
    assert fall(rung, "exact_match", buckets[:1], 1) is None


def test_examples_are_lines_on_which_rungs_differ() -> None:
    found = examples([measured("x", ["a", "b", "c", "z"]), measured("y", ["a", "", "c", "y"])])
    assert [line["reference"] for line in found] == ["b", "d"]
    assert found[0]["outputs"] == {"x": "b", "y": ""}
    assert examples([measured("x", REFERENCES)]) == []


@pytest.mark.parametrize(
    ("chosen", "points", "symbols", "first"),
    [
        ("loss", False, True, "exact_match"),
        ("loss", False, False, "bleu"),
        ("chrf", False, True, "chrf"),
        ("loss", True, False, "exact_match"),
    ],
)
def test_the_metric_that_ranks(chosen: str, points: bool, symbols: bool, first: str) -> None:
    names = metric_names(chosen, points, symbols)
    assert names[0] == first
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("losses", "rising"),
    [
        ([5, 4, 3, 2], True),
        ([5, 4, 3, 3], False),  # a tie is none
        ([9, 8, 7, 6, 5, 4, 3, 2, 1, 1.5], True),  # the last is not the best, but the one before it
        ([9, 1, 7, 6, 5, 4, 3, 2, 1, 1], False),
        ([1], False),
        ([], False),
    ],
)
def test_what_was_best_at_the_end_had_not_finished(losses: list[float], rising: bool) -> None:
    assert still_better(losses) is rising
