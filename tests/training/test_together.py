"""Processes that train one model together: as one process with the same batches, one writer, and none that waits for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks import together
from safetensors.torch import load_file
from small_runs import events, newest, reversal, rung_settings, same_run, settings, train, write_pairs

from eyeline.config import Config
from eyeline.errors import DataError, Interrupted
from eyeline.training import loop, updates
from eyeline.training.distributed import ProcessLost
from eyeline.training.state import Position

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="forks")]
STILL = {"dropout": 0.0}  # what is drawn by chance is drawn by each process for itself
SHORT = {"steps": 8, "validate_every": 4, "checkpoint_every": 4}


def run(config: Config, out: str, options: dict[str, Any] | None = None) -> str:
    """On each rank: what a user was told there."""
    return train(config, Path(out), **(options or {}))


def near(one: Path, other: Path, tolerance: float = 1e-5) -> None:
    a, b = load_file(one), load_file(other)
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert torch.allclose(tensor, b[name], rtol=0, atol=tolerance), name


def ok(found: Sequence[Any]) -> Sequence[Any]:
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return found


def test_processes_are_one_with_the_same_batches(tmp_path: Path) -> None:
    """Eleven batches an epoch: with two at a time each, the last window leaves one process of four, or of two, with less."""
    both = {"metric": "symbol_error_rate", "average": "ema", "label_smoothing": 0.1}
    for ranks, each in ((2, 2), (4, 1)):
        config = settings(tmp_path, model=STILL, training={**SHORT, **both, "accumulate": each})
        alone = settings(tmp_path, model=STILL, training={**SHORT, **both, "accumulate": 4})
        if ranks == 2:
            train(alone, tmp_path / "one")
        told = ok(together(ranks, run, config, str(tmp_path / f"{ranks}")))
        assert f"{ranks} processes" in told[0]
        assert "validation at step 8" in told[0]
        assert not any(told[1:]), "one speaks"
        one, other = newest(tmp_path / "one"), newest(tmp_path / f"{ranks}")
        for name in ("model.safetensors", "optimizer.safetensors"):
            a, b = (load_file(path / name) for path in (one, other))
            assert a.keys() == b.keys() - {f"random.cpu.{rank}" for rank in range(1, ranks)}
            for key, tensor in a.items():
                assert key.startswith("random") or torch.allclose(tensor, b[key], rtol=0, atol=1e-5), key
        near(tmp_path / "one" / "model.safetensors", tmp_path / f"{ranks}" / "model.safetensors")
        states = [json.loads((path / "state.json").read_bytes()) for path in (one, other)]
        for name in ("step", "epoch", "batch", "target_tokens", "skipped"):
            assert states[0]["position"][name] == states[1]["position"][name]
        for mine, its in zip(events(tmp_path / "one"), events(tmp_path / f"{ranks}"), strict=True):
            assert mine == pytest.approx(its, abs=1e-5)
        assert (tmp_path / f"{ranks}" / "README.md").exists()
        assert len(list((tmp_path / f"{ranks}" / "tensorboard").iterdir())) == 1


RECIPES: dict[str, dict[str, Any]] = {
    "moving average": {"average": "ema", "optimizer": "adamw", "weight_decay": 0.1, "metric": "exact_match", "clip_norm": 0.5},
    "schedule-free": {"optimizer": "schedule-free", "freeze": ["encoder.*"]},
    "mean of the last": {"average": "last-2"},
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_parts_of_the_weights_are_trained_as_the_whole(tmp_path: Path, recipe: str) -> None:
    """Recipes that remember something; what is written does not show that it was in parts, and one process goes on from it."""
    given = {**SHORT, **RECIPES[recipe]}
    train(settings(tmp_path, model=STILL, training={**given, "accumulate": 2}), tmp_path / "one")
    told = ok(together(2, run, settings(tmp_path, model=STILL, training={**given, "shard": True}), str(tmp_path / "two")))
    assert "best" in told[0]
    one, two = newest(tmp_path / "one"), newest(tmp_path / "two")
    near(one / "model.safetensors", two / "model.safetensors")
    near(tmp_path / "one" / "model.safetensors", tmp_path / "two" / "model.safetensors")
    assert load_file(one / "optimizer.safetensors").keys() == load_file(two / "optimizer.safetensors").keys() - {"random.cpu.1"}
    config = settings(tmp_path, model=STILL, training={**given, "accumulate": 2, "steps": 10})
    for out in ("one", "two"):
        train(config, tmp_path / out, resume=True)
    near(newest(tmp_path / "one") / "model.safetensors", newest(tmp_path / "two") / "model.safetensors", 2e-5)


# ---- the same data, once each -------------------------------------------------------------------------------------------


def seen(config: Config, out: str) -> list[tuple[int, int, list[int]]]:
    """(epoch, update, rows) of every batch that this rank works through."""
    batches = []
    real = updates.Updater.__call__

    def spied(self: Any, window: Any, rate: float, number: int, scale: Any) -> Any:
        batches.extend((batch.epoch, number, batch.rows.tolist()) for batch in window)
        return real(self, window, rate, number, scale)

    updates.Updater.__call__ = spied  # type: ignore[method-assign]
    train(config, Path(out))
    return batches


def test_every_pair_once_an_epoch_whatever_the_shares(tmp_path: Path) -> None:
    """Three pairs, each a batch of its own, for four processes, and for two that take two at a time: shares uneven, or empty."""
    pairs = reversal(3)
    write_pairs(tmp_path / "few.tsv", pairs)
    few = {"train": [str(tmp_path / "few.tsv")]}
    for ranks, each in ((4, 1), (2, 2)):
        values = {"steps": None, "epochs": 3, "batch_tokens": 1, "accumulate": each, "workers": each - 1}
        found = ok(together(ranks, seen, settings(tmp_path, data=few, training=values), str(tmp_path / f"{ranks}")))
        for epoch in range(3):
            rows = [row for batches in found for when, _, batch in batches if when == epoch for row in batch]
            assert sorted(rows) == [0, 1, 2]
        assert [len(batches) for batches in found] == ([3, 3, 3, 0] if ranks == 4 else [6, 3])
        assert events(tmp_path / f"{ranks}", "train")[-1]["epoch"] == 3


# ---- stopping and going on ----------------------------------------------------------------------------------------------


def told_to_stop(config: Config, out: str, rank: int, after: int, options: dict[str, Any]) -> str:
    """On one rank a signal comes after so many updates."""
    real = loop.Trainer._update

    def spied(self: Any) -> None:
        real(self)
        if self.world.rank == rank and self.position.step == after:
            signal.raise_signal(signal.SIGTERM)

    loop.Trainer._update = spied  # type: ignore[method-assign]
    try:
        return train(config, Path(out), **options)
    except Interrupted as error:
        return f"interrupted: {error}"


@pytest.mark.parametrize(("rung", "shard"), [("transformer", False), ("bahdanau", True)])
def test_stopped_and_gone_on_is_the_run_that_never_stopped(tmp_path: Path, rung: str, shard: bool) -> None:
    """Dropout, workers, accumulation, a moving average; the signal reaches only the second process, in mid-epoch."""
    values = {**SHORT, "accumulate": 2, "workers": 1, "average": "ema", "shard": shard}
    config = rung_settings(tmp_path, rung, training=values)
    out = str(tmp_path / "stopped")
    first = ok(together(2, told_to_stop, config, out, 1, 3, {}))
    assert first[1] == "interrupted: stopped by SIGTERM at step 3; the state is saved, and --resume goes on"
    assert first[0] == first[1].replace("SIGTERM", "a signal to another process")
    assert newest(tmp_path / "stopped").name == "step-3"
    told = ok(together(2, run, config, out, {"resume": True}))
    assert "going on from step 3 (epoch 1, batch 4)" in told[0]
    ok(together(2, run, config, str(tmp_path / "whole")))
    same_run(tmp_path / "whole", tmp_path / "stopped")
    files = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "whole").iterdir()}
    told = ok(together(2, run, config, str(tmp_path / "whole"), {"resume": True}))
    assert "is finished at step 8" in told[0]
    assert files == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "whole").iterdir()}, "and nothing is written"


def test_another_number_of_processes_goes_on(tmp_path: Path) -> None:
    """The data goes on where it was; only what is drawn by chance differs."""
    config = settings(tmp_path, model=STILL, training={**SHORT, "steps": 6, "accumulate": 2})
    ok(together(2, run, config, str(tmp_path / "two")))
    more = {"resume": True, "more_steps": 4}
    train(settings(tmp_path, model=STILL, training={**SHORT, "steps": 6, "accumulate": 4}), tmp_path / "two", **more)
    alone = settings(tmp_path, model=STILL, training={**SHORT, "steps": 10, "accumulate": 4})
    train(alone, tmp_path / "one")
    near(newest(tmp_path / "one") / "model.safetensors", newest(tmp_path / "two") / "model.safetensors")
    ok(together(3, run, config, str(tmp_path / "two"), more))
    assert newest(tmp_path / "two").name == "step-14"


# ---- as a launcher starts them ------------------------------------------------------------------------------------------

PATIENCE = 900.0  # seconds; a machine may be busy


def launched(config: Config, out: Path, *options: str, launcher: Sequence[str] = ()) -> subprocess.Popen[str]:
    """`torchrun … -m eyeline train CONFIG --out OUT` with two processes on the CPU."""
    written = out.parent / "config.yaml"
    written.write_text(config.to_yaml(), encoding="utf-8")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", *launcher]
    train = ["-m", "eyeline", "train", str(written), "--out", str(out), "--device", "cpu", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*torchrun, *train], stderr=subprocess.PIPE, env=environment, text=True)


def said(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Its status, and the lines that are ours."""
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise
    return process.returncode, [line for line in errors.splitlines() if line.startswith(("error: ", "interrupted: ", "defect"))]


def of_rank(launcher: int, rank: int) -> int:
    """The process id of one of those that were launched."""
    for number in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        with suppress(OSError):
            if f"RANK={rank}" in Path(f"/proc/{number}/environ").read_bytes().decode(errors="replace").split("\0"):
                return int(number)
    raise AssertionError(f"no rank {rank}")


def once_saved(process: subprocess.Popen[str], out: Path) -> None:
    limit = time.monotonic() + PATIENCE
    while not list((out / "checkpoints").glob("step-*")):
        assert process.poll() is None, said(process)
        assert time.monotonic() < limit, "no checkpoint comes"
        time.sleep(0.002)


linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")


@linux
def test_one_is_killed_and_all_begin_anew_from_the_last_checkpoint(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": 30, "checkpoint_every": 1, "validate_every": 15})
    out = tmp_path / "killed"
    process = launched(config, out, launcher=["--max-restarts", "1"])
    once_saved(process, out)
    os.kill(of_rank(process.pid, 1), signal.SIGKILL)
    status, _ = said(process)
    assert status == 0
    ok(together(2, run, config, str(tmp_path / "whole")))
    same_run(tmp_path / "whole", out)


@linux
def test_a_launcher_that_is_told_to_stop(tmp_path: Path) -> None:
    """All are told; all save, together, and the line is written once."""
    out = tmp_path / "stopped"
    process = launched(settings(tmp_path, training={"steps": 100_000, "checkpoint_every": 1}), out, "-q")
    once_saved(process, out)
    process.terminate()
    _, lines = said(process)
    assert [line.partition(" at ")[0] for line in lines] == ["interrupted: stopped by SIGTERM"]
    assert lines[0].split(" at step ")[1].split(";")[0] == newest(out).name.removeprefix("step-")


@linux
def test_what_is_wrong_is_said_once(tmp_path: Path) -> None:
    config = settings(tmp_path, data={"columns": ["source", "-", "target"]})
    status, lines = said(launched(config, tmp_path / "out"))
    assert status
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert "train.tsv:1" in lines[0]
    out = tmp_path / "killed"
    process = launched(settings(tmp_path, training={"steps": 100_000, "checkpoint_every": 1}), out, "-q")
    once_saved(process, out)
    os.kill(of_rank(process.pid, 0), signal.SIGKILL)
    status, lines = said(process)
    assert status
    assert [line.partition(" (")[0] for line in lines] == ["error: another process of this run has died"]


# ---- what goes wrong ----------------------------------------------------------------------------------------------------


def failing(config: Config, out: str, rank: int, fault: str) -> str:
    """On one rank something fails at the third update; what each says."""
    real = updates.Updater._backward

    def spied(self: Any, batch: Any, tokens: int, number: int) -> Any:
        if self.world.rank == rank and number == 3:
            if fault == "pair too large":
                raise updates.PairTooLarge("the memory does not hold a single pair of 9 and 9 tokens", 4, "a hint")
            if fault == "full" and len(batch.rows) > 1:
                raise MemoryError
            sums = real(self, batch, tokens, number)
            if fault == "nan":
                next(self.model.encoder.parameters()).grad[0] = float("nan")
            return sums
        return real(self, batch, tokens, number)

    updates.Updater._backward = spied  # type: ignore[method-assign]
    return train(config, Path(out))


def test_a_failure_of_one_ends_all(tmp_path: Path) -> None:
    config = settings(tmp_path, training={**SHORT, "accumulate": 2})
    for rank in (0, 1):
        found = together(2, failing, config, str(tmp_path / f"{rank}"), rank, "pair too large")
        assert isinstance(found[rank], DataError), found
        assert str(found[rank]).startswith("the memory does not hold a single pair of 9 and 9 tokens")
        assert "train.tsv:5" in str(found[rank])
        assert isinstance(found[1 - rank], ProcessLost)


def test_a_full_memory_or_a_bad_number_on_one_is_borne_by_all(tmp_path: Path) -> None:
    config = settings(tmp_path, model=STILL, training={**SHORT, "accumulate": 2})
    train(settings(tmp_path, model=STILL, training={**SHORT, "accumulate": 4}), tmp_path / "one")
    told = ok(together(2, failing, config, str(tmp_path / "full"), 1, "full"))
    assert "the memory was full at step 3: the batch was split (" in told[0], "though it was not the one that speaks"
    near(newest(tmp_path / "one") / "model.safetensors", newest(tmp_path / "full") / "model.safetensors")
    told = ok(together(2, failing, config, str(tmp_path / "nan"), 1, "nan"))
    assert "gradient norm nan at step 3: this update is left out (1 so far)" in told[0]
    state = json.loads((newest(tmp_path / "nan") / "state.json").read_bytes())
    assert Position(**{**state["position"], "seconds": 0, "warm_seconds": 0}).skipped == 1
