"""SIGKILL at moments nobody chose, while saving is most of what is done; each time the run goes on to the same end."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from small_runs import Listener, checkpoint_names, newest, same_run, settings, train

from eyeline.config import Config
from eyeline.training.checkpoints import list_checkpoints

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
SPAWN = multiprocessing.get_context("forkserver")  # imports torch once for all the runs
SPAWN.set_forkserver_preload(["eyeline.training", "torch.utils.tensorboard", "torch._dynamo"])  # the last by the first update


def work(config: Config, out: Path) -> None:
    """What the process to be killed does."""
    train(config, out, resume=True, reporter=Listener(verbosity=-1))


def start(config: Config, out: Path) -> BaseProcess:
    process = SPAWN.Process(target=work, args=(config, out))
    process.start()
    return process


def kill_once_saved(process: BaseProcess, out: Path, step: int, delay: float) -> None:
    """Waits for a checkpoint of `step` or later, then a moment longer."""
    limit = time.monotonic() + 60
    while process.is_alive() and not any(number >= step for number, _ in list_checkpoints(out / "checkpoints")):
        assert time.monotonic() < limit, "no checkpoint comes"
        time.sleep(0.001)
    time.sleep(delay)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the run ended before it could be killed"


@pytest.mark.parametrize("keep", [1, 2])
def test_killed_at_any_moment_ends_as_the_undisturbed_run(tmp_path: Path, keep: int) -> None:
    """With `keep_checkpoints: 1` too, there is no moment without a whole checkpoint."""
    every = {"steps": 36, "checkpoint_every": 1, "validate_every": 4, "keep_checkpoints": keep, "accumulate": 2}
    config = settings(tmp_path, training=every)
    draw, step = random.Random(keep), 1
    out = tmp_path / "killed"
    for _ in range(4):
        process = start(config, out)
        kill_once_saved(process, out, step, draw.uniform(0, 0.06))
        kept = [number for number, _ in list_checkpoints(out / "checkpoints")]
        assert kept, "no moment without a checkpoint"
        step = max(kept) + draw.randint(1, 4)
    said = train(config, out, resume=True)
    assert f"going on from step {max(kept)} " in said
    assert "passed over" not in said
    assert checkpoint_names(out) == [f"step-{step}" for step in range(37 - keep, 37)], "leftovers are gone"
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    train(settings(tmp_path, training={**every, "checkpoint_every": 100}), tmp_path / "whole")
    assert newest(out).name == "step-36"
    same_run(tmp_path / "whole", out)
