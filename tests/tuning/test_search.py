"""A search over settings: one that was stopped and goes on is the one that was not; the best run stays; bad trials count."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

import eyeline
import eyeline.tuning as tuning
from eyeline.config import Config
from eyeline.config_tuning import space_of
from eyeline.errors import ConfigError, Interrupted, MissingExtra, RunError, UserError
from eyeline.figures.tuning import draw_tuning
from eyeline.training import Reporter
from eyeline.tuning.result import Result, Tried
from toy_runs import reversal, write_pairs

SPACE = {
    "model.dropout": [0.0, 0.4],
    "model.cell": ["rnn", "gru"],
    "training.learning_rate": {"from": 1e-3, "to": 1e-1, "log": True},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tuning")


def values(folder: Path, space: dict[str, Any], **sections: Any) -> tuple[dict[str, Any], Any]:
    pairs = [write_pairs(folder / f"{part}.tsv", reversal(lines, lines)) for part, lines in (("train", 16), ("valid", 4))]
    given = {
        "data": {"train": [pairs[0]], "valid": [pairs[1]]},
        "model": {"architecture": "luong", "embedding_size": 6, "encoder_size": 6, "decoder_size": 6},
        "training": {"steps": 4, "validate_every": 2, "checkpoint_every": 2},
        "tune": space,
    }
    return space_of({**given, **{name: {**given.get(name, {}), **section} for name, section in sections.items()}})


def search(folder: Path, name: str, trials: int, space: dict[str, Any] = SPACE, **options: Any) -> Result:
    sections = options.pop("sections", {})
    options.setdefault("reporter", Reporter(-1))
    return tuning.tune(*values(folder, space, **sections), folder / name, trials=trials, **options)


@pytest.fixture(scope="module")
def whole(folder: Path) -> Result:
    return search(folder, "whole", 5)


def kept(study: Path) -> list[str]:
    return sorted(path.name for path in (study / "runs").iterdir())


def test_what_a_study_leaves(folder: Path, whole: Result) -> None:
    best = whole.best
    assert best is not None
    assert best.score == min(trial.score for trial in whole.trials if not trial.pruned and trial.score is not None)
    assert kept(folder / "whole") == [f"trial-{best.number}"], "the others are gone"
    config = Config.from_yaml(folder / "whole" / "best.yaml")
    assert config == Config.from_yaml(folder / "whole" / "runs" / f"trial-{best.number}" / "config.yaml")
    assert (config.model.dropout, config.training.learning_rate) == (
        best.settings["model.dropout"],
        best.settings["training.learning_rate"],
    )
    found = json.loads((folder / "whole" / "result.json").read_bytes())
    assert [trial["settings"] for trial in found["trials"]] == [trial.settings for trial in whole.trials]
    assert found["best"]["number"] == best.number
    assert sum(found["importances"].values()) == pytest.approx(1) or not found["importances"]
    assert (folder / "whole" / "tuning.png").read_bytes().startswith(b"\x89PNG")
    lines = whole.table().split("\n")
    assert lines[0].split()[:2] == ["trial", "loss"]
    assert lines[1].split()[:2] == [str(best.number), f"{best.score:.4f}"]
    assert lines[-1].startswith("5 trials, ")


def test_the_best_run_is_a_run_and_its_config_trains_it_anew(folder: Path, whole: Result) -> None:
    assert whole.best is not None
    first = folder / "whole" / "runs" / f"trial-{whole.best.number}"
    run = eyeline.train(Config.from_yaml(folder / "whole" / "best.yaml"), folder / "anew", reporter=Reporter(-1))
    assert run.weights.read_bytes() == (first / "model.safetensors").read_bytes()
    assert len(eyeline.load(first).predict(["a b"], max_length=3)) == 1


def test_trials_differ_and_stay_in_their_ranges(whole: Result) -> None:
    assert len({json.dumps(trial.settings) for trial in whole.trials}) == 5
    for trial in whole.trials:
        assert 0 <= trial.settings["model.dropout"] <= 0.4
        assert 1e-3 <= trial.settings["training.learning_rate"] <= 1e-1
        assert trial.settings["model.cell"] in ("rnn", "gru")


def test_a_study_that_was_interrupted_in_a_trial_is_the_one_that_was_not(
    folder: Path, whole: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM at the third update of the third trial; that trial goes on from where it was, and the others come as they would."""
    calls = 0

    def stop(self: tuning.Watcher) -> bool:
        nonlocal calls
        calls += 1
        if calls == 2 * 4 + 3:
            signal.raise_signal(signal.SIGTERM)
        return False

    monkeypatch.setattr(tuning.Watcher, "wants_pace", stop)
    with pytest.raises(Interrupted, match="at step 3; the state is saved, and --resume goes on"):
        search(folder, "parts", 5)
    assert "trial-2" in kept(folder / "parts")
    monkeypatch.undo()
    found = search(folder, "parts", 5, resume=True)
    assert list(found.trials) == list(whole.trials)


def test_more_trials_are_added_and_a_finished_study_is_left_alone(folder: Path, whole: Result) -> None:
    search(folder, "added", 3)
    assert list(search(folder, "added", 5, resume=True).trials) == list(whole.trials)
    study = folder / "added"
    before = {path: path.stat().st_mtime_ns for path in study.rglob("*") if path.name != "study.db"}
    assert list(search(folder, "added", 5, resume=True).trials) == list(whole.trials)
    assert {path: path.stat().st_mtime_ns for path in study.rglob("*") if path.name != "study.db"} == before


def test_a_bound_of_time(folder: Path) -> None:
    rest, space = values(folder, SPACE)
    found = tuning.tune(rest, space, folder / "timed", seconds=0.05, reporter=Reporter(-1))
    assert len(found.trials) == 1


def test_bad_trials_are_pruned_or_contradict_themselves_and_count(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "BEFORE_PRUNING", 1)
    space = {"training.learning_rate": [0.05, 0.04, 1e-9, 1e-8], "search.min_length": {"choices": [0, 20]}}
    found = search(folder, "bad", 12, space, sections={"search": {"max_length": 10}}, keep_runs=True)
    contradicting = [trial for trial in found.trials if trial.settings["search.min_length"]]
    assert contradicting
    assert all(trial.pruned and trial.score is None for trial in contradicting)
    assert "min_length 20 is more than max_length 10" in capfd.readouterr().err
    assert any(trial.pruned for trial in found.trials if trial not in contradicting), "worse than the median"
    assert len(kept(folder / "bad")) == 12 - len(contradicting), "all are kept when asked for"


def test_a_first_trial_that_cannot_be(folder: Path) -> None:
    with pytest.raises(ConfigError, match="min_length 11 is more than max_length 10"):
        search(folder, "none", 2, {"search.min_length": [11, 12]}, sections={"search": {"max_length": 10}})
    assert not (folder / "none").exists()


def test_what_is_in_the_way(folder: Path, whole: Result, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"there is a study here already .*--resume"):
        search(folder, "whole", 6)
    with pytest.raises(ConfigError, match=r"its own settings and ranges .*study\.yaml: tune"):
        search(folder, "whole", 6, {**SPACE, "model.dropout": [0.0, 0.3]}, resume=True)
    with pytest.raises(ConfigError, match=r"its own settings and ranges .*study\.yaml: training"):
        search(folder, "whole", 6, sections={"training": {"steps": 5}}, resume=True)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(RunError, match="it is no study"):
        tuning.tune(*values(folder, SPACE), tmp_path, trials=1)
    with pytest.raises(ConfigError, match=r"trials are compared by validations.*data\.valid"):
        search(folder, "blind", 1, sections={"data": {"valid": []}})


def test_data_that_are_not_there_end_the_study_at_once(folder: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.tsv"):
        search(folder, "absent", 3, sections={"data": {"train": [str(folder / "absent.tsv")]}})


def test_without_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"this needs optuna, which is not installed; pip install 'eyeline\[tune\]'"):
        search(folder, "missing", 1)
    assert not (folder / "missing").exists()


# ---- pictures -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def result() -> Result:
    trials = [
        Tried(0, 3.0, False, {"a": 1}),
        Tried(1, 5.0, True, {"a": 2}),
        Tried(2, 2.0, False, {"a": 3}),
        Tried(3, None, True, {"a": 4}),
    ]
    return Result("loss", trials, {"a": 1.0})


@pytest.mark.parametrize("importances", [{}, {"model.dropout": 0.7, "training.learning_rate": 0.3}])
def test_a_picture_with_and_without_importances(importances: dict[str, float]) -> None:
    pytest.importorskip("matplotlib")
    trials = [(0, 3.0, False), (1, 5.0, True), (2, float("nan"), True), (3, 2.0, False)]
    picture = draw_tuning(trials, importances, metric="loss", lower=True)
    assert picture.startswith(b"\x89PNG")
    assert picture == draw_tuning(trials, importances, metric="loss", lower=True)


def test_the_best_by_the_metric(result: Result) -> None:
    assert result.best == result.trials[2]
    assert Result("bleu", result.trials, {}).best == result.trials[0]
    assert Result("bleu", result.trials[3:], {}).best is None
    assert result.table().split("\n")[-1] == "4 trials, 2 of them pruned"
