"""Which module first answered with, or handed back, a number that is none: named, on every rung, with no trace in the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import MODELS, OTHERS, Listener, rung_settings, settings, train
from torch import Tensor, nn

from eyeline.training import Diverged, Trainer
from eyeline.training.diagnosis import first_gone_wrong
from eyeline.training.objective import Objective


class Part(nn.Module):
    """y = W x, and where it is `bad`, a number that is none in what it answers or hands back."""

    def __init__(self, bad: str = "") -> None:
        super().__init__()
        self.inner, self.bad = nn.Linear(2, 2), bad

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        if self.bad == "output":
            return y / (y - y)
        # √|y| at 0 is a number, and its slope is none
        return y + (y - y).abs().sqrt() if self.bad == "gradient" else y


class Chain(nn.Module):
    def __init__(self, *parts: str) -> None:
        super().__init__()
        self.parts: Any = nn.ModuleList([Part(bad) for bad in parts])

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x


class Sum:
    def __init__(self, value: Tensor) -> None:
        self.objective = value.sum()


def found(model: nn.Module) -> str:
    torch.manual_seed(0)
    return first_gone_wrong(model, lambda batch: Sum(model(batch)), [torch.ones(1, 2), torch.ones(1, 2)])  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize("bad", ["output", "gradient"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_first_of_a_chain_is_named(bad: str, place: int) -> None:
    """Whatever comes after it has the same numbers; in a gradient, whatever comes before."""
    model = Chain(*(bad if number == place else "" for number in range(3)))
    through = "the output of" if bad == "output" else "the gradient through"
    wanted = f"{through} parts.{place}"
    if bad == "gradient" and place == 0:  # it hands nothing back: its input has no gradient, and its own weight shows it
        wanted = "the gradient of parts.0.inner.weight"
    assert found(model) == wanted
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()), "no hook stays"


def test_of_two_the_earlier() -> None:
    assert found(Chain("", "output", "output")) == "the output of parts.1"
    assert found(Chain("gradient", "gradient", "")) == "the gradient through parts.1", "gradients come from above"


def test_where_nothing_is_wrong_nothing_is_named() -> None:
    assert found(Chain("", "", "")) == ""


def test_a_part_that_is_read_by_two_is_not_blamed_for_the_other() -> None:
    """The gradient of what both read is a sum; each module's own share of it is what counts."""

    class Fork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.below, self.sound, self.broken = Part(), Part(), Part("gradient")

        def forward(self, x: Tensor) -> Tensor:
            y = self.below(x)
            return self.sound(y) + self.broken(y)  # type: ignore[no-any-return]

    assert found(Fork()) == "the gradient through broken"


@pytest.mark.parametrize("rung", [*MODELS, *OTHERS])
def test_a_weight_that_is_none_is_traced_to_its_module(tmp_path: Path, rung: str) -> None:
    """In a run of every rung: the warning and the error name the module whose weight was broken, or a part of it."""
    config = rung_settings(tmp_path, rung, training={"steps": 40, "validate_every": 40, "checkpoint_every": 40})
    models: list[nn.Module] = []
    broken: list[str] = []

    def break_one(step: int) -> None:
        if step != 6:
            return
        model = models[0]
        named = [name for name, weight in model.named_parameters() if weight.dim() > 1 and "table" not in name]
        name = next(name for name in named if name.startswith("encoder."))
        broken.append(name.rpartition(".")[0])
        with torch.no_grad():
            dict(model.named_parameters())[name].fill_(math.nan)

    with pytest.MonkeyPatch.context() as patch:
        real = Trainer.__init__

        def init(self: Trainer, model: nn.Module, *given: Any) -> None:
            models.append(model)
            real(self, model, *given)

        patch.setattr(Trainer, "__init__", init)
        listener = Listener(break_one)
        with pytest.raises(Diverged, match=r"loss nan at step 11, 5 updates in a row; first in the output of encoder"):
            train(config, tmp_path / "run", reporter=listener)
    assert f"first in the output of {broken[0]}" in listener.text, broken


def test_a_gradient_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss is a number; what is handed back through the decoder is not."""
    from eyeline.ladder import Seq2Seq

    real = Seq2Seq.forward

    def forward(self: Seq2Seq, *given: Any) -> Any:
        step = real(self, *given)
        if step.features.requires_grad:
            step.features.register_hook(lambda gradient: torch.full_like(gradient, math.nan))
        return step

    monkeypatch.setattr(Seq2Seq, "forward", forward)
    listener = Listener()
    with pytest.raises(Diverged, match=r"gradient norm nan at step 5, 5 updates in a row; first in the gradient"):
        train(settings(tmp_path), tmp_path / "run", reporter=listener)


def test_looking_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update is left out for a number that its second try does not show; the run is that of one left out unasked."""
    from small_runs import newest, same_tensors

    from eyeline.training import updates

    real = Objective.__call__

    def bad_once(number_of_bad: int) -> Any:
        seen: list[int] = []

        def call(self: Objective, model: Any, batch: Any, number: int = 1) -> Any:
            loss = real(self, model, batch, number)
            if number == number_of_bad and number not in seen:
                seen.append(number)
                loss.nll.fill_(math.nan)
            return loss

        return call

    for name in ("looked", "blind"):
        monkeypatch.setattr(Objective, "__call__", bad_once(7))
        if name == "blind":
            monkeypatch.setattr(updates, "first_gone_wrong", lambda *_: "")
        said = train(settings(tmp_path), tmp_path / name)
        assert "loss nan at step 7: this update is left out (1 so far)" in said
    same_tensors(newest(tmp_path / "looked") / "model.safetensors", newest(tmp_path / "blind") / "model.safetensors")
