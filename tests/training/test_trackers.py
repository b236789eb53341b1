"""Services that are told what is logged: the same numbers, texts and pictures; a failing one does not end a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_runs import events, settings, train, train_and_stop

from eyeline.errors import ConfigError, MissingExtra

TRAINING = {"steps": 20, "validate_every": 10}


class FakeWandb:
    """What of the library is used, written down."""

    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []
        self.logged: list[dict[str, Any]] = []
        self.finished = 0

    def init(self, **given: Any) -> Any:
        self.begun.append(given)
        return SimpleNamespace(id="abc", define_metric=lambda *_, **__: None, log=self.logged.append, finish=self.finish)

    def finish(self) -> None:
        self.finished += 1

    def Html(self, text: str) -> str:  # noqa: N802
        return text

    def Image(self, pixels: Any) -> Any:  # noqa: N802
        return pixels


class FakeMlflow:
    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []
        self.metrics: list[tuple[int, dict[str, float]]] = []
        self.files: list[str] = []
        self.ended = 0

    def set_experiment(self, name: str) -> None:
        assert name == "eyeline"

    def start_run(self, **given: Any) -> Any:
        self.begun.append(given)
        return SimpleNamespace(info=SimpleNamespace(run_id="run-1"))

    def log_dict(self, values: Any, name: str) -> None:
        json.dumps(values)

    def log_metrics(self, values: dict[str, float], step: int) -> None:
        self.metrics.append((step, values))

    def log_text(self, text: str, name: str) -> None:
        self.files.append(name)

    def log_image(self, pixels: Any, name: str) -> None:
        self.files.append(name)

    def end_run(self) -> None:
        self.ended += 1


def test_wandb_is_told_what_the_journal_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)  # type: ignore[arg-type]
    config = settings(tmp_path, training={**TRAINING, "trackers": "wandb"})
    train_and_stop(config, tmp_path / "run", 12)
    train(config, tmp_path / "run", resume=True)
    assert [begun["id"] for begun in fake.begun] == [None, "abc"], "it goes on where it was"
    assert fake.begun[0]["config"]["training"]["steps"] == 20
    assert fake.finished == 2
    told = [(event["step"], event["train/loss"]) for event in fake.logged if "train/loss" in event]
    assert told == [(event["step"], event["loss"]) for event in events(tmp_path / "run", "train")]
    assert any("f" in event.get("examples", "") for event in fake.logged)


def test_mlflow_is_told_what_the_journal_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)  # type: ignore[arg-type]
    config = settings(tmp_path, training={**TRAINING, "trackers": ["mlflow"]})
    train_and_stop(config, tmp_path / "run", 12)
    train(config, tmp_path / "run", resume=True)
    assert fake.begun == [{"run_name": "run"}, {"run_id": "run-1"}]
    assert fake.ended == 2
    losses = [(step, values["train/loss"]) for step, values in fake.metrics if "train/loss" in values]
    assert losses == [(event["step"], event["loss"]) for event in events(tmp_path / "run", "train")]
    assert {"examples/10.txt", "examples/20.txt"} <= set(fake.files)


def test_one_that_fails_is_said_once_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeMlflow()

    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to host")

    fake.log_metrics = fail  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "mlflow", fake)  # type: ignore[arg-type]
    said = train(settings(tmp_path, training={**TRAINING, "trackers": ["mlflow"]}), tmp_path / "run")
    assert said.count("mlflow fails and is told nothing more: ConnectionError: no route to host") == 1
    assert len(events(tmp_path / "run", "train")) == 2


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_one_that_is_not_installed_is_named(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"training\.trackers={name}.*pip install {name}"):
        train(settings(tmp_path, training={**TRAINING, "trackers": [name]}), tmp_path / "run")


def test_an_unknown_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.trackers"):
        settings(tmp_path, training={"trackers": ["comet"]})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_texts_and_heat_maps(tmp_path: Path, pictures: None) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    pytest.importorskip("matplotlib")
    train(settings(tmp_path, training=TRAINING), tmp_path / "run")
    board = accumulator.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    board.Reload()
    tags = board.Tags()
    assert {f"alignment/{number}" for number in (1, 2, 3)} <= set(tags["images"])
    assert board.Images("alignment/1")[0].encoded_image_string.startswith(b"\x89PNG")
    assert any(name.startswith("examples") for name in tags["tensors"])
