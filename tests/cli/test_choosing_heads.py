"""`align` by a chosen head or the best one, and what `--keep` makes a run show. Knows what users see."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from cli_process import Command

from toy_runs import ToyRuns, linked_copies, write_pairs

NAMED = ["--columns", "source,target,alignment"]


@pytest.fixture
def run(toys: ToyRuns, tmp_path: Path) -> Path:
    """A copy of the guided run that shows what a run shows by default: the mean of the last layer's heads."""
    path = tmp_path / "run"
    shutil.copytree(toys.path("guided"), path)
    values = yaml.safe_load((path / "config.yaml").read_text(encoding="utf-8"))
    values["model"] |= {"alignment_layer": -1, "alignment_head": None}
    (path / "config.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


@pytest.fixture
def held_out(toys: ToyRuns) -> str:
    return toys.pairs("held-out", linked_copies(30, 9))


def model_of(run: Path) -> dict[str, object]:
    return dict(yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["model"])


def measured(err: str) -> float:
    """The error rate that align tells."""
    return float(err.rsplit("AER ", 1)[1])


def test_the_best_head_is_found_told_and_aligned_by(eyeline: Command, run: Path, held_out: str) -> None:
    as_shown = eyeline("align", run, held_out).well()
    found = eyeline("align", run, held_out, "--best-head").well()
    rows = found.err.split("\n")
    assert rows[0].split() == ["layer", "head", "AER", "F1", "precision", "recall"]
    assert rows[1].split()[:2] == ["0", "1"]
    rates = [float(row.split()[2]) for row in rows[1:7]]
    assert rates == sorted(rates)
    (shown,) = (row.split() for row in rows[1:7] if row.endswith("shown"))
    assert shown[:2] == ["1", "mean"]
    assert float(shown[2]) == measured(as_shown.err)
    assert rows[7] == (
        "best: --layer 0 --head 1, or model.alignment_layer=0 and model.alignment_head=1 in the run's config.yaml, "
        "which --keep writes"
    )
    assert measured(found.err) == rates[0] < 5 < measured(as_shown.err)
    named = eyeline("align", run, held_out, "--layer", "0", "--head", "1").well()
    assert named.lines == found.lines
    assert eyeline("align", run, held_out, "--layer", "0").well().lines != found.lines or rates[0] == rates[1]
    assert model_of(run)["alignment_layer"] == -1  # nothing was kept
    assert eyeline("align", run, held_out, "--best-head", "-q").well().err == ""


def test_a_kept_head_is_what_the_run_shows(eyeline: Command, run: Path, held_out: str, tmp_path: Path) -> None:
    weights = (run / "model.safetensors").read_bytes()
    found = eyeline("align", run, held_out, "--best-head", "--keep").well()
    assert f"kept: {run / 'config.yaml'} says model.alignment_layer=0 and model.alignment_head=1" in found.err
    assert (run / "model.safetensors").read_bytes() == weights
    assert (model_of(run)["alignment_layer"], model_of(run)["alignment_head"]) == (0, 1)
    assert eyeline("align", run, held_out).well().lines == found.lines
    (line,) = eyeline("predict", run, "--format", "jsonl", stdin=b"a b c d\n").well().lines
    assert [row.index(max(row)) for row in json.loads(line)["alignment"][:4]] == [0, 1, 2, 3]
    eyeline("attend", run, "--source", "a b c d", "-o", tmp_path / "a.json").well()
    value = json.loads((tmp_path / "a.json").read_bytes())
    assert [row.index(max(row)) for row in value["weights"][:4]] == [0, 1, 2, 3]
    assert value["note"].startswith("run (transformer, layer 0, head 1): predicted")
    assert "best: what the run shows as it is" in eyeline("align", run, held_out, "--best-head").well().err
    eyeline("align", run, held_out, "--layer", "-1", "--keep").well()
    assert (model_of(run)["alignment_layer"], model_of(run)["alignment_head"]) == (1, None)


def test_tokens_and_blank_pairs(eyeline: Command, run: Path, tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "odd.tsv", [("a b", "a b", "0-0 1p1"), ("", "", ""), ("", "a", ""), ("c", "", "")])
    for options in ([], ["--tokens"]):
        assert eyeline("align", run, file, "--best-head", *NAMED, *options).well().lines[1:] == ["", "", ""]


def test_what_cannot_be_is_one_line(eyeline: Command, toys: ToyRuns, run: Path, held_out: str, tmp_path: Path) -> None:
    bare = write_pairs(tmp_path / "bare.tsv", [("a b", "b a")])
    beyond = write_pairs(tmp_path / "beyond.tsv", [("ab", "ba", "0-1 1-0")])
    for arguments, said in (
        ([run, held_out, "--best-head", "--head", "0"], "nothing to find where the head is given (--best-head)"),
        ([run, held_out, "--keep"], "no head to keep is named (--keep); add --best-head, or --layer and --head"),
        ([run, held_out, "--layer", "5"], "the decoder has 2 layers, which count from 0 (--layer 5)"),
        ([run, held_out, "--head", "2"], "each layer has 2 heads, which count from 0 (--head 2)"),
        ([run, bare, "--best-head"], f"no gold links to find the best head by ({bare}:1); name their column: --columns source,"),
        ([run, beyond, "--best-head", *NAMED], f"count tokens or characters, not words ({beyond}); add --tokens"),
        (
            [toys.path("luong"), held_out, "--best-head", *NAMED],
            "this architecture has one attention, and no heads to choose from",
        ),
        ([toys.path("luong"), held_out, "--head", "0"], "(model.architecture=luong); leave --head out"),
        ([toys.path("seq2seq"), held_out, "--layer", "0"], "this architecture has no attention, and no heads to choose from"),
        ([toys.path("names-transformer"), held_out, "--layer", "0", "--keep"], "shows where it copies from, and no other head"),
    ):
        assert said in eyeline("align", *arguments).error


def test_a_run_that_copies_ranks_what_it_copies_from_too(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = write_pairs(
        tmp_path / "named.tsv", [("my name is Badibo", "hello Badibo", "3-1"), ("Mako lives in Zedi", "in Zedi", "2-0 3-1")]
    )
    found = eyeline("align", toys.path("names-transformer"), file, "--best-head", *NAMED).well()
    labels = {tuple(row.split()[: 1 if row.strip().startswith("own") else 2]) for row in found.err.split("\n")[1:5]}
    assert labels == {("0", "0"), ("0", "1"), ("0", "mean"), ("own",)}
    assert len(found.lines) == 2
    assert "best: " in found.err
