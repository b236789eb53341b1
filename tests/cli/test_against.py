"""`evaluate --against`, the worst examples, and what is out of the ordinary. Knows files of pairs and outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_process import Command

from eyeline.evaluation import diagnosis
from toy_runs import ToyRuns, reversal, write_pairs


@pytest.fixture
def pairs(toys: ToyRuns) -> str:
    return toys.pairs("against", reversal(20, 11))


def said(eyeline: Command, toys: ToyRuns, run: str) -> list[str]:
    given = "".join(f"{source}\n" for source, _ in reversal(20, 11)).encode()
    return eyeline("predict", toys.path(run), stdin=given).lines


def test_a_run_and_its_outputs_in_a_file_are_the_same_opponent(
    eyeline: Command, toys: ToyRuns, pairs: str, tmp_path: Path
) -> None:
    file = tmp_path / "seq2seq.txt"
    file.write_text("".join(f"{line}\n" for line in said(eyeline, toys, "seq2seq")), encoding="utf-8")
    found = []
    for other in (toys.path("seq2seq"), file):
        result = json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--against", other, "--json", "-").well().out)
        assert result["against"].pop("name") == str(other)
        found.append(result["against"])
    assert found[0] == found[1]
    alone = json.loads(eyeline("evaluate", toys.path("seq2seq"), pairs, "--json", "-").out)
    ours = json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-").out)
    for name, compared in found[0]["metrics"].items():
        assert compared["score"] == pytest.approx(alone["metrics"][name]["score"])
        assert compared["delta"] == pytest.approx(ours["metrics"][name]["score"] - compared["score"])
        assert compared["low"] <= compared["delta"] + 1e-9
        assert 0 < compared["p_randomisation"] <= 1


def test_a_run_against_itself_is_no_better(eyeline: Command, toys: ToyRuns, pairs: str) -> None:
    done = eyeline("evaluate", toys.path("luong"), pairs, "--against", toys.path("luong"))
    assert any("20 outputs are the same" in line for line in done.lines)
    assert not any("better" in line for line in done.lines)


@pytest.mark.parametrize(
    ("content", "message"), [(b"one\n", "1 outputs for 20 pairs"), (b"\xff\n", "not UTF-8"), (None, "no such")]
)
def test_an_opponent_that_is_none(
    eyeline: Command, toys: ToyRuns, pairs: str, tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "outputs.txt"
    if content is not None:
        file.write_bytes(content)
    assert message in eyeline("evaluate", toys.path("luong"), pairs, "--against", file).error.lower().replace("utf-8", "UTF-8")


def test_the_worst_are_the_furthest_off(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    gold = reversal(6, 12)
    shifted = [*gold[:2], (gold[2][0], "x y z x y z x y z"), *gold[3:]]
    file = write_pairs(tmp_path / "pairs.tsv", shifted)
    result = json.loads(eyeline("evaluate", toys.path("luong"), file, "--json", "-", "--examples", "1").well().out)
    (one,) = result["worst"]
    assert (one["line"], one["reference"], one["source"]) == (3, "x y z x y z x y z", gold[2][0])
    assert json.loads(eyeline("evaluate", toys.path("luong"), file, "--json", "-", "--examples", "0").out)["worst"] == []
    assert any(line == "  wanted x y z x y z x y z" for line in eyeline("evaluate", toys.path("luong"), file).lines)


PLAIN: dict[str, Any] = {
    "n": 100,
    "loss": 0.1,
    "repetition_rate": 0.0,
    "unfinished": 0,
    "length_ratio": 1.0,
    "unknown_rate": {"source": 0.0, "target": 0.0},
    "unknown_output_rate": 0.0,
    "copy_rate": {"lines": 0.0, "words": 0.5, "reference_words": 0.5},
}


@pytest.mark.parametrize(
    ("unusual", "begins"),
    [
        ({}, []),
        ({"loss": 3.0}, ["under-trained: a loss of 3.00"]),
        ({"repetition_rate": 0.3}, ["looping: 30.0 %"]),
        ({"unfinished": 7}, ["unfinished: 7.0 %"]),
        ({"length_ratio": 0.6}, ["too short: outputs have 60 %"]),
        ({"length_ratio": 1.4}, ["too long: outputs have 140 %"]),
        (
            {"unknown_rate": {"source": 0.2, "target": 0.0}, "unknown_output_rate": 0.1},
            ["unknown-heavy: 20.0 %", "unknown-heavy: 10"],
        ),
        ({"copy_rate": {"lines": 0.5, "words": 0.5, "reference_words": 0.5}}, ["copying: 50.0 %"]),
    ],
)
def test_what_is_out_of_the_ordinary_is_told_and_nothing_else(toys: ToyRuns, unusual: dict[str, Any], begins: list[str]) -> None:
    measured = type("Measured", (), {"result": {**PLAIN, **unusual}})()
    lines = [line for line in diagnosis.diagnose(toys.predictor("luong"), measured) if "still falling" not in line]
    assert len(lines) == len(begins)
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True))


def test_a_loss_that_was_still_falling(tmp_path: Path) -> None:
    events = [{"step": n, "split": "valid", "loss": loss} for n, loss in enumerate((3.0, 2.0, 1.5))]
    lines = ["", "{cut sho", '{"step": 1, "split": "train", "loss": 9}', *(json.dumps(event) for event in events)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert diagnosis.validation_losses(tmp_path) == [3.0, 2.0, 1.5]
    assert diagnosis.validation_losses(tmp_path / "none") == []
