"""`eyeline compare` refuses what cannot be compared, in one line, before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_process import Command

from eyeline.config_yaml import dump_yaml

CONFIG = {
    "data": {"train": "a.tsv", "valid": "a.tsv", "test": "a.tsv"},
    "rungs": ["luong", "bahdanau"],
    "budget": {"steps": 5},
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("a\tb\n", encoding="utf-8")
    path = tmp_path / "c.yaml"
    path.write_text(dump_yaml(CONFIG), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["c.yaml"], "where shall it work? (--out); name a directory, such as --out runs/compared"),
        (["c.yaml", "--out=o", "--language=kr"], "not a language of reports (--language kr); valid: en, ko"),
        (["reversl", "--out=o"], "no such config file, and no task that makes its own pairs (reversl); did you mean 'reversal'?"),
        (["no.yaml", "--out=o"], "no such config file (no.yaml); `eyeline init --out FILE` writes one"),
        (["c.yaml", "--out=o", "--set=rungs.x=1"], "'rungs' is not a section (--set rungs.x=1)"),
        (["c.yaml", "--out=o", "--set=budge.steps=1"], "unknown setting (budge); did you mean 'budget'?"),
        (
            ["c.yaml", "--out=o", "--steps=3", "--for=3m"],
            "a budget is one of steps, target_tokens and for; found steps and for (budget)",
        ),
        (["c.yaml", "--out=o", "--seeds=1,x"], "seeds are whole numbers (--seeds 1,x); such as --seeds 1,2,3"),
        (
            ["c.yaml", "--out=o", "--set=data.test=[]"],
            "there are no pairs to compare by (data.test); name a file of pairs: data: {test: …}",
        ),
        (["c.yaml", "--out=a.tsv"], "a file is in the way (a.tsv); name another --out"),
        (
            ["c.yaml", "--out=o", "--test-lengths=20,…"],
            "… stands between two lengths and a last one, as in 20,40,…,120 (--test-lengths 20,…)",
        ),
    ],
)
def test_a_mistake_is_one_line(eyeline: Command, config: Path, arguments: list[str], message: str) -> None:
    assert eyeline("compare", *arguments).error == message


def test_a_test_file_that_is_absent_is_told(eyeline: Command, config: Path) -> None:
    assert "no such file (nowhere.tsv)" in eyeline("compare", "c.yaml", "--out=o", "--set=data.test=[nowhere.tsv]").error
