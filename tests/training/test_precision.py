"""Numbers of fewer bits: what is computed in them, what a device that is slow at it is told, and how a loss is scaled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import events, newest, rung_settings, settings, train

from eyeline.errors import ConfigError
from eyeline.training import precision
from eyeline.training.precision import LARGEST, PATIENCE, LossScale, cast, check_cell, chosen, slowness, warning

CPU = torch.device("cpu")


def test_products_are_in_the_chosen_numbers_and_weights_are_not() -> None:
    layer = torch.nn.Linear(3, 3)
    for name, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        with cast(name, CPU):  # type: ignore[arg-type]
            result = layer(torch.ones(2, 3))
        result.sum().backward()
        assert result.dtype == kind
        assert layer.weight.dtype == layer.weight.grad.dtype == torch.float32  # type: ignore[union-attr]


def test_a_slow_device_is_told_of_and_a_fast_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slowness(torch.float32) == pytest.approx(1.0, rel=0.9)
    monkeypatch.setattr(precision, "slowness", lambda kind: 8.04)
    assert warning("bf16", CPU) == "a product of matrices in bf16 takes 8.0 times as long as in fp32 on this CPU"
    assert warning("fp32", CPU) == ""
    monkeypatch.setattr(precision, "slowness", lambda kind: 0.5)
    assert warning("bf16", CPU) == ""


def test_half_precision_is_for_gpus_and_bf16_for_those_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"fp16 is for GPUs \(training.precision=fp16\); use bf16 or fp32"):
        chosen("fp16", CPU)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "an old card")
    gpu = torch.device("cuda")
    with pytest.raises(ConfigError, match=r"an old card does not compute in bf16 \(training.precision=bf16\); use fp16 or fp32"):
        chosen("bf16", gpu)
    assert chosen("fp16", gpu) == "fp16"
    assert chosen("auto", gpu) == "fp32"
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert chosen("auto", gpu) == "bf16"
    assert chosen("auto", CPU) == "fp32", "where bf16 is slow"


def test_only_half_precision_is_scaled() -> None:
    for name in ("fp32", "bf16"):
        scale = LossScale.of(name)  # type: ignore[arg-type]
        assert not scale.update(False, name)  # type: ignore[arg-type]
        assert scale == LossScale(1.0, 0)


def test_the_scale_falls_when_gradients_overflow_and_rises_when_they_have_not_for_long() -> None:
    scale = LossScale.of("fp16")
    assert scale.value == LARGEST
    assert scale.update(False, "fp16"), "the scale's own fault"
    assert scale.value == LARGEST / 2
    for _ in range(PATIENCE - 1):
        assert not scale.update(True, "fp16")
    assert scale.value == LARGEST / 2
    scale.update(True, "fp16")
    assert scale == LossScale(LARGEST, 0)
    for _ in range(PATIENCE):
        scale.update(True, "fp16")
    assert scale.value == LARGEST, "and no higher"


def test_at_the_smallest_scale_an_overflow_is_the_models_own() -> None:
    scale = LossScale.of("fp16")
    halvings = 0
    while scale.update(False, "fp16"):
        halvings += 1
    assert halvings == 16
    assert scale.value == 1.0


def test_a_scale_goes_on_where_it_is_wanted() -> None:
    found = LossScale(8.0, 3)
    assert found.carried_to("fp16") is found
    assert found.carried_to("bf16") == LossScale()
    assert LossScale().carried_to("fp16") == LossScale.of("fp16")


def test_a_run_of_fewer_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, its weights and its validations have all bits, and it learns as the run with all bits does."""
    monkeypatch.setattr(precision, "slowness", lambda kind: 8.04)
    short = {"steps": 8, "validate_every": 8}
    cell = {"cell": "gru"}  # which every CPU has
    train(settings(tmp_path, training=short, model=cell), tmp_path / "whole")
    said = train(settings(tmp_path, training={**short, "precision": "bf16"}, model=cell), tmp_path / "few")
    assert "warning: a product of matrices in bf16 takes 8.0 times as long as in fp32 on this CPU" in said
    assert ", bf16" in said
    assert {tensor.dtype for tensor in load_file(newest(tmp_path / "few") / "model.safetensors").values()} == {torch.float32}
    for split in ("train", "valid"):
        losses = [events(tmp_path / run, split)[-1]["loss"] for run in ("whole", "few")]
        assert losses[0] != losses[1]
        assert losses[0] == pytest.approx(losses[1], rel=0.01)


def test_an_lstm_that_the_cpu_does_not_have_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")

    config = settings(tmp_path, training={"steps": 8, "precision": "bf16"})
    monkeypatch.setattr(torch.nn.LSTM, "forward", fails)
    with pytest.raises(ConfigError, match=r"this CPU has no LSTM in bf16 \(training.precision=bf16\); use fp32"):
        train(config, tmp_path / "run")
    assert not list((tmp_path / "run").glob("*"))
    check_cell("lstm", "fp32", CPU)
    check_cell("gru", "bf16", CPU)
    check_cell(None, "bf16", CPU)


def test_too_large_a_scale_costs_updates_and_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients overflow in half precision until the scale has fallen; that is no fault of the model, and survives a stop."""
    monkeypatch.setattr(precision, "_refuse", lambda precision, device: None)  # PyTorch can, on a CPU, what nobody should
    monkeypatch.setattr(precision, "slowness", lambda kind: 0.5)
    monkeypatch.setattr(precision, "LARGEST", 2.0**27)
    config = rung_settings(tmp_path, "transformer", training={"steps": 20, "validate_every": 20, "precision": "fp16"})
    said = train(config, tmp_path / "run")
    state = json.loads((newest(tmp_path / "run") / "state.json").read_bytes())
    assert state["position"]["rescaled"] > 2
    assert state["position"]["skipped"] == 0
    assert state["scale"]["value"] == 2.0**27 / 2 ** state["position"]["rescaled"]
    assert 0 < state["scale"]["sound"] <= 20 - state["position"]["rescaled"]
    assert "left out" not in said
    losses = [event["loss"] for event in events(tmp_path / "run", "train")]
    assert losses[-1] < losses[0]
