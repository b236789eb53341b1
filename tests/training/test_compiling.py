"""Passes that are compiled train the same weights; where nothing can be compiled, that is said before anything is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import newest, rung_settings, settings, train

from eyeline.errors import ConfigError
from eyeline.training import compiling

STILL = {"model": {"dropout": 0.0}}
KEYS = ("inward.bias", "keys_and_values.bias")  # what is added to all keys alike moves no weight: its gradient is rounding


def events(run: Path, split: str) -> list[dict[str, float]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["split"] == split]


def trained(folder: Path, out: str, compiled: bool) -> str:
    short = {"steps": 4, "validate_every": 2, "compile": compiled, "metric": "exact_match"}
    return train(rung_settings(folder, "transformer", training=short, **STILL), folder / out)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf", "ignore::DeprecationWarning")  # its own
@pytest.mark.slow
def test_compiled_is_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By PyTorch's own compiler where there is one of C++, else by what traces and rewrites the graph alone."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        monkeypatch.setattr(compiling, "BACKEND", "aot_eager")
    graphs: list[int] = []
    real = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **given: graphs.append(1) or real(self, **given))
    trained(tmp_path, "plain", False)
    assert not graphs
    trained(tmp_path, "compiled", True)
    assert len(graphs) == 2
    plain, compiled = (load_file(newest(tmp_path / out) / "model.safetensors") for out in ("plain", "compiled"))
    assert plain.keys() == compiled.keys()
    for name, tensor in plain.items():
        if not name.endswith(KEYS):
            assert torch.allclose(tensor, compiled[name], rtol=0, atol=1e-5), name
    losses = [[event["loss"] for event in events(tmp_path / out, "valid")] for out in ("plain", "compiled")]
    assert len(losses[0]) == 2
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


def test_where_nothing_can_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "BACKEND", "none such")
    with pytest.raises(
        ConfigError, match=r"PyTorch cannot compile on this machine: .*\(training.compile=true\); set it to false"
    ):
        trained(tmp_path, "out", True)
    assert not (tmp_path / "out").exists()


def test_loops_over_positions_are_not_compiled(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="bahdanau goes from position to position"):
        settings(tmp_path, training={"compile": True})
    with pytest.raises(ConfigError, match="one of both"):
        rung_settings(tmp_path, "transformer", training={"compile": True, "shard": True})
