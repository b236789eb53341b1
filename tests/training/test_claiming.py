"""Two trainings do not write into one directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_runs import newest, same_run, settings, train, train_and_stop

from eyeline.errors import RunError, UserError
from eyeline.training.claiming import Claim


def test_a_second_training_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    config, out = settings(tmp_path, training={"steps": 4, "checkpoint_every": 2}), tmp_path / "run"
    train_and_stop(config, out, 2)
    before = sorted(path.name for path in out.rglob("*"))
    with Claim(out) as first:
        first.make()
        first.make()  # twice is once
        for resume in (True, False):
            with pytest.raises(RunError, match=r"another training is at work here .*/run\); wait for it"):
                train(config, out, resume=resume)
        assert sorted(path.name for path in out.rglob("*")) == before
    train(config, out, resume=True)
    assert newest(out).name == "step-4"
    train(config, tmp_path / "whole")
    same_run(tmp_path / "whole", out)


def test_a_directory_is_claimed_when_it_is_there(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "run"
    with Claim(place) as claim:
        claim.make()
        assert not place.exists()
        claim.make(create=True)
        with Claim(place) as other, pytest.raises(RunError):
            other.make()
    with Claim(place) as again:
        again.make()


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with Claim(tmp_path / "file" / "run") as claim, pytest.raises(UserError, match="cannot write"):
        claim.make(create=True)
    assert os.listdir(tmp_path) == ["file"]
