"""Learning rates worked out by hand, and bounds counted in steps, epochs and seconds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import Listener, events, newest, reversal, settings, train, write_pairs

from eyeline.config import TrainingSettings
from eyeline.data.batches import epoch_batches
from eyeline.training.schedules import learning_rate


def rates(total: int | None, steps: list[int], **values: Any) -> list[float]:
    given = TrainingSettings.model_validate({"learning_rate": 8.0, **values})
    return [learning_rate(given, step, total) for step in steps]


@pytest.mark.parametrize(
    ("values", "total", "steps", "wanted"),
    [
        ({"schedule": "constant"}, None, [1, 2, 99], [8, 8, 8]),
        ({"schedule": "constant", "warmup_steps": 4}, None, [1, 2, 3, 4, 5], [2, 4, 6, 8, 8]),
        ({"schedule": "plateau", "warmup_steps": 2}, None, [1, 2, 3], [4, 8, 8]),
        ({"schedule": "inverse-sqrt", "warmup_steps": 4}, None, [2, 4, 16, 64], [4, 8, 4, 2]),
        ({"schedule": "inverse-sqrt"}, None, [1, 4, 16], [8, 4, 2]),
        ({"schedule": "linear"}, 4, [1, 2, 3, 4, 5], [8, 6, 4, 2, 0]),
        ({"schedule": "linear", "warmup_steps": 2}, 5, [1, 2, 3, 4, 5, 6], [4, 8, 6, 4, 2, 0]),
        ({"schedule": "linear", "warmup_steps": 9}, 3, [1, 2, 3], [8 / 9, 16 / 9, 24 / 9]),
        ({"schedule": "linear"}, 1, [1, 2, 3], [8, 0, 0]),
    ],
)
def test_by_hand(values: dict[str, Any], total: int | None, steps: list[int], wanted: list[float]) -> None:
    assert rates(total, steps, **values) == pytest.approx(wanted)


@given(st.integers(1, 60), st.integers(0, 70), st.sampled_from(["constant", "inverse-sqrt", "linear", "plateau"]))
def test_a_rate_rises_to_its_peak_and_never_again(total: int, warm: int, schedule: str) -> None:
    seen = rates(total, list(range(1, total + 1)), schedule=schedule, warmup_steps=warm)
    assert all(0 < rate <= 8 for rate in seen)
    top = max(1, min(warm, total)) - 1
    assert seen[: top + 1] == sorted(seen[: top + 1])
    assert seen[top:] == sorted(seen[top:], reverse=True)
    if warm <= total:
        assert seen[top] == pytest.approx(8)


LINES = reversal(60, longest=40)  # long enough for epochs to have unequal numbers of batches


def windows(accumulate: int) -> list[int]:
    """Updates in each of four epochs: the last window of an epoch may be a short one."""
    lengths = [len(source.split()) + 1 for source, _ in LINES]
    return [-(-len(epoch_batches(lengths, lengths, 180, 1, epoch)) // accumulate) for epoch in range(4)]


@pytest.mark.parametrize(("accumulate", "schedule"), [(1, "constant"), (1, "linear"), (3, "linear"), (50, "linear")])
def test_epochs_are_counted_in_windows(tmp_path: Path, accumulate: int, schedule: str) -> None:
    """And the linear schedule knows the sum: the last update has the smallest rate above zero."""
    write_pairs(tmp_path / "train.tsv", LINES)
    write_pairs(tmp_path / "valid.tsv", LINES[:5])
    values = {"epochs": 4, "accumulate": accumulate, "schedule": schedule, "batch_tokens": 180}
    train(settings(tmp_path, training={"steps": None, "learning_rate": 0.01, **values}), tmp_path / "run")
    assert len(set(windows(1))) > 1
    total = sum(windows(accumulate))
    assert newest(tmp_path / "run").name == f"step-{total}"
    last = events(tmp_path / "run", "train")[-1]
    assert last["epoch"] == 4
    assert last["lr"] == pytest.approx(0.01 / total if schedule == "linear" else 0.01, rel=1e-5)


def seconds(run: Path) -> float:
    """What a run's newest checkpoint says it took."""
    return float(json.loads((newest(run) / "state.json").read_bytes())["position"]["seconds"])


def test_a_duration_ends_the_run_in_time(tmp_path: Path) -> None:
    began = time.monotonic()
    config = settings(tmp_path, training={"steps": None, "for": "1s", "validate_every": 10**6, "checkpoint_every": 10**6})
    said = train(config, tmp_path / "run")
    assert "done after 1 s" in said
    assert time.monotonic() - began < 10
    assert 1 <= seconds(tmp_path / "run") < 5


def test_a_duration_counts_all_sessions(tmp_path: Path) -> None:
    """Stopped after about half of it, a run has only the rest left."""
    config = settings(tmp_path, training={"steps": None, "for": "1s", "validate_every": 10**6, "checkpoint_every": 1})
    began = time.monotonic()

    def kill(step: int) -> None:
        if time.monotonic() - began > 0.6:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(config, tmp_path / "run", reporter=Listener(kill))
    middle = time.monotonic()
    used = middle - began
    train(config, tmp_path / "run", resume=True)
    assert time.monotonic() - middle < 10
    assert used < 10
    assert 1 <= seconds(tmp_path / "run") < 5


def test_without_a_bound_there_are_twenty_epochs(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": None, "batch_tokens": 4096, "validate_every": 10**6})
    train(config, tmp_path / "run")
    assert newest(tmp_path / "run").name == "step-20"
    assert "epochs: 20" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
