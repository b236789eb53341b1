"""Numbers that are none: said at once, borne a few times, never saved, never the best, and the run ends with an error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import Listener, checkpoint_names, events, newest, settings, train
from torch import Tensor, nn

import eyeline
from eyeline.cli import _status
from eyeline.config import LOWER_IS_BETTER, TrainingSettings
from eyeline.runs import open_run
from eyeline.training import Diverged, Trainer
from eyeline.training.schedules import Progress


def all_finite(path: Path) -> None:
    tensors = load_file(path)
    assert tensors
    for name, tensor in tensors.items():
        assert not tensor.is_floating_point() or bool(tensor.isfinite().all()), name


def poison(monkeypatch: pytest.MonkeyPatch, bad: Callable[[int], bool], value: float = math.nan, gradient: bool = False) -> None:
    """Features turn into `value` in the forward (or the backward) pass of the training batches whose number, from 1, is bad."""
    from eyeline.ladder import Seq2Seq

    real, seen = Seq2Seq.forward, 0

    def again(model: nn.Module) -> bool:
        return bool(model._forward_hooks)  # the same batch once more, to find out where it went wrong

    def forward(self: Seq2Seq, *arguments: object) -> object:
        nonlocal seen
        step = real(self, *arguments)  # type: ignore[arg-type]
        seen += self.training and not again(self)
        if self.training and bad(seen):
            if gradient:
                step.features.register_hook(lambda grad: torch.full_like(grad, value))
            else:
                step.features.data.fill_(value)
        return step

    monkeypatch.setattr(Trainer, "rehearse", lambda self: None)  # its batches are not those of the updates
    monkeypatch.setattr(Seq2Seq, "forward", forward)


@pytest.mark.parametrize("rung", ["seq2seq", "bahdanau", "luong"])
@pytest.mark.parametrize("clip", [1.0, 0.0])
def test_a_learning_rate_beyond_all_bounds(tmp_path: Path, rung: str, clip: float) -> None:
    """Within a few steps, and what is on the disk is finite or not there."""
    training = {"steps": 200, "learning_rate": 1e30, "clip_norm": clip, "validate_every": 1, "checkpoint_every": 1}
    listener = Listener()
    with pytest.raises(Diverged, match=r"at step \d+.*training\.learning_rate=1e\+30"):
        train(settings(tmp_path, rung, training=training), tmp_path / "run", reporter=listener)
    assert listener.steps <= 12
    for path in (tmp_path / "run").rglob("*.safetensors"):
        all_finite(path)


def test_the_command_fails_and_names_the_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(settings(tmp_path, training={"learning_rate": 1e30}).to_yaml(), encoding="utf-8")
    assert _status(["train", str(config), "--out", str(tmp_path / "run"), "--device", "cpu"]) == 2
    last = capsys.readouterr().err.rstrip("\n").split("\n")[-1]
    assert last.startswith("error: ")
    assert "5 updates in a row" in last
    assert "at step 6" in last or "at step 7" in last


@pytest.mark.parametrize(("value", "gradient"), [(math.nan, False), (math.inf, False), (math.nan, True), (math.inf, True)])
def test_from_step_12_on(tmp_path: Path, value: float, gradient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five are left out and said, the fifth ends the run; checkpoint and best weights are those of steps before."""
    poison(monkeypatch, lambda number: number >= 12, value, gradient)
    config = settings(tmp_path, training={"steps": 40, "checkpoint_every": 1, "validate_every": 5})
    listener = Listener()
    with pytest.raises(Diverged, match=r"(loss|gradient norm) (nan|inf) at step 16, 5 updates in a row"):
        train(config, tmp_path / "run", reporter=listener)
    for number, step in enumerate(range(12, 17), 1):
        assert f"at step {step}: this update is left out ({number} so far)" in listener.text
    assert listener.steps == 15, "the sixteenth never ended"
    monkeypatch.undo()
    whole = settings(tmp_path, training={"steps": 11, "checkpoint_every": 1, "validate_every": 5})
    train(whole, tmp_path / "before")
    after, before = newest(tmp_path / "run"), newest(tmp_path / "before")
    assert (after / "model.safetensors").read_bytes() == (before / "model.safetensors").read_bytes(), "no weight has moved since"
    for path in (tmp_path / "run").rglob("*.safetensors"):
        all_finite(path)
    state = json.loads((after / "state.json").read_bytes())
    assert (state["position"]["step"], state["position"]["skipped"]) == (15, 4)
    eyeline.load(tmp_path / "run")


def test_a_single_one_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, lambda number: number in (3, 4, 5, 6, 8, 9, 10, 11))
    said = train(settings(tmp_path, training={"steps": 14}), tmp_path / "run")
    assert said.count("this update is left out") == 8
    assert "at step 11: this update is left out (8 so far)" in said
    all_finite(tmp_path / "run" / "model.safetensors")


def test_those_in_a_row_are_counted_over_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from small_runs import train_and_stop

    poison(monkeypatch, lambda number: number >= 4)
    train_and_stop(settings(tmp_path), tmp_path / "run", 6)
    with pytest.raises(Diverged, match="at step 8, 5 updates"):
        train(settings(tmp_path), tmp_path / "run", resume=True)


@pytest.mark.parametrize("validation", [True, False])
def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, validation: bool) -> None:
    """A weight that no loss has met yet: the run ends rather than goes on without ever saving."""
    config = settings(tmp_path, training={"steps": 40, "checkpoint_every": 4}, data={} if validation else {"valid": []})
    models: list[nn.Module] = []

    def break_one(step: int) -> None:
        if step == 6:
            with torch.no_grad():
                max(models, key=lambda model: len(list(model.modules()))).encoder.embedding.table.weight[0] = math.inf

    with pytest.MonkeyPatch.context() as patch:
        from eyeline.runs import Run

        real = Run.build
        patch.setattr(Run, "build", lambda self: models.append(real(self)) or models[-1])
        with pytest.raises(Diverged, match="weights that are not finite at step 8"):
            train(config, tmp_path / "run", reporter=Listener(break_one))
    assert checkpoint_names(tmp_path / "run") == ["step-4"]
    for path in (tmp_path / "run").rglob("*.safetensors"):
        all_finite(path)


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_validation_that_is_none_is_never_the_best(tmp_path: Path, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where lower is better nor where higher is; it is logged as null, and the best weights stay."""
    from eyeline.training import validation

    real, calls = validation.negative_log_likelihood, 0

    class Nan:
        nll, tokens = torch.tensor(math.nan), 1

    def loss(*arguments: Tensor) -> object:
        return Nan() if calls in (2, 3) else real(*arguments)  # type: ignore[arg-type]

    measured = validation.Validator.loss

    def counted(self: validation.Validator) -> float:
        nonlocal calls
        calls += 1
        return measured(self)

    monkeypatch.setattr(validation, "negative_log_likelihood", loss)
    monkeypatch.setattr(validation.Validator, "loss", counted)
    said = train(settings(tmp_path, training={"steps": 15, "validate_every": 5, "metric": metric}), tmp_path / "run")
    assert said.count(": no improvement") == 2
    assert "validation gives nan at step 10" in said
    assert [event["loss"] is None for event in events(tmp_path / "run", "valid")] == [False, True, True]
    progress = json.loads((newest(tmp_path / "run") / "state.json").read_bytes())["progress"]
    assert (progress["best_step"], progress["since_best"]) == (5, 2)
    assert open_run(tmp_path / "run").load() is not None


def test_a_run_without_one_finite_validation_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eyeline.training import validation

    monkeypatch.setattr(validation.Validator, "loss", lambda self: math.nan)
    for resume in (False, True):
        with pytest.raises(Diverged, match="no validation gave a finite number"):
            train(settings(tmp_path), tmp_path / "run", resume=resume)
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("metric", ["loss", "bleu", "wer", "exact_match"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_improvement_in_either_direction(metric: str, bad: float) -> None:
    settings = TrainingSettings()
    first = Progress(metric)  # type: ignore[arg-type]
    assert not first.update(bad, 1, settings)
    assert first.best is None
    assert first.update(50.0, 2, settings)
    assert not first.update(bad, 3, settings)
    assert first.update(49.0 if metric in LOWER_IS_BETTER else 51.0, 4, settings), "and what comes after is compared as before"
