"""`eyeline prepare`: shards that `train` takes, duplicates dropped unless told to keep, mistakes in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import reversal, write_pairs

pytest.importorskip("pyarrow")
SMALL = ["--set", "model.embedding_size=8", "--set", "model.encoder_size=8", "--set", "model.decoder_size=8"]


def test_prepared_data_are_trained_on_and_the_run_predicts(eyeline: Command, tmp_path: Path) -> None:
    pairs = reversal(30, 1)
    file = write_pairs(tmp_path / "pairs.tsv", [*pairs, pairs[0]])
    symbols = ["--set", "tokenizer.kind=whitespace-symbols"]
    said = eyeline("prepare", "--train", file, "--out", tmp_path / "data", *symbols).well()
    distinct = len(set(pairs))
    assert said.out == b""
    assert f"left out, duplicate: {31 - distinct}" in said.err
    assert f"written: {tmp_path / 'data'}" in said.err
    eyeline("train", "--architecture", "luong", *SMALL, "--train", tmp_path / "data", "--out", tmp_path / "run", "--steps", "2")
    assert "kind: whitespace-symbols" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    assert len(eyeline("predict", tmp_path / "run", stdin=b"a b\n").lines) == 1
    kept = eyeline("prepare", "--train", file, "--out", tmp_path / "all", "--duplicates", "keep").well()
    assert "duplicate" not in kept.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--train", "pairs.tsv"], "--out"),
        (["--out", "data"], "nothing to prepare (--train)"),
        (["--train", "absent.tsv", "--out", "data"], "no such file (absent.tsv)"),
        (["--train", "empty.tsv", "--out", "data"], "the file is empty (empty.tsv)"),
        (["--train", "pairs.tsv", "--out", "pairs.tsv/data"], "cannot write: "),
        (["--train", "pairs.tsv", "--out", "pairs.tsv"], "there is something here already (pairs.tsv)"),
        (["--train", "pairs.tsv", "--out", "data", "--duplicates", "dorp"], "did you mean 'drop'?"),
    ],
)
def test_mistakes(eyeline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], named: str) -> None:
    write_pairs(tmp_path / "pairs.tsv", reversal(5, 1))
    (tmp_path / "empty.tsv").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert named in eyeline("prepare", *arguments).error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.tsv", "pairs.tsv"]
