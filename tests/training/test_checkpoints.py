"""Checkpoints are whole or absent, newest by number, and never less than one; damaged ones are passed over and said."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors
import torch
from small_runs import Listener, checkpoint_names, newest, same_run, settings, train, train_and_stop

from eyeline.errors import RunError, UserError
from eyeline.training import checkpoints
from eyeline.training.schedules import Progress
from eyeline.training.state import Meter, Order, Position, State

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


class Bomb:
    """An object whose unpickling writes a marker."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.marker), "w")


def state_at(step: int) -> State:
    return State(Position(step), Progress("loss"), Meter(), Order())


def small_model() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_are_kept_by_number(tmp_path: Path) -> None:
    """As text `step-999` is after `step-1000`."""
    model, optimizer = small_model()
    for step in (9, 998, 999, 1000):
        checkpoints.save(tmp_path, model, optimizer, state_at(step), keep=2)
    assert [step for step, _ in checkpoints.list_checkpoints(tmp_path)] == [999, 1000]
    at = checkpoints.peek(tmp_path)
    assert at is not None
    assert at[0].step == 1000
    loaded = checkpoints.load_newest(tmp_path, model, optimizer, pytest.fail)
    assert loaded is not None
    assert loaded.position.step == 1000


def test_other_names_are_no_checkpoints(tmp_path: Path) -> None:
    model, optimizer = small_model()
    checkpoints.save(tmp_path, model, optimizer, state_at(3), keep=1)
    strays = [".step-9.0123abcd.partial", ".step-9.0123abcd.old", "step-9x", "step-", "step-٩", "xstep-9", "step-9 (copy)"]
    for stray in strays:
        shutil.copytree(tmp_path / "step-3", tmp_path / stray)
    (tmp_path / "step-8").write_text("a file")
    assert [step for step, _ in checkpoints.list_checkpoints(tmp_path)] == [3]
    checkpoints.save(tmp_path, model, optimizer, state_at(4), keep=1)
    assert names(tmp_path) == sorted([*strays, "step-4", "step-8"]), "what is no checkpoint is not removed either"


def test_one_whole_checkpoint_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With only one kept, whatever the disk is told, each time one was there before."""
    model, optimizer = small_model()
    moments: list[int] = []

    def look(*_: object) -> None:
        moments.append(sum(all((path / name).exists() for name in FILES) for _, path in checkpoints.list_checkpoints(tmp_path)))

    checkpoints.save(tmp_path, model, optimizer, state_at(1), keep=1)
    for name in ("replace", "fsync", "rename", "unlink", "rmdir"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, real=real, **more: (look(), real(*given, **more), look())[1])
    checkpoints.save(tmp_path, model, optimizer, state_at(2), keep=1)
    monkeypatch.undo()
    assert names(tmp_path) == ["step-2"]
    assert len(moments) > 10
    assert set(moments) == {1, 2}


def test_what_a_save_cut_short_did_not_remove_goes_when_the_run_goes_on(stopped: Path, tmp_path: Path) -> None:
    """Killed between the rename of the last checkpoint and the removal of older ones, or while the model card was written."""
    out, one = tmp_path / "run", settings(stopped, training={"keep_checkpoints": 1, "steps": 12})
    shutil.copytree(stopped / "run", out)
    (out / "checkpoints" / "step-10" / "state.json").unlink()
    train(one, out, resume=True)
    assert checkpoint_names(out) == ["step-12"]
    (out / ".README.md.0123abcd.partial").mkdir()
    assert "is finished at step 12" in train(one, out, resume=True)
    assert not list(out.glob(".*"))


def test_a_checkpoint_gives_back_moments_and_random_states(tmp_path: Path) -> None:
    model, optimizer = small_model()
    checkpoints.save(tmp_path, model, optimizer, state_at(1), keep=1)
    drawn = torch.rand(3)
    other, its = small_model()
    its.zero_grad()
    checkpoints.load_newest(tmp_path, other, its, pytest.fail)
    assert torch.equal(torch.rand(3), drawn)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        for name, value in optimizer.state[one].items():
            assert torch.equal(value, its.state[two][name]), name


# ---- damage -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run stopped at step 12, with checkpoints of steps 10 and 12, and the whole one beside it."""
    folder = tmp_path_factory.mktemp("stopped")
    train_and_stop(settings(folder), folder / "run", 12)
    train(settings(folder), folder / "whole")
    assert checkpoint_names(folder / "run") == ["step-10", "step-12"]
    return folder


def damaged(path: Path, how: str, marker: Path) -> None:
    content = path.read_bytes()
    if how == "pickle":
        path.write_bytes(pickle.dumps(Bomb(marker)))
    elif how == "torch":
        torch.save({"state": Bomb(marker)}, path)
    elif how == "absent":
        path.unlink()
    else:
        path.write_bytes(content[: {"empty": 0, "half": len(content) // 2, "short": len(content) - 3}[how]])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *(("model.safetensors", how) for how in ("empty", "half", "short", "pickle")),
        *(("optimizer.safetensors", how) for how in ("empty", "half", "torch", "absent")),
        *(("state.json", how) for how in ("empty", "half", "pickle", "absent")),
    ],
)
def test_the_one_before_a_damaged_one_is_used_and_said(stopped: Path, tmp_path: Path, name: str, how: str) -> None:
    """Two steps are made again, their events stand once, and the end is the same."""
    out = tmp_path / "run"
    shutil.copytree(stopped / "run", out)
    damaged(out / "checkpoints" / "step-12" / name, how, tmp_path / "marker")
    at = checkpoints.peek(out / "checkpoints")
    assert at is not None
    assert at[0].step == 10, "who only looks sees the same one"
    said = train(settings(stopped), out, resume=True)
    assert "warning: checkpoint passed over: " in said
    assert str(out / "checkpoints" / "step-12") in said
    assert f"going on from the one before: {out / 'checkpoints' / 'step-10'}" in said
    assert not (tmp_path / "marker").exists()
    same_run(stopped / "whole", out)


def test_a_damaged_one_of_a_later_step_pushes_no_good_one_out(stopped: Path, tmp_path: Path) -> None:
    """Only the newest is kept, step 12 is damaged, and step 11 is saved again: it stays, and the damaged one goes."""
    out = tmp_path / "run"
    shutil.copytree(stopped / "run", out)
    damaged(out / "checkpoints" / "step-12" / "model.safetensors", "half", tmp_path)
    train_and_stop(settings(stopped, training={"keep_checkpoints": 1}), out, 1, resume=True)
    assert checkpoint_names(out) == ["step-11"]
    train(settings(stopped), out, resume=True)
    same_run(stopped / "whole", out)


def test_all_damaged_is_an_error_and_nothing_changes(stopped: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(stopped / "run", out)
    for name in ("step-10", "step-12"):
        damaged(out / "checkpoints" / name / "optimizer.safetensors", "half", tmp_path)
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    listener = Listener()
    with pytest.raises(RunError, match=r"every checkpoint is damaged .*checkpoints.*another directory"):
        train(settings(stopped), out, resume=True, reporter=listener)
    assert listener.text.count("passed over") == 2
    assert {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()} == before


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values["position"].pop("step") and values["position"].update(step=None),
        lambda values: values["position"].update(step="12"),
        lambda values: values["position"].update(step=True),
        lambda values: values["position"].update(batch=-1),
        lambda values: values["position"].update(unheard=1),
        lambda values: values.pop("order"),
        lambda values: values.update(version=2),
        lambda values: values.update(position=[]),
    ],
)
def test_a_state_that_is_none_is_damage(tmp_path: Path, change: object) -> None:
    model, optimizer = small_model()
    path = checkpoints.save(tmp_path, model, optimizer, state_at(12), keep=1)
    values = json.loads((path / "state.json").read_bytes())
    change(values)  # type: ignore[operator]
    (path / "state.json").write_text(json.dumps(values))
    with pytest.raises(RunError, match="every checkpoint is damaged"):
        checkpoints.load_newest(tmp_path, model, optimizer, lambda _: None)
    assert checkpoints.peek(tmp_path) is None


def test_moments_of_another_model_are_damage(tmp_path: Path) -> None:
    model, optimizer = small_model()
    checkpoints.save(tmp_path, model, optimizer, state_at(1), keep=1)
    wider = torch.nn.Linear(4, 2)
    said: list[str] = []
    with pytest.raises(RunError, match="every checkpoint is damaged"):
        checkpoints.load_newest(tmp_path, wider, torch.optim.Adam(wider.parameters()), said.append)
    assert "optimiser state of parameter 0 has shape (2, 3)" in said[0]


# ---- full disks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["model", "optimizer", "state", "rename"])
def test_a_full_disk_while_saving(stopped: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the place; the checkpoints before are untouched and nothing lies around; with room again it goes on."""
    out = tmp_path / "run"
    shutil.copytree(stopped / "run", out)
    before = {path: path.read_bytes() for path in sorted((out / "checkpoints").rglob("*")) if path.is_file()}
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def rust(given: object, path: str, *_: object) -> None:
        Path(path).write_bytes(b"half")
        raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    def no_room(*_: object) -> None:
        raise full

    if place in ("model", "optimizer"):
        real = checkpoints.save_file
        monkeypatch.setattr(
            checkpoints, "save_file", lambda given, path: (rust if Path(path).name.startswith(place) else real)(given, path)
        )
    elif place == "state":
        monkeypatch.setattr(Path, "write_bytes", no_room)
    else:
        monkeypatch.setattr(os, "replace", no_room)
    with pytest.raises(UserError) as caught:
        checkpoints.save(out / "checkpoints", *small_model(), state_at(15), keep=1)
    monkeypatch.undo()
    assert str(caught.value) == f"cannot write: No space left on device ({out / 'checkpoints' / 'step-15'})"
    assert {path: path.read_bytes() for path in sorted((out / "checkpoints").rglob("*")) if path.is_file()} == before
    assert checkpoint_names(out) == ["step-10", "step-12"]
    train(settings(stopped), out, resume=True)
    same_run(stopped / "whole", out)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one run and a half, where this machine lets us make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=384k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path, tmp_path: Path, pictures: None) -> None:
    seldom = {"steps": 60, "checkpoint_every": 5, "validate_every": 60}  # pictures take room, too
    config = settings(tmp_path, training={**seldom, "keep_checkpoints": 100})
    with pytest.raises(UserError, match=f"cannot write: No space left on device .{small_disk}/run"):
        train(config, small_disk / "run")
    last = newest(small_disk / "run")
    assert not [path for path in small_disk.rglob("*") if path.name.startswith(".")]
    assert last.name != "step-60"
    for path in last.glob("*.safetensors"):
        safetensors.torch.load_file(path)
    for name in checkpoint_names(small_disk / "run")[1:]:
        shutil.rmtree(small_disk / "run" / "checkpoints" / name)
    modest = settings(tmp_path, training={**seldom, "keep_checkpoints": 1})
    train(modest, small_disk / "run", resume=True)
    train(modest, tmp_path / "whole")
    same_run(tmp_path / "whole", small_disk / "run")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_of_a_run_are_ordinary(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        train(settings(tmp_path, training={"steps": 5}), tmp_path / "run")
    finally:
        os.umask(before)
    run = tmp_path / "run"
    modes = {str(path.relative_to(run)): stat.S_IMODE(path.stat().st_mode) for path in run.rglob("*")}
    assert {mode for path, mode in modes.items() if (run / path).is_dir()} == {0o750}
    assert {mode for path, mode in modes.items() if (run / path).is_file()} == {0o640}
    assert {"model.safetensors", "checkpoints/step-5/optimizer.safetensors", "metrics.jsonl"} <= modes.keys()
