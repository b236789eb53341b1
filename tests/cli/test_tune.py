"""`eyeline tune`: from a config with ranges to the best config and a table; what the user can mend is one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_process import Command

from eyeline.config import Config
from eyeline.config_yaml import dump_yaml
from toy_runs import reversal, write_pairs


@pytest.fixture
def config(tmp_path: Path) -> Path:
    pairs = [write_pairs(tmp_path / f"{part}.tsv", reversal(lines, lines)) for part, lines in (("train", 16), ("valid", 4))]
    values = {
        "data": {"train": [pairs[0]], "valid": [pairs[1]]},
        "model": {"architecture": "luong", "embedding_size": 6, "encoder_size": 6, "decoder_size": 6},
        "training": {"steps": 2, "metric": "symbol_error_rate"},
        "tune": {"model.dropout": [0.1, 0.4]},
    }
    (tmp_path / "search.yaml").write_text(dump_yaml(values))
    return tmp_path / "search.yaml"


def test_a_search_and_going_on_with_it(eyeline: Command, config: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    study = tmp_path / "study"
    done = eyeline(
        "tune", config, "--out", study, "--trials", "2", "--seed", "5", "--set", "training.steps=3", "--threads", "1"
    ).well()
    assert done.lines[0].split() == ["trial", "symbol_error_rate", "model.dropout"]
    assert done.lines[-1] == "2 trials, 0 of them pruned"
    assert "trial 1: symbol_error_rate " in done.err
    assert f"written: {study / 'best.yaml'}; `eyeline train {study / 'best.yaml'} --out RUN` trains it anew" in done.err
    best = Config.from_yaml(study / "best.yaml")
    assert (best.seed, best.training.steps) == (5, 3)
    more = eyeline("tune", "--out", study, "--resume", "--trials", "3", "-q").well()
    assert (more.lines[-1], more.err) == ("3 trials, 0 of them pruned", "")
    assert "nothing to do" in eyeline("tune", "--out", study, "--resume", "--trials", "3").well().err
    assert "there is a study here already" in eyeline("tune", config, "--out", study).error


def test_mistakes_are_one_line(eyeline: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    assert "--out" in eyeline("tune", config).error
    assert "nothing to tune (CONFIG)" in eyeline("tune", "--out", out).error
    assert "no such config file" in eyeline("tune", tmp_path / "absent.yaml", "--out", out).error
    assert "--for soon" in eyeline("tune", config, "--out", out, "--for", "soon").error
    error = eyeline("tune", config, "--out", out, "--set", "tune={model.dropuot: [0, 1]}").error
    assert f"unknown setting (model.dropuot in {config}); did you mean 'dropout'?" in error
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert eyeline("tune", config, "--out", out).error.endswith("pip install 'eyeline[tune]'")
    assert not out.exists()
