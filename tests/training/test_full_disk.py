"""A disk that is full from any write on: one line that says so, nothing lost, nothing left around; with room the run goes on."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch
from small_runs import same_run, settings, train

from eyeline import runs
from eyeline.errors import UserError
from eyeline.training import checkpoints
from eyeline.training.schedules import Progress
from eyeline.training.state import Meter, Order, Position, State

WRITES = ((os, "fsync"), (os, "replace"), (Path, "mkdir"), (Path, "write_bytes"), (checkpoints, "save_file"), (runs, "save_file"))


class Disk:
    """Counts what is written. From write number `full` on there is no room, as long as it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        self.full: int | None = None
        for place, name in WRITES:
            monkeypatch.setattr(place, name, self._counted(getattr(place, name), name))

    def _counted(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def write(*given: Any, **more: Any) -> Any:
            self.writes += 1
            if self.full is None or self.writes < self.full:
                return real(*given, **more)
            if name == "save_file":
                with open(given[1], "wb") as file:  # as much as there was room for
                    file.write(b"half")
                raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return write

    def empty(self, full: int | None = None) -> None:
        self.writes, self.full = 0, full


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def save(folder: Path, step: int) -> None:
    torch.manual_seed(step)
    model = torch.nn.Linear(3, 2)
    checkpoints.save(
        folder, model, torch.optim.Adam(model.parameters()), State(Position(step), Progress("loss"), Meter(), Order()), 1
    )


def refusal(folder: Path, step: int) -> str:
    """What a save answers where there is no room; empty when it does not notice."""
    try:
        save(folder, step)
    except UserError as error:
        return str(error)
    return ""


def test_every_write_of_a_save(tmp_path: Path, disk: Disk) -> None:
    """The checkpoint before is there, whole, until the new one is; the flush of folders and the removal of the old one may fail
    unseen."""
    save(tmp_path / "count", 1)
    disk.empty()
    save(tmp_path / "count", 2)
    count, unseen = disk.writes, 0
    assert count >= 9, "a folder, three files, each flushed, the folder flushed, a rename, the folder above flushed"
    for full in range(1, count + 1):
        folder = tmp_path / str(full)
        disk.empty()
        save(folder, 1)
        disk.empty(full)
        said = refusal(folder, 2)
        if said:
            assert said == f"cannot write: No space left on device ({folder / 'step-2'})"
            assert os.listdir(folder) == ["step-1"]
        unseen += not said
        disk.empty()
        assert checkpoints.states(folder), "one that is whole"
        save(folder, 2)
        assert os.listdir(folder) == ["step-2"]
    assert unseen <= 2


def test_any_write_of_a_run(tmp_path: Path, disk: Disk, pictures: None) -> None:
    """Settings, tokenizers, journal, checkpoints, snapshots, best weights, model card."""
    training = {"steps": 6, "checkpoint_every": 2, "validate_every": 3, "keep_checkpoints": 1, "average": "last-2"}
    config = settings(tmp_path, training=training)
    disk.empty()
    train(config, tmp_path / "whole")
    places = random.Random(5).sample(range(2, disk.writes - 5), 5)  # the last flush of a folder may fail unseen
    for full in (1, *places):
        out = tmp_path / f"full-{full}"
        disk.empty(full)
        with pytest.raises(UserError, match=rf"^cannot write: No space left on device \({out}"):
            train(config, out)
        disk.empty()
        assert not list(out.rglob(".*")), "nothing half written"
        train(config, out, resume=True)
        same_run(tmp_path / "whole", out)
        assert (out / "README.md").exists()
