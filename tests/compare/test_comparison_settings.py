"""Settings of a comparison: what counts where, and that every mistake is told by its place and its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyeline.config_compare import Comparison, lengths
from eyeline.config_models import MODEL_SETTINGS
from eyeline.config_rungs import LEARNING_RATES, SIZES, ladder
from eyeline.errors import ConfigError, UserError

BASE: dict[str, Any] = {
    "data": {"train": "a.tsv", "valid": "b.tsv", "test": "c.tsv"},
    "rungs": ["luong", {"name": "wide", "architecture": "transformer", "heads": 8, "training": {"learning_rate": 5e-4}}],
    "budget": {"steps": 5},
}


def checked(**changes: Any) -> Comparison:
    return Comparison.from_dict({**BASE, **changes}).checked()


def test_a_rung_by_name_has_the_ladders_sizes_and_learning_rate() -> None:
    comparison = checked()
    config = comparison.config(comparison.chosen()[0], 7)
    assert config.model.model_dump().items() >= SIZES["luong"].items()
    assert (config.training.learning_rate, config.training.steps, config.seed) == (LEARNING_RATES["luong"], 5, 7)


def test_what_a_rung_says_counts_before_what_all_say() -> None:
    comparison = checked(training={"learning_rate": 3e-3, "batch_tokens": 99})
    first, second = (comparison.config(rung, 1) for rung in comparison.chosen())
    assert (first.training.learning_rate, second.training.learning_rate) == (3e-3, 5e-4)
    assert first.training.batch_tokens == second.training.batch_tokens == 99
    assert second.model.model_dump()["heads"] == 8


@pytest.mark.parametrize("points", [True, False])
def test_every_rung_of_the_ladder_can_be_trained(points: bool) -> None:
    comparison = Comparison.from_dict({**BASE, "rungs": []}).with_ladder(points).checked()
    configs = [comparison.config(rung, 1) for rung in comparison.chosen()]
    assert {config.points for config in configs} == {points}
    known = {name for name, kind in MODEL_SETTINGS.items() if (kind.outputs == "positions") == points}
    assert {rung["architecture"] for rung in ladder(points)} == known


def test_the_ladder_leaves_rungs_that_are_named_alone() -> None:
    comparison = Comparison.from_dict({**BASE, "rungs": [{"architecture": "luong", "score": "dot"}]}).with_ladder(False)
    (luong,) = (rung for rung in comparison.chosen() if rung.architecture == "luong")
    assert luong.model["score"] == "dot"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rung": 3}, "unknown setting (rung); did you mean 'rungs'?"),
        ({"rungs": ["loung"]}, "unknown architecture (rungs.0=loung); did you mean 'luong'?"),
        ({"rungs": [{"architecture": "luong", "scor": "dot"}]}, "unknown setting (rungs: luong: scor); did you mean 'score'?"),
        (
            {"rungs": [{"architecture": "luong", "training": {"lerning_rate": 3}}]},
            "unknown setting (rungs: luong: training.lerning_rate); did you mean 'learning_rate'?",
        ),
        ({"rungs": ["luong", "luong"]}, "two rungs are called 'luong' (rungs: luong); give each a name of its own"),
        ({"rungs": []}, "nothing to compare (rungs); name two or more, or add --ladder"),
        ({"budget": None}, "every rung gets the same, and nothing says how much (budget); such as budget: {steps: 2000}"),
        ({"budget": {"step": 4}}, "unknown setting (budget.step); did you mean 'steps'?"),
        (
            {"budget": {"steps": 4, "for": "3m"}},
            "a budget is one of steps, target_tokens and for; found steps and for (budget)",
        ),
        ({"training": {"epochs": 3}}, "training.epochs does not bound a comparison: budget does, by steps, target_tokens or for"),
        (
            {"rungs": [{"architecture": "luong", "training": {"steps": 3}}]},
            "every rung has the same budget (rungs.0.training.steps=3); set it under budget",
        ),
        ({"seeds": [1, 1]}, "at least one seed is wanted, and each once (seeds=[1, 1])"),
        (
            {"data": {"train": "a", "valid": "b"}},
            "there are no pairs to compare by (data.test); name a file of pairs: data: {test: …}",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        checked(**changes)
    assert str(error.value) == message


def test_pointing_and_text_cannot_be_compared() -> None:
    with pytest.raises(ConfigError, match="positions cannot be compared"):
        checked(rungs=["luong", "pointer-network"])


@pytest.mark.parametrize("given", ["20,40,…,120", "20,40,...,120", [20, 40, "…", 120], "20,40,60,80,100,120"])
def test_lengths_with_what_is_left_out(given: Any) -> None:
    assert lengths(given) == [20, 40, 60, 80, 100, 120]


@pytest.mark.parametrize("given", ["", "20,x", "40,20", "20,…,40", "20,40,…", "20,40,…,119", "0,5", [True], "1,2,…,99"])
def test_lengths_that_are_none(given: Any) -> None:
    with pytest.raises(ValueError, match=r"length|reach|stands between"):
        lengths(given)


def test_yaml_gives_the_same_back(tmp_path: Path) -> None:
    comparison = checked(test_lengths="5,10,…,20", budget={"for": "20m"})
    path = tmp_path / "comparison.yaml"
    path.write_text(comparison.to_yaml(), encoding="utf-8")
    assert Comparison.from_yaml(path) == comparison
    with pytest.raises(UserError, match=r"unknown setting \(budge\)"):
        Comparison.from_yaml(path, ["budge=3"])


def test_folders_of_rungs_are_plain_names() -> None:
    comparison = checked(rungs=[{"name": "../x y/ü", "architecture": "luong"}, {"name": "…", "architecture": "luong"}])
    assert [rung.folder for rung in comparison.chosen()] == ["x-y-ü", "rung"]
