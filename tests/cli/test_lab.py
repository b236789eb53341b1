"""`eyeline lab`: what it leaves, and what it says to those who misspell, forget or have no place to write."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_process import Command

from eyeline.lab import EXPERIMENTS, experiment
from toy_runs import ToyRuns, linked_copies, reversal

QUICK = {  # settings with which each experiment takes a second or two
    "saturation": ["widths=4,16,64", "draws=50", "steps=2", "size=16"],
    "gradients": ["lengths=5,12", "size=8", "batch=2"],
    "dilution": ["models=rnn,transformer", "distances=1,4", "steps=2", "size=16", "probed=64"],
    "order": ["positions=none,rotary", "lengths=4,8", "steps=2", "size=16"],
    "cost": ["models=luong,transformer,state-space", "lengths=4,8,16", "size=16", "repeats=2"],
    "capacity": ["sizes=8,16", "attention_sizes=8", "steps=2", "longest=4", "tested=10"],
    "faithfulness": ["rungs=luong,transformer", "steps=2", "size=16", "sources=4", "attacks=2"],
    "alignment": ["rungs=luong,transformer", "steps=2", "size=16", "held=10"],
}


def sized(name: str) -> list[str]:
    return [part for setting in QUICK[name] for part in ("--set", setting)]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_leaves_a_figure_a_table_and_its_values(eyeline: Command, tmp_path: Path, name: str) -> None:
    done = eyeline("lab", name, "--out", tmp_path / "out", "--seed", "3", *sized(name), "--device", "cpu").well()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([f"{name}.png", f"{name}.svg", "result.json"])
    result = json.loads((tmp_path / "out" / "result.json").read_bytes())
    assert result["experiment"] == name
    assert result["seed"] == 3
    assert {"eyeline", "torch", "numpy", "python"} <= set(result["versions"])
    assert set(result["settings"]) == set(experiment(name).settings.model_fields)
    for table in result["tables"]:
        assert table["title"] in done.lines
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert [f"found: {sentence}" for sentence in result["verdict"]] == [line for line in done.lines if line.startswith("found: ")]
    assert result["verdict"]
    ElementTree.parse(tmp_path / "out" / f"{name}.svg")
    assert "NaN" not in (tmp_path / "out" / "result.json").read_text()


def test_the_same_seed_finds_the_same(eyeline: Command, tmp_path: Path) -> None:
    found = []
    for place in ("a", "b"):
        eyeline("lab", "dilution", "--out", tmp_path / place, *sized("dilution"), "-q").well()
        found.append(json.loads((tmp_path / place / "result.json").read_bytes())["tables"])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["saturaton"], "no such experiment (saturaton); did you mean 'saturation'?"),
        (["weather"], "no such experiment (weather); valid: alignment, capacity, cost"),
        (["cost", "runs/x"], "cost makes models of its own and takes no run (runs/x); leave it out"),
        (
            ["alignment", "--pairs", "x.tsv"],
            "pairs are those of a run, and none is given (--pairs x.tsv); eyeline lab alignment RUN",
        ),
        (["alignment", "no-run", "--out", "{out}"], "no such run directory (no-run)"),
        (["cost", "--out", "{out}", "--set", "lenghts=4"], "unknown setting (lenghts in --set); did you mean 'lengths'?"),
        (["cost", "--out", "{out}", "--set", "lengths"], "a setting is written key.sub=value (--set lengths)"),
        (["cost", "--out", "{out}", "--set", "lengths=0,4"], "should be at least 1"),
        (["gradients", "--out", "{out}", "--set", "models=lstm,gro"], "not a valid value (models=gro); did you mean 'gru'?"),
        (["cost", "--out", "{file}"], "cannot write: "),
        (["cost", "--out", "{file}/deeper"], "cannot write: "),
    ],
)
def test_what_can_be_mended_is_one_line(eyeline: Command, tmp_path: Path, arguments: list[str], message: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    given = [argument.format(out=tmp_path / "out", file=file) for argument in arguments]
    assert message in eyeline("lab", *given).error
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_run_is_held_to_its_gold_links(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    """The guided head of the toy that was drawn to gold links is found, with the error rate that `align` tells of it."""
    pairs = toys.pairs("lab-linked", linked_copies(30, 9))
    columns = ["--columns", "source,target,alignment"]
    done = eyeline("lab", "alignment", toys.path("guided"), "--pairs", pairs, *columns, "--out", tmp_path).well()
    result = json.loads((tmp_path / "result.json").read_bytes())
    rows = {row[1]: row for row in result["tables"][0]["rows"]}
    assert len(rows) == 5  # two layers of two heads, and the diagonal
    assert min(rows, key=lambda name: rows[name][2]) in ("layer 0 head 1", "the diagonal")  # copies lie on it
    aligned = eyeline("align", toys.path("guided"), pairs, *columns, "--layer", "0", "--head", "1", "-o", tmp_path / "links")
    assert f"AER {rows['layer 0 head 1'][2]:.2f}" in aligned.err
    assert "guided" in done.lines[2]


def test_runs_that_an_experiment_is_not_for(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    pairs = toys.pairs("lab-plain", reversal(5, 3))
    out = ["--pairs", pairs, "--out", tmp_path / "out"]
    assert "no attention to tamper with" in eyeline("lab", "faithfulness", toys.path("seq2seq"), *out).error
    assert "no gold links" in eyeline("lab", "alignment", toys.path("luong"), *out).error
    assert "scores are not products" in eyeline("lab", "saturation", toys.path("bahdanau"), *out, *sized("saturation")).error


def test_a_run_is_tampered_with(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    """Without --pairs its own validation pairs serve; random orders move what it says, as it copies what it looks at."""
    settings = ["--set", "attacks=3", "--set", "sources=6", "--set", "permutations=2"]
    eyeline("lab", "faithfulness", toys.path("luong"), "--out", tmp_path, *settings).well()
    (row,) = json.loads((tmp_path / "result.json").read_bytes())["tables"][0]["rows"]
    assert row[3] > 0.1
    assert row[1] is None
