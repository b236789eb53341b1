"""`predict --cluster ray` as far as one process goes: options, messages, what is written. A worker is asked without Ray."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from cli_process import Command

from eyeline.bulk import Done, Shard, Work, cluster
from eyeline.bulk.cluster import Asking, Worker, run_files
from toy_runs import ToyRuns


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards of four rows."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        parquet.write_table(
            arrow.table({"id": [1, 2, 3, 4], "source": ["a b c", None, name, "f e d"]}), folder / f"{name}.parquet"
        )
    return folder


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker in this process in the place of a cluster."""

    def one_after_another(
        shards: Sequence[Shard], runs: Sequence[Path], asking: Asking, work: Work, workers: int | None
    ) -> Iterator[tuple[Shard, Done]]:
        worker = Worker([run_files(run) for run in runs], asking, work)
        for shard in shards:
            yield shard, worker.predict(shard)

    monkeypatch.setattr(cluster, "predict_shards", one_after_another)


@pytest.mark.usefixtures("alone")
def test_shards_are_predicted_as_lines_are(eyeline: Command, toys: ToyRuns, shards: Path, tmp_path: Path) -> None:
    given = ["predict", toys.path("luong"), f"{shards}/*.parquet", "--cluster", "ray", "-o", tmp_path / "out", "--threads", "1"]
    done = eyeline(*given).well()
    assert (done.out, done.err) == (b"", f"written: 2 shards, 8 rows ({tmp_path}/out)\n")
    lines = eyeline("predict", toys.path("luong"), stdin=b"a b c\n\nb\nf e d\n").lines
    assert parquet.read_table(tmp_path / "out" / "b.parquet").column("prediction").to_pylist() == lines
    assert eyeline(*given).well().err == f"written: 2 shards, 8 rows ({tmp_path}/out), 2 of them there already\n"
    assert "begun with beam_size=its default, not 2" in eyeline(*given, "--beam-size", "2").err


@pytest.mark.usefixtures("alone")
def test_an_ensemble_and_all_columns(eyeline: Command, toys: ToyRuns, shards: Path, tmp_path: Path) -> None:
    given = ["--ensemble", toys.path("luong-again"), "--format", "jsonl", "--n-best", "2"]
    eyeline("predict", toys.path("luong"), shards, "--cluster", "ray", "-o", tmp_path / "out", "--threads", "1", *given).well()
    made = parquet.read_table(tmp_path / "out" / "a.parquet")
    assert made.column_names[-5:] == ["n_best", "source_tokens", "tokens", "token_scores", "alignment"]
    (row,) = made.slice(0, 1).to_pylist()
    assert len(row["n_best"]) == 2
    assert [len(weights) for weights in row["alignment"]] == [4] * len(row["tokens"])


@pytest.mark.usefixtures("alone")
def test_what_fails_is_told_and_the_rest_is_made(eyeline: Command, toys: ToyRuns, shards: Path, tmp_path: Path) -> None:
    (shards / "a.parquet").write_bytes(b"damaged")
    done = eyeline("predict", toys.path("luong"), shards, "--cluster", "ray", "-o", tmp_path / "out")
    assert done.status == 2
    warned, told, error = done.err.rstrip("\n").split("\n")
    assert warned.startswith("warning: not predicted: not a readable Parquet file")
    assert told == f"written: 1 shards, 4 rows ({tmp_path}/out)"
    assert error.startswith("error: 1 of 2 shards were not predicted: not a readable Parquet file")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.parquet"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in", "--cluster", "rey", "-o", "out"], "(--cluster rey); did you mean 'ray'?"),
        (["--cluster", "ray", "-o", "out"], "a cluster reads Parquet files, not standard input"),
        (["in", "--cluster", "ray"], "outputs of shards are files in a directory (-o)"),
        (["in", "--cluster", "ray", "-o", "out", "--format", "nbest"], "(--format nbest); valid: text, jsonl"),
        (["in", "--cluster", "ray", "-o", "out", "--prefix", "p"], "(--prefix p)"),
        (["in", "--cluster", "ray", "-o", "out", "--on-bad-line", "skip"], "(--on-bad-line skip)"),
        (["nowhere", "--cluster", "ray", "-o", "out"], "no .parquet file is there (nowhere)"),
        (["in", "--cluster", "ray", "-o", "out", "--n-best", "3", "--beam-size", "2"], "n_best=3, beam_size=2"),
        (["in/a.parquet"], "Parquet files are predicted shard by shard (in/a.parquet); add --cluster ray -o DIR"),
        (["in/a.parquet", "in/b.parquet"], "2 files are given (in/a.parquet in/b.parquet)"),
        (["in/a.txt", "--workers", "2"], "this is for shards (--workers 2); add --cluster ray"),
        (["in/a.txt", "--columns", "de"], "this is for shards (--columns de)"),
    ],
)
def test_options_that_do_not_go_together(
    eyeline: Command, toys: ToyRuns, shards: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(shards.parent)
    assert said in eyeline("predict", toys.path("luong"), *words).error


def test_without_ray_the_extra_is_named(
    eyeline: Command, toys: ToyRuns, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent: Any = None
    monkeypatch.setitem(sys.modules, "ray", absent)
    error = eyeline("predict", toys.path("luong"), shards, "--cluster", "ray", "-o", tmp_path / "out").error
    assert error.endswith("pip install 'eyeline[cluster]'")
