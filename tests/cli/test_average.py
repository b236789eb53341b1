"""`eyeline average`: the mean of weights that a run has kept, as a run that predicts or as a file; what cannot be averaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from cli_process import Command
from safetensors.torch import load_file

import eyeline as package
from eyeline.config import Config
from eyeline.training import Reporter
from toy_runs import reversal, write_pairs

STEPS = (2, 4, 6, 8)


def trained(folder: Path, name: str, **training: object) -> Path:
    pairs = [write_pairs(folder / f"{part}.tsv", reversal(lines, lines)) for part, lines in (("train", 20), ("valid", 5))]
    values = {
        "data": {"train": [pairs[0]], "valid": [pairs[1]]},
        "model": {"architecture": "luong", "embedding_size": 8, "encoder_size": 8, "decoder_size": 8},
        "training": {"steps": 8, "validate_every": 2, "checkpoint_every": 2, "keep_checkpoints": 9, **training},
    }
    return package.train(Config.from_dict(values), folder / name, reporter=Reporter(-1)).path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the weights of four validations, whose losses are then written anew: steps 4 and 8 are the best."""
    path = trained(tmp_path_factory.mktemp("average"), "run", average="last-2")
    events = [json.loads(line) for line in (path / "metrics.jsonl").read_bytes().split(b"\n")[:-1]]
    for event in events:
        if event["split"] == "valid":
            event["loss"] = {2: 3.0, 4: 1.0, 6: 4.0, 8: 2.0}[event["step"]]
    (path / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def mean(run: Path, steps: Sequence[int]) -> dict[str, torch.Tensor]:
    files = [load_file(run / "checkpoints" / f"step-{step}" / "model.safetensors") for step in steps]
    return {name: torch.stack([file[name].double() for file in files]).mean(0).float() for name in files[0]}


@pytest.mark.parametrize(
    ("options", "steps"), [((), STEPS), (("--last", "3"), STEPS[1:]), (("--best", "2"), (4, 8)), (("--best", "3"), (2, 4, 8))]
)
def test_the_mean_of_all_the_last_or_the_best(
    eyeline: Command, run: Path, tmp_path: Path, options: tuple[str, ...], steps: object
) -> None:
    assert isinstance(steps, tuple)
    out = tmp_path / "mean"
    said = eyeline("average", run, *options, "--out", out).well()
    assert said.out == b""
    assert f"written: {out}, the mean of {len(steps)}: steps (loss) " in said.err
    found, wanted = load_file(out / "model.safetensors"), mean(run, steps)
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, wanted[name], rtol=0, atol=1e-7)
    assert json.loads(eyeline("info", out, "--json").well().out)["weights_are_the_mean_of_steps"] == list(steps)


def test_the_mean_is_a_run_without_the_first_one(eyeline: Command, run: Path, tmp_path: Path) -> None:
    eyeline("average", run, "-o", tmp_path / "mean", "-q").well()
    moved = tmp_path / "moved"
    shutil.move(tmp_path / "mean", moved)
    assert len(eyeline("predict", moved, "-q", "--max-length", "4", stdin=b"a b\nb a\n").lines) == 2
    card = (moved / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# mean\n\nThe mean of the weights of run at steps 2, 4, 6, 8.\nIt has not been measured")
    assert "\n## run\n" in card
    assert sorted(path.name for path in moved.iterdir()) == [
        "README.md",
        "config.yaml",
        "model.safetensors",
        "source.tokenizer.json",
        "target.tokenizer.json",
    ]


def test_a_file_of_weights_alone(eyeline: Command, run: Path, tmp_path: Path) -> None:
    eyeline("average", run, "--last", "2", "-o", tmp_path / "mean.safetensors").well()
    eyeline("average", run, "--last", "2", "-o", tmp_path / "mean").well()
    assert (tmp_path / "mean.safetensors").read_bytes() == (tmp_path / "mean" / "model.safetensors").read_bytes()


def test_snapshots_count_where_their_checkpoints_are_gone(eyeline: Command, run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "checkpoints" / "step-6")
    assert (copy / "snapshots" / "step-6.safetensors").exists()
    eyeline("average", copy, "--last", "2", "-o", tmp_path / "mean.safetensors").well()
    eyeline("average", run, "--last", "2", "-o", tmp_path / "same.safetensors").well()
    assert (tmp_path / "mean.safetensors").read_bytes() == (tmp_path / "same.safetensors").read_bytes()


def test_mistakes_are_one_line_and_write_nothing(eyeline: Command, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "--out" in eyeline("average", run).error
    assert "not both" in eyeline("average", run, "--last", "2", "--best", "2", "--out", out).error
    assert "no such run directory" in eyeline("average", tmp_path / "absent", "--out", out).error
    error = eyeline("average", run, "--last", "5", "--out", out).error
    assert "the run has kept 4 weights: steps 2, 4, 6, 8 (--last 5); training.keep_checkpoints" in error
    assert not out.exists()
    out.mkdir()
    assert "there is something here already" in eyeline("average", run, "--out", out).error
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "checkpoints" / "step-8" / "model.safetensors").write_bytes(b"cut")
    assert "damaged, or not in the safetensors format" in eyeline("average", copy, "--out", tmp_path / "new").error
    shutil.rmtree(copy / "checkpoints")
    shutil.rmtree(copy / "snapshots")
    assert "the run has kept 0 weights" in eyeline("average", copy, "--out", tmp_path / "new").error
    assert not (tmp_path / "new").exists()


def test_a_mean_that_the_optimiser_keeps(eyeline: Command, tmp_path: Path) -> None:
    free = trained(tmp_path, "free", optimizer="schedule-free", steps=2)
    error = eyeline("average", free, "--out", tmp_path / "mean").error
    assert "the schedule-free optimiser keeps a mean by itself" in error
