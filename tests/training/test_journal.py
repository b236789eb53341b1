"""metrics.jsonl and TensorBoard's files: each event once, what is no number as null, cut lines forgotten, a full disk told."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import Listener, events, settings, train, train_and_stop

from eyeline.errors import UserError
from eyeline.training.journal import Journal


def logged(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_bytes().decode().split("\n")[:-1]]


def test_an_event_is_one_object_a_line_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0)
    journal.log("train", 1, {"loss": 0.123456789, "lr": 1e-9, "signature": "ß|한\u2028", "n": 3})
    (event,) = logged(tmp_path)  # before it is closed
    assert event == {"step": 1, "split": "train", "loss": 0.1234568, "lr": 1e-9, "signature": "ß|한\u2028", "n": 3}
    journal.close()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(tmp_path: Path, bad: float) -> None:
    journal = Journal(tmp_path, 0)
    journal.log("valid", 1, {"loss": bad})
    journal.close()
    text = (tmp_path / "metrics.jsonl").read_text()
    assert text == '{"step": 1, "split": "valid", "loss": null}\n'


def test_events_after_the_step_and_cut_lines_are_dropped(tmp_path: Path) -> None:
    whole = [{"step": step, "split": split, "loss": 1.0} for step in (10, 20, 30) for split in ("train", "valid")]
    lines = "".join(json.dumps(event) + "\n" for event in whole)
    for tail in ('{"step": 5, "split": "tr', "\0\0\0\0", "null\n", "[]\n", '{"loss": 1}\n', "", '{"step": "x"}\n', "\xff"):
        (tmp_path / "metrics.jsonl").write_bytes((lines + tail).encode("latin-1"))
        journal = Journal(tmp_path, 20)
        journal.log("train", 21, {"loss": 2.0})
        journal.close()
        assert logged(tmp_path) == [*whole[:4], {"step": 21, "split": "train", "loss": 2.0}]


def test_a_new_run_begins_an_empty_journal(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "split": "train"}\n')
    Journal(tmp_path, 0).close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == b""


def test_a_resumed_run_has_each_event_once(tmp_path: Path) -> None:
    """Killed after events were logged that its newest checkpoint knows nothing of, with half a line at the end."""
    config = settings(tmp_path, training={"steps": 30, "checkpoint_every": 1000, "validate_every": 15})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "run", 8)
    with (tmp_path / "run" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 10, "split": "train", "loss": 99.0}\n{"step": 15, "split": "va')
    train(config, tmp_path / "run", resume=True)
    assert events(tmp_path / "run") == events(tmp_path / "whole")


def test_events_carry_what_the_contract_names(tmp_path: Path) -> None:
    train(settings(tmp_path, training={"metric": "bleu"}), tmp_path / "run")
    for event in logged(tmp_path / "run"):
        common = {"step", "split", "time_s", "loss"}
        own = (
            {"epoch", "tokens_per_s", "lr", "target_tokens"}
            if event["split"] == "train"
            else {"perplexity", "n", "bleu", "signature"}
        )
        assert event.keys() == common | own
        assert event["time_s"] >= 0


class FullDisk:
    """A file that takes half of what it is given, and then nothing."""

    def __init__(self) -> None:
        self.room = 10

    def write(self, content: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken, self.room = min(self.room, len(content)), 0
        return taken

    def close(self) -> None:
        pass


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0)
    journal._file.close()
    journal._file = FullDisk()  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(UserError) as caught:
            journal.log("train", 1, {"loss": 1.0})
        assert str(caught.value) == f"cannot write: No space left on device ({tmp_path / 'metrics.jsonl'})"
    journal.close()


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = accumulator.EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    return {tag: [(event.step, event.value) for event in board.Scalars(tag)] for tag in board.Tags()["scalars"]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_can_read_what_was_written(tmp_path: Path) -> None:
    """The same numbers as in the journal, each once, also for a run that was killed."""
    pytest.importorskip("tensorboard")
    config = settings(tmp_path, training={"steps": 30, "checkpoint_every": 1000, "validate_every": 30})
    train_and_stop(config, tmp_path / "run", 8)

    def kill(step: int) -> None:
        if step == 6:  # after the event of step 10, which no checkpoint knows of
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(config, tmp_path / "run", resume=True, reporter=Listener(kill))
    train(config, tmp_path / "run", resume=True)
    found = scalars(tmp_path / "run")
    wanted = [(event["step"], event["loss"]) for event in events(tmp_path / "run", "train")]
    assert [step for step, _ in wanted] == [10, 20, 30]
    assert found["train/loss"] == [(step, pytest.approx(loss, rel=1e-6)) for step, loss in wanted]
    assert {"train/lr", "train/tokens_per_s", "valid/loss", "valid/perplexity"} <= found.keys()


def test_without_tensorboard_one_note_and_all_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    said = train(settings(tmp_path), tmp_path / "run")
    assert said.count("TensorBoard is not installed") == 1
    assert "pip install 'eyeline[plots]'" in said
    assert not (tmp_path / "run" / "tensorboard").exists()
    assert len(events(tmp_path / "run")) == 4
