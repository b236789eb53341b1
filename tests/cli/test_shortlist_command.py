"""`eyeline shortlist`, and `--shortlist` of what predicts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns, reversal

LINES = b"a b c\n\nf e d c b a\n"


@pytest.fixture
def run(toys: ToyRuns, tmp_path: Path) -> Path:
    """A run of its own, to be written into."""
    return Path(shutil.copytree(toys.path("bahdanau"), tmp_path / "run"))


def test_made_checked_and_used(eyeline: Command, toys: ToyRuns, run: Path, tmp_path: Path) -> None:
    pairs = toys.pairs("reversal.more", reversal(60, 5))
    lines = tmp_path / "lines.txt"
    lines.write_bytes(LINES)
    done = eyeline("shortlist", run, pairs, "--check", lines, "--likely", "9", "--threads", "1").well()
    assert "of 10 source tokens have likely outputs, from 60 pairs" in done.err
    assert "the same output for 3 of 3 lines (100.0 %)" in done.err
    assert f"written: {run / 'shortlist.safetensors'}" in done.err
    plain, short = (eyeline("predict", run, *more, "--threads", "1", stdin=LINES).well() for more in ([], ["--shortlist"]))
    assert short.lines == plain.lines
    assert "exact_match" in eyeline("evaluate", run, pairs, "--shortlist", "--threads", "1").well().out.decode()


def test_a_file_gone_on_with_has_one_shortlist(
    eyeline: Command, toys: ToyRuns, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one might answer otherwise, so that a file would be half of this and half of that."""
    monkeypatch.setattr("eyeline.predictor.inputs.CHUNK", 2)  # lines that are answered together
    pairs, out = toys.pairs("reversal.more", reversal(60, 5)), tmp_path / "out.txt"
    lines = tmp_path / "lines.txt"
    lines.write_bytes(LINES + b"a b \xff\n")
    eyeline("shortlist", run, pairs, "--threads", "1").well()
    predict = ["predict", run, lines, "-o", out, "--shortlist", "--threads", "1"]
    assert "2 lines are kept" in eyeline(*predict).error
    eyeline("shortlist", run, pairs, "--likely", "1", "--always", "0", "--threads", "1").well()
    lines.write_bytes(LINES)
    assert "--shortlist: the files are not those that this was begun with" in eyeline(*predict, "--resume").error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "--shortlist"], "the run has no shortlist"),
        (["predict", "--shortlist", "--engine", "ctranslate2"], "CTranslate2 does not know this (--shortlist)"),
        (["evaluate", "PAIRS", "--shortlist"], "the run has no shortlist"),
        (["shortlist", "PAIRS", "--likely", "0"], "--likely"),
        (["shortlist", "nowhere.tsv"], "nowhere.tsv"),
    ],
)
def test_what_cannot_be_is_said(eyeline: Command, toys: ToyRuns, run: Path, words: list[str], said: str) -> None:
    command, *others = [toys.pairs("reversal.more", reversal(60, 5)) if word == "PAIRS" else word for word in words]
    assert said in eyeline(command, run, *others, stdin=LINES).error
    assert not (run / "shortlist.safetensors").exists()
