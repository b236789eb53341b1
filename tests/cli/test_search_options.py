"""Options of search as a user types them: files of prefixes and terms, samples, ensembles, unknown words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns

GIVEN = b"a b c\n\nd\n"


def test_prefixes_from_a_file(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "prefixes.txt"
    file.write_text("f f\n\n\n")
    lines = eyeline("predict", toys.path("luong"), "--prefix", file, stdin=GIVEN).lines
    assert lines[0].startswith("f f")
    assert lines[1:] == ["", "d"]
    file.write_text("f f\n")
    assert (
        "there are 1 prefixes, and more sources (standard input:2)"
        in eyeline("predict", toys.path("luong"), "--prefix", file, stdin=GIVEN).err
    )


def test_a_terminology_from_a_file(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("d\tf f\nc\tb\tforbid\n")
    lines = eyeline("predict", toys.path("luong"), "--constraints", file, "--max-length", "9", stdin=GIVEN).lines
    assert "b" not in lines[0].split()
    assert "f f" in lines[2]
    file.write_text("d\n")
    assert f"({file}:1)" in eyeline("predict", toys.path("luong"), "--constraints", file, stdin=GIVEN).error


def test_samples_and_the_least_risk(eyeline: Command, toys: ToyRuns) -> None:
    def say(*options: str) -> list[str]:
        return eyeline("predict", toys.path("luong"), "--max-length", "9", *options, stdin=GIVEN).lines

    hot = ("--sampling", "top-k=20,temperature=4")
    assert say(*hot, "--seed", "3") == say(*hot, "--seed", "3") != say(*hot, "--seed", "4")
    assert len(say(*hot, "--n-best", "3")) == 9
    assert say("--mbr", "16") == ["c b a", "", "d"]
    assert "did you mean 'top-k'" in eyeline("predict", toys.path("luong"), "--sampling", "topk=3", stdin=GIVEN).error


@pytest.mark.parametrize("mean", ["log", "arithmetic"])
def test_an_ensemble(eyeline: Command, toys: ToyRuns, mean: str) -> None:
    options = ("--ensemble", str(toys.path("luong-again")), "--ensemble-mean", mean)
    (answer,) = eyeline("predict", toys.path("luong"), *options, "--format", "jsonl", stdin=b"a b c\n").well().lines
    pairs = toys.pairs("together", [("a b c", "c b a")])
    (score,) = eyeline("score", toys.path("luong"), pairs, *options).well().lines
    assert float(score) == pytest.approx(json.loads(answer)["score"], abs=1e-4)
    assert (
        "vocabularies differ" in eyeline("predict", toys.path("luong"), "--ensemble", toys.path("strangers"), stdin=GIVEN).error
    )


def test_unknown_words_are_replaced(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    given = b"Zyx123 and McAdam\n"
    assert "<unk>" in eyeline("predict", toys.path("strangers"), stdin=given).lines[0]
    (line,) = eyeline("predict", toys.path("strangers"), "--replace-unknown", stdin=given).lines
    assert "<unk>" not in line
    file = tmp_path / "words.tsv"
    file.write_text("Zyx123\tHerr X\nMcAdam\tHerr X\nand\tHerr X\n")
    (line,) = eyeline("predict", toys.path("strangers"), "--replace-unknown", "--dictionary", file, stdin=given).lines
    assert "Herr X" in line
    file.write_text("Zyx123\n")
    assert (
        f"({file}:1)" in eyeline("predict", toys.path("strangers"), "--replace-unknown", "--dictionary", file, stdin=given).error
    )


def test_patience_is_a_setting_and_an_option(eyeline: Command, toys: ToyRuns) -> None:
    """A run says 2 where nothing else was said; what it says now and then another way is the same for a run that has learnt."""
    answers = [eyeline("predict", toys.path("luong"), *more, stdin=GIVEN).lines for more in ([], ["--patience", "50"])]
    assert answers[0] == answers[1]
    assert "patience: 2.0" in (toys.path("luong") / "config.yaml").read_text()
    assert "patience" in eyeline("predict", toys.path("luong"), "--patience", "0", stdin=GIVEN).error
