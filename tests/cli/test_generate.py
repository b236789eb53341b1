"""`eyeline generate`: every task, the two kinds of file, and mistakes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cli_process import Command

from eyeline.data.generated.tasks import TASKS, generated
from eyeline.text.pairs import read_pairs

COLUMNS = ["source", "target", "alignment"]
TEXT = {"dates", "numerals", "reversal", "tally"}
LIBRARIES = {"dates": "babel", "numerals": "unicode_rbnf"}


@pytest.mark.parametrize("task", TASKS)
def test_a_file_holds_what_the_rules_give_and_can_be_read(eyeline: Command, tmp_path: Path, task: str) -> None:
    if task in LIBRARIES:
        pytest.importorskip(LIBRARIES[task])
    path = tmp_path / f"pairs.{'tsv' if task in TEXT else 'jsonl'}"
    done = eyeline("generate", task, "--pairs", "7", "--seed", "3", "-o", path).well()
    assert (done.out, done.err) == (b"", f"written: {path}, 7 pairs\n")
    pairs, format_ = generated(task, 7, 3)
    assert path.read_bytes() == b"".join(format_.lines(pairs))
    assert eyeline("generate", task, "--pairs", "7", "--seed", "3").well().out == path.read_bytes()
    if task in TEXT:
        assert len(list(read_pairs([str(path)], COLUMNS))) == 7
    else:
        records = [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]
        assert [sorted(record) for record in records] == [["source", "target"]] * 7


def test_lengths_and_symbols(eyeline: Command) -> None:
    lines = eyeline("generate", "convex-hull", "--length", "6-8", "--pairs", "60").well().lines
    assert {len(json.loads(line)["source"]) for line in lines} == {6, 7, 8}
    lines = eyeline("generate", "tsp", "--length", "5", "--pairs", "3").well().lines
    assert {len(json.loads(line)["target"]) for line in lines} == {5}
    for task in ("sorting", "reversal"):
        lines = eyeline("generate", task, "--length", "4", "--symbols", "3", "--pairs", "40").well().lines
        assert {tuple(map(len, (field.split(" ") for field in line.split("\t")))) for line in lines} == {(4, 4, 4)}
        assert {word for line in lines for word in line.split("\t")[0].split(" ")} == {"0", "1", "2"}


def test_a_name_in_gz_is_compressed_and_the_seed_decides(eyeline: Command, tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        eyeline("generate", "delaunay", "--pairs", "5", "--seed", seed, "-o", tmp_path / f"{name}.jsonl.gz", "-q").well()
    one, two, other = ((tmp_path / f"{name}.jsonl.gz").read_bytes() for name in "abc")
    assert one == two != other
    assert gzip.decompress(one) == eyeline("generate", "delaunay", "--pairs", "5").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "'TASK'"),
        (["convexhull"], "no such task (convexhull); did you mean 'convex-hull'?"),
        (["tsp", "--pairs", "0"], "'--pairs'"),
        (["tsp", "--length", "five"], "not a length (--length five); write 10, or a range such as 5-50"),
        (["tsp", "--length", "9-5"], "length=9-5"),
        (["tsp", "--length", "2"], "at least 3"),
        (["reversal", "--length", "0"], "min_length=0"),
        (
            ["dates", "--length", "5-6"],
            "dates has no length to choose (--length 5-6); these have: reversal, sorting, convex",
        ),
        (["tsp", "--symbols", "5"], "tsp has no symbols to choose (--symbols 5); these have: reversal, sorting"),
        (["tsp", "-o", "tours.tsv.gz"], "tsp is written as JSON lines (--output tours.tsv.gz); end its name in .jsonl"),
        (["reversal", "-o", "pairs.jsonl"], "reversal is written as columns between tabs (--output pairs.jsonl)"),
        (["sorting", "--symbols", "5", "-o", "pairs.jsonl"], "end its name in .tsv"),
    ],
)
def test_mistakes(eyeline: Command, arguments: list[str], said: str) -> None:
    assert said in eyeline("generate", *arguments).error


def test_what_is_interrupted_or_refused_leaves_what_was_there(eyeline: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "a directory is in the place of the file" in eyeline("generate", "sorting", "-o", tmp_path / "folder").error
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in eyeline("generate", "sorting", "-o", tmp_path / "file" / "a.jsonl").error
