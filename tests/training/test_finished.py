"""A finished run that is asked to go on says so and touches nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_runs import Listener, checkpoint_names, events, newest, settings, train

import eyeline


def listing(run: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder with its time of change and size."""
    return {str(path.relative_to(run)): (path.stat().st_mtime_ns, path.stat().st_size) for path in [run, *run.rglob("*")]}


BOUNDS: list[tuple[dict[str, Any], str]] = [
    ({"steps": 12}, "12 steps"),
    ({"steps": None, "epochs": 1}, "1 epochs"),
    ({"steps": None, "for": "0.2s"}, "0.2 s"),
    (
        {"steps": 40, "validate_every": 1, "patience": 1, "learning_rate": 1.0},
        "1 validations in a row without improvement of loss",
    ),
]


@pytest.mark.parametrize(("training", "reason"), BOUNDS)
def test_it_says_so_and_writes_nothing(tmp_path: Path, training: dict[str, Any], reason: str) -> None:
    """Not even what a vanished data file would be needed for."""
    config = settings(tmp_path, training=training)
    train(config, tmp_path / "run")
    step = newest(tmp_path / "run").name.removeprefix("step-")
    before = listing(tmp_path / "run")
    (tmp_path / "train.tsv").unlink()
    said = train(config, tmp_path / "run", resume=True)
    assert said == f"{tmp_path / 'run'} is finished at step {step} after {reason}; nothing to do (--more-steps N adds to it)\n"
    assert listing(tmp_path / "run") == before
    assert train(config, tmp_path / "run", resume=True, reporter=Listener(verbosity=-1)) == ""


def test_a_lower_bound_is_reached_too(tmp_path: Path) -> None:
    train(settings(tmp_path, training={"steps": 12}), tmp_path / "run")
    before = listing(tmp_path / "run")
    assert "is finished at step 12 after 5 steps" in train(
        settings(tmp_path, training={"steps": 5}), tmp_path / "run", resume=True
    )
    assert listing(tmp_path / "run") == before


def test_more_steps_add_to_what_was_made(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": None, "epochs": 1})
    train(config, tmp_path / "run")
    made = int(newest(tmp_path / "run").name.removeprefix("step-"))
    for number in (1, 2):
        said = train(config, tmp_path / "run", resume=True, more_steps=3)
        assert f"done after {made + 3 * number} steps" in said
        assert newest(tmp_path / "run").name == f"step-{made + 3 * number}"
    assert f"steps: {made + 6}" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    assert events(tmp_path / "run")[-1]["step"] == made + 6


def test_killed_between_the_last_checkpoint_and_the_card(tmp_path: Path) -> None:
    """What is missing of a finished run is written, and no update made."""
    config = settings(tmp_path, training={"steps": 12})
    train(config, tmp_path / "run")
    card, weights = (tmp_path / "run" / "README.md").read_bytes(), (newest(tmp_path / "run") / "model.safetensors").read_bytes()
    (tmp_path / "run" / "README.md").unlink()
    train(config, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "README.md").read_bytes() == card
    assert (newest(tmp_path / "run") / "model.safetensors").read_bytes() == weights
    assert checkpoint_names(tmp_path / "run") == ["step-10", "step-12"]


def test_without_validation_the_newest_weights_are_kept(tmp_path: Path) -> None:
    """After a stop as well as at the end; never those of an earlier bound."""
    from small_runs import train_and_stop

    config = settings(tmp_path, data={"valid": []}, training={"steps": 20})
    train_and_stop(config, tmp_path / "run", 3)
    for resume_to in (3, 20):
        run = tmp_path / "run"
        if resume_to == 20:
            assert "no validation pairs: the last weights are kept" in train(config, run, resume=True)
        assert newest(run).name == f"step-{resume_to}"
        from safetensors.torch import load_file

        best, last = load_file(run / "model.safetensors"), load_file(newest(run) / "model.safetensors")
        assert all(bool((best[name] == last[name]).all()) for name in last)
        assert eyeline.load(run).predict(["a b c"])[0].source == "a b c"
    assert "best validation | not measured" in (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
