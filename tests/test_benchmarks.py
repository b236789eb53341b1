"""The benchmarks beside peers run on their own side, at tiny sizes. Says nothing of speed."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyeline.predictor import searching
from toy_runs import ToyRuns, reversal

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
NAMES = [
    "training",
    "training_tools",
    "training_works",
    "prediction",
    "prediction_tools",
    "side_by_side",
    "real_lines",
    "refilling",
]
WORKS = ["transformer", "bilstm-additive", "bilstm-luong", "bilstm-luong-fed", "bilstm-bahdanau", "characters-pointer-32"]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield __import__("training")
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def prediction(training: Any) -> Any:
    return __import__("prediction")


@pytest.mark.parametrize("name", [*WORKS, "epoch", "additive-attention"])
def test_a_step_of_each_work(training: Any, name: str) -> None:
    answer = training.answering("eyeline", training.small(training.WORKS[name]), lambda: 0.0)
    first, second = answer(0), answer(0)
    for found in (first, second):
        assert math.isfinite(found["loss"])
        assert min(found["tokens"], found["flops"], found["memory"]) > 0
    assert first["tokens"] == second["tokens"]
    if name != "additive-attention":
        assert first["loss"] != second["loss"], "a step changes weights"


def test_batches_are_full_of_like_lengths_and_the_same_for_all(training: Any) -> None:
    work = replace(training.WORKS["transformer"], pairs=2000)
    made = training.batches(work, training.corpus(work))
    assert made == training.batches(work, training.corpus(work))
    for batch in made:
        longest = 1 + max(len(side) for pair in batch for side in pair)
        assert len(batch) * longest <= 4096
        assert training.tokens(batch) > 2457


def test_arithmetic_is_that_of_the_issue(training: Any) -> None:
    """46 MFLOP a target token in the small Transformer, 279 in the large one, 24 to 26 in the LSTMs."""
    for name, wanted in [("transformer", 46), ("transformer-large", 279), ("bilstm-luong", 24), ("bilstm-luong-fed", 25)]:
        work = replace(training.WORKS[name], pairs=2000)
        pairs = training.corpus(work)
        assert training.flops(work, pairs, "joeynmt") / training.tokens(pairs) / 1e6 == pytest.approx(wanted, rel=0.06)


def test_the_table(training: Any) -> None:
    tools = [training.Tool.__new__(training.Tool) for _ in range(3)]
    for tool, name, seconds in zip(tools, ["eyeline", "other", "missing"], [1.0, 2.0, None], strict=True):
        tool.name, tool.said = name, {"version": "1", "resident": 10e6} if seconds else {"absent": "No module named 'missing'"}
        tool.answers = [{"seconds": seconds, "tokens": 3000, "flops": 5e9, "memory": 50e6}] * 3 if seconds else []
    assert training.row(tools[1], tools[0], 10e9) == "| other 1 | 1,500 | 2.00 | 2.5 | 0.25 | 50 | 40 |"
    assert training.row(tools[0], tools[0], 10e9) == "| eyeline 1 | 3,000 | 1.00 | 5.0 | 0.50 | 50 | 40 |"
    assert training.row(tools[2], tools[0], 10e9) == "| missing | absent: No module named 'missing' | | | | | |"


@pytest.mark.slow
def test_the_command(training: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["training.py", "--small", "--works", "bilstm-luong", "--rounds", "1", "--warm-up", "0", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--tools"])
    training.main()
    said = capfd.readouterr().out
    assert "### bilstm-luong" in said
    assert "| eyeline " in said


def test_every_decoding_says_as_much_as_it_is_asked_for(prediction: Any) -> None:
    for name, work in prediction.WORKS.items():
        work = prediction.small(work)
        answer = prediction.answering("eyeline", work, lambda: 0.0)(1)
        assert answer["sentences"] == work.sentences, name
        assert answer["memory"] > 0


def test_batches_of_sources_have_like_lengths_and_all_of_them(prediction: Any) -> None:
    batches = prediction.sources_of(prediction.small(prediction.WORKS["transformer-greedy"]))
    lengths = [[len(source) for source in batch] for batch in batches]
    assert len(lengths) == prediction.BATCHES
    assert {len(each) for each in lengths} == {4}
    assert [length for each in lengths for length in each] == sorted(length for each in lengths for length in each)
    assert lengths[0][0] < lengths[-1][-1]


def test_the_table_of_predictions(prediction: Any) -> None:
    work = prediction.WORKS["transformer-greedy"]
    tools = [prediction.Tool.__new__(prediction.Tool) for _ in range(3)]
    for tool, name, seconds in zip(tools, ["eyeline", "other", "missing"], [1.2, 2.4, None], strict=True):
        tool.name, tool.said = name, {"version": "1", "resident": 10e6} if seconds else {"absent": "No module named 'missing'"}
        tool.answers = [{"seconds": seconds, "sentences": 64, "flops": 6e9, "memory": 50e6}] * 3 if seconds else []
    assert prediction.row(tools[1], tools[0], work, 10e9) == "| other 1 | 26.7 | 2.00 | 100.0 | 0.25 | 50 | 40 |"
    assert prediction.row(tools[0], tools[0], work, 10e9) == "| eyeline 1 | 53.3 | 1.00 | 50.0 | 0.50 | 50 | 40 |"
    assert prediction.row(tools[2], tools[0], work, 10e9) == "| missing | absent: No module named 'missing' | | | | | |"


def test_arithmetic_of_predictions(prediction: Any) -> None:
    """Counted by hand of one layer of width 2: a source of 2 tokens and END, two steps, of one hypothesis and of three."""
    tools = __import__("prediction_tools")
    shape = tools.Work("transformer", (), 0, layers=1, size=2, inner=4, vocabulary=10)
    encoder, keys = 3 * 2 * (4 * 4 + 2 * 2 * 4) + 4 * 3 * 3 * 2, 3 * 2 * 2 * 2 * 2
    steps = (
        2 * (2 * (6 * 4 + 2 * 2 * 4) + 4 * 3 * 2 + 2 * 2 * 10) + 2 * 2 * 2 * 2
    )  # the n-th step looks at n positions: half of T²
    for beam in (1, 3):
        work = tools.Decoding(shape, (), 1, 1, beam, 2)
        assert tools.flops(work, [[4, 5]], "eyeline-int8") == encoder + keys + beam * steps


@pytest.mark.slow
def test_the_command_of_predictions(prediction: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["prediction.py", "--small", "--works", "bilstm-luong-beam", "--rounds", "1", "--warm-up", "0", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--tools"])
    prediction.main()
    said = capfd.readouterr().out
    assert "### bilstm-luong-beam" in said
    assert "| eyeline " in said


def test_real_lines_through_both_tools(training: Any, toys: ToyRuns) -> None:
    pytest.importorskip("ctranslate2")
    module = __import__("real_lines")
    lines = ["a b c", "f e d c b a", "d"]
    given = Namespace(run=str(toys.path("guided")), beam_size=3, patience=2.0, threads=1)
    said = {name: make()(lines) for name, make in module.tools(given).items() if "shortlist" not in name}
    assert len(said) == 4
    assert all(texts == lines for texts in said.values()), said  # the run copies


def test_what_filling_freed_places_saves(
    training: Any, toys: ToyRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{source}\n" for source, _ in reversal(150, 7)))
    arguments = ["--lines", "150", "--rounds", "1", "--few", "9"]
    monkeypatch.setattr(sys, "argv", ["refilling.py", str(toys.path("luong")), str(path), *arguments])
    monkeypatch.setattr(searching, "refilled", searching.refilled)  # put back when the test is over
    __import__("refilling").main()
    said = capsys.readouterr().out
    assert "150 lines" in said
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in said.splitlines() if line.startswith(("| 1", "| 5"))
    ]
    assert [row[:2] for row in rows] == [["1", "0"], ["1", "9"], ["5", "0"], ["5", "9"]]
    assert [row[-1] for row in rows] == ["150"] * 4
