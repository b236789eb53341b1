"""The tree of a search is the search: the same answer, the kept hypotheses with the model's own scores, and their parents."""

from __future__ import annotations

import math
from typing import Any

import pytest

from eyeline.contracts import END
from eyeline.explorer import trace
from eyeline.predictor import Predictor
from toy_runs import ToyRuns

SOURCES = {
    "luong": "a b c d e",
    "seq2seq": "a b c",
    "names": "Kabelo lives in Nomira",
    "points": [[0.5, 0.1], [0.1, 0.9], [0.9, 0.4]],
}


def ids_of(levels: list[list[dict[str, Any]]], level: int, place: int) -> list[int]:
    """The way back from a hypothesis."""
    ids: list[int] = []
    while level >= 0:
        ids.append(levels[level][place]["id"])
        level, place = level - 1, levels[level][place]["parent"]
    return ids[::-1]


def rescored(model: Predictor, source: Any, ids: list[int]) -> float:
    """The score of a beginning, step by step as it is told of a prefix."""
    steps = trace(model, source, prefix=[*ids, END])["steps"]
    score = 0.0
    for step, number in zip(steps, ids, strict=False):
        found = next((one["p"] for one in step["candidates"] if one["id"] == number), step["p"])
        score += math.log(found)
    return score


@pytest.mark.parametrize("name", SOURCES)
def test_the_tree_is_what_the_search_kept(toys: ToyRuns, name: str) -> None:
    model, source = toys.predictor(name), SOURCES[name]
    plain, grown = trace(model, source, beam_size=3), trace(model, source, beam_size=3, tree=True)
    assert grown["target"] == plain["target"]
    assert grown["steps"] == plain["steps"]
    levels, ended = grown["beam"]["levels"], grown["beam"]["ended"]
    assert ended[0]["ids"] == grown["target"]["ids"]
    assert ended[0]["normalized"] == max(one["normalized"] for one in ended if one["finished"])
    for one in ended:
        whole = [number for number in one["ids"] if number != END]
        assert ids_of(levels, one["level"], one["place"]) == whole
    for depth, level in enumerate(levels):
        kept = [(place, one) for place, one in enumerate(level) if one["score"] is not None]
        assert 1 <= len(kept) <= 3
        ways = [tuple(ids_of(levels, depth, place)) for place, _ in kept]
        assert len(set(ways)) == len(ways)
        for (_, one), way in zip(kept, ways, strict=True):
            assert one["score"] == pytest.approx(rescored(model, source, list(way)), abs=2e-3 * len(way))


def test_a_greedy_search_is_a_tree_without_branches(toys: ToyRuns) -> None:
    grown = trace(toys.predictor("luong"), "a b c", beam_size=1, tree=True)
    assert [len(level) for level in grown["beam"]["levels"]] == [1, 1, 1]
    assert ids_of(grown["beam"]["levels"], 2, 0) == grown["target"]["ids"][:-1]


def test_what_is_held_stands_in_every_hypothesis(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    first = trace(model, "a b c d")["steps"][0]["candidates"][1]["id"]
    grown = trace(model, "a b c d", prefix=[first], beam_size=3, tree=True)
    levels = grown["beam"]["levels"]
    assert sum(one["score"] is not None for one in levels[0]) == 1
    for depth, level in enumerate(levels):
        for place, one in enumerate(level):
            if one["score"] is not None:
                assert ids_of(levels, depth, place)[0] == first
