"""SIGKILL at moments nobody chose, while saving is most of what is done; each time the run goes on to the same end."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from killing import RUNGS, kill_all, start
from small_runs import checkpoint_names, newest, same_run, settings, train

from eyeline.training.checkpoints import list_checkpoints

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")


def test_killed_just_after_a_save_with_only_one_kept(tmp_path: Path) -> None:
    """With `keep_checkpoints: 1` too, there is no moment without a whole checkpoint."""
    every = {"steps": 24, "checkpoint_every": 1, "validate_every": 4, "keep_checkpoints": 1, "accumulate": 2}
    config, out, draw, step = settings(tmp_path, training=every), tmp_path / "killed", random.Random(1), 1
    for _ in range(3):
        process, limit = start(config, out), time.monotonic() + 300
        while process.is_alive() and not any(number >= step for number, _ in list_checkpoints(out / "checkpoints")):
            assert time.monotonic() < limit, "no checkpoint comes"
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.06))
        process.kill()
        process.join()
        kept = [number for number, _ in list_checkpoints(out / "checkpoints")]
        assert kept, "no moment without a checkpoint"
        step = max(kept) + draw.randint(1, 3)
    said = train(config, out, resume=True)
    assert f"going on from step {max(kept)} " in said or "is finished at step 24" in said
    assert "passed over" not in said
    assert checkpoint_names(out) == ["step-24"], "leftovers are gone"
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    train(settings(tmp_path, training={**every, "checkpoint_every": 100}), tmp_path / "whole")
    assert newest(out).name == "step-24"
    same_run(tmp_path / "whole", out)


@pytest.mark.slow
def test_ten_kills_over_all_rungs(tmp_path: Path) -> None:
    """What `python tests/training/killing.py --kills 200` does, in small."""
    assert kill_all(tmp_path, list(RUNGS), 10, seed=3, steps=6).kills == 10
