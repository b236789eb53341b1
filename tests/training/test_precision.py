"""Numbers of fewer bits: what is computed in them, what a device that is slow at it is told, and how a loss is scaled."""

from __future__ import annotations

import pytest
import torch

from eyeline.errors import ConfigError
from eyeline.training import precision
from eyeline.training.precision import LARGEST, PATIENCE, LossScale, cast, check, slowness

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
    assert check("bf16", CPU) == "a product of matrices in bf16 takes 8.0 times as long as in fp32 on this CPU"
    assert check("fp32", CPU) == ""
    monkeypatch.setattr(precision, "slowness", lambda kind: 0.5)
    assert check("bf16", CPU) == ""


def test_half_precision_is_for_gpus_and_bf16_for_those_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"fp16 is for GPUs \(training.precision=fp16\); use bf16 or fp32"):
        check("fp16", CPU)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "an old card")
    gpu = torch.device("cuda")
    with pytest.raises(ConfigError, match=r"an old card does not compute in bf16 \(training.precision=bf16\); use fp16 or fp32"):
        check("bf16", gpu)
    assert check("fp16", gpu) == ""


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
