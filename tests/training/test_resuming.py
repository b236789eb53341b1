"""A run that was stopped and went on is the run that never stopped: weights, moments, random states, order, counters, events."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_runs import (
    MODELS,
    Listener,
    checkpoint_names,
    events,
    newest,
    reversal,
    same_run,
    settings,
    train,
    train_and_stop,
    write_pairs,
)

from eyeline.data.batches import epoch_batches
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, RunError

ODD = {"steps": 24, "accumulate": 2, "label_smoothing": 0.1, "validate_every": 6}  # windows of two, the last of an epoch of one


@pytest.mark.parametrize("model", MODELS)
def test_stopped_in_mid_epoch_and_resumed_is_the_same_run(tmp_path: Path, model: str) -> None:
    """Dropout 0.2, two batches an update, stopped by SIGTERM after update 7 and again after update 13."""
    config = settings(tmp_path, model, training=ODD)
    train(config, tmp_path / "whole")
    assert "at step 7; the state is saved" in train_and_stop(config, tmp_path / "parts", 7)
    position = json.loads((newest(tmp_path / "parts") / "state.json").read_bytes())["position"]
    assert position["batch"] > 0, "the stop is in the middle of an epoch"
    assert "at step 13" in train_and_stop(config, tmp_path / "parts", 6, resume=True)
    assert "going on from step 13" in train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    "training",
    [
        {"schedule": "linear", "warmup_steps": 5},
        {"schedule": "inverse-sqrt", "warmup_steps": 5, "optimizer": "adamw", "weight_decay": 0.1},
        {"schedule": "plateau", "decay_patience": 0, "validate_every": 3, "learning_rate": 0.1},
        {"steps": None, "epochs": 3, "schedule": "linear"},
        {"metric": "chrf", "validate_every": 4},
    ],
    ids=lambda training: training.get("schedule", training.get("metric")),
)
def test_schedules_bounds_and_metrics_go_on(tmp_path: Path, training: dict[str, Any]) -> None:
    config = settings(tmp_path, training=training)
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 11)
    train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")


def test_n_steps_and_n_more_are_twice_n(tmp_path: Path) -> None:
    train(settings(tmp_path, training={"steps": 20}), tmp_path / "whole")
    train(settings(tmp_path, training={"steps": 10}), tmp_path / "raised")
    train(settings(tmp_path, training={"steps": 20}), tmp_path / "raised", resume=True)
    train(settings(tmp_path, training={"steps": 10}), tmp_path / "more")
    train(settings(tmp_path, training={"steps": 10}), tmp_path / "more", resume=True, more_steps=10)
    same_run(tmp_path / "whole", tmp_path / "raised")
    same_run(tmp_path / "whole", tmp_path / "more")


def test_a_bound_between_two_events_only_adds_its_closing_event(tmp_path: Path) -> None:
    train(settings(tmp_path, training={"steps": 20}), tmp_path / "whole")
    train(settings(tmp_path, training={"steps": 13}), tmp_path / "parts")
    closing = [event for event in events(tmp_path / "parts") if event["step"] == 13]
    assert [event["split"] for event in closing] == ["valid", "train"]
    train(settings(tmp_path, training={"steps": 20}), tmp_path / "parts", resume=True)
    assert [event for event in events(tmp_path / "parts") if event["step"] != 13] == events(tmp_path / "whole")


def test_training_and_validation_do_not_disturb_each_other(tmp_path: Path) -> None:
    """How often is validated, logged or saved changes no weight."""
    for name, every in (("often", 1), ("seldom", 17)):
        training = {"steps": 17, "validate_every": every, "checkpoint_every": every, "metric": "exact_match"}
        train(settings(tmp_path, training=training), tmp_path / name, reporter=Listener(verbosity=-1))
    states = [newest(tmp_path / name) / "model.safetensors" for name in ("often", "seldom")]
    assert states[0].read_bytes() == states[1].read_bytes()
    train_events = [events(tmp_path / name, "train") for name in ("often", "seldom")]
    assert train_events[0] == train_events[1]
    assert [event["step"] for event in train_events[0]] == [10, 17]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_command_ends_with_130_and_goes_on(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": 1200, "validate_every": 1200, "checkpoint_every": 400})
    (tmp_path / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
    command = [sys.executable, "-m", "eyeline", "train", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "run")]
    process = subprocess.Popen([*command, "--device", "cpu"], stderr=subprocess.PIPE, text=True, encoding="utf-8")
    journal = tmp_path / "run" / "metrics.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    said = process.communicate()[1]
    assert process.returncode == 130, said
    last = said.rstrip("\n").split("\n")[-1]
    step = int(newest(tmp_path / "run").name.removeprefix("step-"))
    assert 30 <= step < 1200
    assert last == f"interrupted: stopped by SIGTERM at step {step}; the state is saved, and --resume goes on"
    short = settings(tmp_path, training={"steps": step + 10, "validate_every": 1200, "checkpoint_every": 400})
    train(short, tmp_path / "run", resume=True)
    train(short, tmp_path / "whole")
    same_run(tmp_path / "whole", tmp_path / "run")


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    def stop(step: int) -> None:
        if step == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        train(settings(tmp_path), tmp_path / "run", reporter=Listener(stop))
    assert signal.getsignal(signal.SIGTERM) is before


def test_resuming_what_was_never_begun_starts(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": 5})
    train(config, tmp_path / "fresh")
    train(config, tmp_path / "resumed", resume=True)
    same_run(tmp_path / "fresh", tmp_path / "resumed")


def test_killed_before_the_first_checkpoint_starts_again(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": 12})
    train(config, tmp_path / "whole")

    def stop(step: int) -> None:
        if step == 3:
            raise ZeroDivisionError  # nothing saves the state

    with pytest.raises(ZeroDivisionError):
        train(config, tmp_path / "run", reporter=Listener(stop))
    assert not (tmp_path / "run" / "checkpoints").exists()
    train(config, tmp_path / "run", resume=True)
    same_run(tmp_path / "whole", tmp_path / "run")


# ---- what is refused ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run in the middle; whatever the tests try with it, it goes on as if they had not."""
    folder = tmp_path_factory.mktemp("begun")
    train_and_stop(settings(folder), folder / "run", 7)
    yield folder
    train(settings(folder), folder / "run", resume=True)
    train(settings(folder), folder / "whole")
    same_run(folder / "whole", folder / "run")


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"model": {"decoder_size": 13}}, r"model\.decoder_size=13"),
        ({"model": {"dropout": 0.1}}, r"model\.dropout=0\.1"),
        ({"tokenizer": {"kind": "character"}}, r"tokenizer\.kind=character"),
        ({"data": {"lowercase": True}}, r"data\.lowercase=True"),
        ({"data": {"train": ["other.tsv"]}}, r"data\.train=\['other\.tsv'\]"),
        ({"seed": 2}, r"seed=2.*begun with 1"),
    ],
    ids=str,
)
def test_a_run_goes_on_with_its_own_settings(begun: Path, sections: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        train(settings(begun, **sections), begun / "run", resume=True)


def test_another_architecture_is_refused(begun: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.architecture=luong"):
        train(settings(begun, "luong"), begun / "run", resume=True)


def test_files_whose_pairs_have_changed_are_refused(begun: Path) -> None:
    """The order of batches would be another one, and the run neither the old nor a new one."""
    kept = (begun / "train.tsv").read_bytes()
    write_pairs(begun / "train.tsv", reversal(39))
    with pytest.raises(ConfigError, match=r"training pairs are not those that this run was begun with \(data\.train\)"):
        train(settings(begun), begun / "run", resume=True)
    (begun / "train.tsv").write_bytes(kept)


def test_a_run_that_is_there_is_not_overwritten(begun: Path) -> None:
    with pytest.raises(RunError, match=r"there is a run here already .*run.*--resume"):
        train(settings(begun), begun / "run")


def test_more_steps_needs_a_run(tmp_path: Path) -> None:
    for resume in (False, True):
        with pytest.raises(ConfigError, match=r"no run to go on with \(--more-steps 5\)"):
            train(settings(tmp_path), tmp_path / "run", resume=resume, more_steps=5)
    assert not (tmp_path / "run").exists()


def test_checkpoints_without_settings_are_not_taken_for_a_new_run(tmp_path: Path) -> None:
    train(settings(tmp_path, training={"steps": 5}), tmp_path / "run")
    (tmp_path / "run" / "config.yaml").unlink()
    for resume in (False, True):
        with pytest.raises(RunError, match=r"checkpoints here, but no config\.yaml"):
            train(settings(tmp_path), tmp_path / "run", resume=resume)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="a file is in the way"):
        train(settings(tmp_path), tmp_path / "file")


# ---- what may change ----------------------------------------------------------------------------------------------------


def test_test_pairs_and_search_may_change(tmp_path: Path) -> None:
    train_and_stop(settings(tmp_path), tmp_path / "run", 7)
    train(settings(tmp_path, data={"test": ["other.tsv"]}, search={"beam_size": 2}), tmp_path / "run", resume=True)
    assert "beam_size: 2" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")


def test_other_batch_tokens_begin_the_epoch_anew(tmp_path: Path) -> None:
    """Positions in an order that is no more mean nothing; larger batches would even end the epoch before that position."""
    train_and_stop(settings(tmp_path), tmp_path / "run", 5)
    said = train(settings(tmp_path, training={"batch_tokens": 200, "steps": 8}), tmp_path / "run", resume=True)
    assert "other batches with the new training.batch_tokens: epoch 0 begins anew" in said
    assert checkpoint_names(tmp_path / "run") == ["step-5", "step-8"]
    position = json.loads((newest(tmp_path / "run") / "state.json").read_bytes())["position"]
    ids = [len(source.split()) + 1 for source, _ in reversal()]
    batches = len(epoch_batches(ids, ids, 200, 1, 0))
    assert batches < 5
    assert position["epoch"] * batches + position["batch"] == 3


def test_another_metric_forgets_what_was_best(tmp_path: Path) -> None:
    """A loss of 2 is not compared with a score of 40."""
    train(settings(tmp_path, training={"steps": 10}), tmp_path / "run")
    said = train(settings(tmp_path, training={"steps": 20, "metric": "chrf"}), tmp_path / "run", resume=True)
    assert "the metric is now chrf: what was best by loss is forgotten" in said
    progress = json.loads((newest(tmp_path / "run") / "state.json").read_bytes())["progress"]
    assert progress["metric"] == "chrf"
    assert progress["best_step"] == 20
    assert progress["best"] == pytest.approx(events(tmp_path / "run", "valid")[-1]["chrf"], abs=1e-4)


def test_every_pair_is_used_once_an_epoch(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"steps": None, "epochs": 2, "accumulate": 3})
    train(config, tmp_path / "run")
    tokens = sum(len(target.split()) + 1 for _, target in reversal())
    assert events(tmp_path / "run", "train")[-1]["target_tokens"] == 2 * tokens
    corpus = Corpus.of(*[[list(range(len(source.split()))) for source, _ in reversal()]] * 2)
    sizes = [len(epoch_batches(corpus.source_lengths, corpus.target_lengths, 36, 1, epoch)) for epoch in (0, 1)]
    assert events(tmp_path / "run", "valid")[-1]["step"] == sum(-(-size // 3) for size in sizes)
