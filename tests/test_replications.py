"""The scripts below `replications/`, as far as they compute: what they train takes hours and is run by hand."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from eyeline.config import Config
from eyeline.config_yaml import override

REPLICATIONS = Path(__file__).parent.parent / "replications"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"replications_{name}", REPLICATIONS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(REPLICATIONS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_config_is_one(path: Path) -> None:
    assert Config.from_yaml(path, ["data.train=train.tsv", "data.valid=valid.tsv"]).training.bounded


def test_the_interval_of_a_mean_is_students() -> None:
    """Of 1, 2, 3, 4, 5: deviation √2.5, quantile of four degrees of freedom 2.776445; so 2.776445 · √2.5 / √5."""
    mean, half = script("seeds").mean_and_half_width([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert half == pytest.approx(2.776445 * 2.5**0.5 / 5**0.5, rel=1e-6)
    assert script("seeds").mean_and_half_width([7.0]) == (7.0, float("inf"))


def test_the_table_of_seeds_names_each_and_their_mean() -> None:
    found = {
        seed: {"metrics": {"exact_match": {"score": score, "low": score - 1, "high": score + 1}}, "training_s": 61.0}
        for seed, score in ((1, 50.0), (2, 60.0))
    }
    text = script("seeds").table("exact_match", found)
    assert "| 1 | 50.0 [49.0, 51.0] | 1 m 01 s |" in text
    assert "| mean of 2 | 55.0 ± 63.5 | |" in text  # 12.7062 · 7.0711 / √2


def test_every_rung_of_the_ladder_script_is_one() -> None:
    module = script("ladder")
    for name, (architecture, settings) in module.RUNGS.items():
        for task in module.TASKS.values():
            given = [f"{key}={value}" for key, value in {**task.settings, **settings}.items()]
            values = {"model": {"architecture": architecture}, "data": {"train": "a.tsv", "valid": "b.tsv"}}
            assert Config.from_dict(override(values, given)).model.architecture == architecture, name


def test_recipes_are_compared_over_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of differences 1, 2 and 3: deviation 1, quantile of two degrees of freedom 4.302653; so 4.302653 / √3 = 2.48."""
    monkeypatch.syspath_prepend(str(REPLICATIONS))
    module = script("recipes")
    scores = {("luong", "dropout", "single"): [10.0, 20.0, 30.0], ("luong", "dropout", "mean"): [11.0, 22.0, 33.0]}
    assert "| luong | dropout | mean | 22.00 ± 27.33 | 11.0 · 22.0 · 33.0 |" in module.table(scores)
    assert module.differences(scores).split("\n")[2:] == ["| luong | averaging | dropout | +2.00 ± 2.48 |"]
    for settings in module.TRAINED.values():
        given = [f"{key}={value}" for key, value in {**module.OFTEN, **settings}.items()]
        Config.from_dict(override({"data": {"train": "a.tsv", "valid": "b.tsv"}}, given))


def test_what_recipes_have_finished_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(REPLICATIONS))
    module = script("recipes")
    for seed in (1, 2):
        folder = module.Work("bahdanau", "dropout, R-Drop", seed).folder(tmp_path)
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(f'{{"single": {seed}, "mean": {seed + 1}, "kept": {seed + 2}, "training_s": 1}}')
    found = module.found(["bahdanau"], [1, 2], tmp_path)
    assert found == {
        ("bahdanau", "dropout, R-Drop", weights): scores
        for weights, scores in {"single": [1, 2], "mean": [2, 3], "kept": [3, 4]}.items()
    }
    assert module.found(["bahdanau"], [1, 2, 3], tmp_path) == {}


@pytest.mark.parametrize("name", ["g2p", "inflection", "transliteration", "spelling", "scan"])
def test_every_size_of_a_language_makes_a_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.syspath_prepend(str(REPLICATIONS))
    family = script("languages").FAMILIES[name]
    for wanted in family.sizes:
        train = tmp_path / f"{wanted.pairs}.tsv"
        train.write_text("a\tb\n" * wanted.pairs)
        assert family.size(train) == wanted
        for own in ({}, *family.own.values()):
            given = [f"{key}={value}" for key, value in {**family.settings, **wanted.settings, **own}.items()]
            values = {"model": {"architecture": family.architecture}, "data": {"train": "a.tsv", "valid": "b.tsv"}}
            assert Config.from_dict(override(values, given)).model.architecture == family.architecture
    assert set(family.own) <= set(family.published)


@pytest.mark.parametrize(("wrong", "best"), [(True, "40.0 [35.0, 45.0]"), (False, "60.0 [55.0, 65.0]")])
def test_a_language_is_told_by_its_best_on_dev(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: bool, best: str) -> None:
    """Word error rates are what exact match leaves of a hundred; the best by dev need not be the best of the test."""
    monkeypatch.syspath_prepend(str(REPLICATIONS))
    module, out = script("languages"), tmp_path / "out"
    family = replace(module.FAMILIES["g2p"], wrong=wrong)
    (tmp_path / "ady_train.tsv").write_text("a\tb\n")

    def found(score: float) -> str:
        return json.dumps({"metrics": {"exact_match": {"score": score, "low": score - 5, "high": score + 5}}})

    for seed, dev, test in ((1, 80.0, 70.0), (2, 90.0, 60.0)):
        folder = out / "ady" / f"seed-{seed}"
        folder.mkdir(parents=True)
        (folder / "dev.json").write_text(found(dev))
        (folder / "test.json").write_text(found(test))
    (out / "ady" / "ensemble-of-2.json").write_text(found(75.0))
    given = argparse.Namespace(data=tmp_path, out=out, seeds=[1, 2], threads=1, architecture=None, budget=None)
    figures = (
        ("25.0 [20.0, 30.0]", "35.0 ± 63.5", "30.0 · 40.0") if wrong else ("75.0 [70.0, 80.0]", "65.0 ± 63.5", "70.0 · 60.0")
    )
    together, mean, each = figures
    assert module.language(family, "ady", given) == f"| ady | 22.0 | {together} | {best} | {mean} | {each} |"


def test_a_data_set_without_dev_holds_some_pairs_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(REPLICATIONS))
    family = script("languages").FAMILIES["scan"]
    (tmp_path / "train_length.tsv").write_text("".join(f"{number}\tx\n" for number in range(100)))
    train, dev, test = family.paths(tmp_path, "length", tmp_path / "out")
    assert dev.read_text() == "0\tx\n20\tx\n40\tx\n60\tx\n80\tx\n"
    assert sorted((train.read_text() + dev.read_text()).split("\n")) == sorted(
        (tmp_path / "train_length.tsv").read_text().split("\n")
    )
    assert test == tmp_path / "test_length.tsv"
