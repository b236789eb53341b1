"""`predict --engine` and `export --to ctranslate2`: what a user types and is told."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns

pytest.importorskip("ctranslate2")
LINES = b"a b c\n\nf e d c b a\n"


@pytest.mark.parametrize("engine", ["ctranslate2", "auto"])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_same_lines_from_either(eyeline: Command, toys: ToyRuns, engine: str, precision: str) -> None:
    command = ["predict", toys.path("guided"), "--threads", "1"]
    assert (
        eyeline(*command, "--engine", engine, "--precision", precision, stdin=LINES).lines == eyeline(*command, stdin=LINES).lines
    )


def test_auto_takes_what_can_answer(eyeline: Command, toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        pytest.fail("CTranslate2 was asked")

    monkeypatch.setattr("eyeline.exchange.ctranslate2_engine.CTranslate2Engine", never)
    auto = ["--engine", "auto", "--threads", "1"]
    for given in (["luong"], ["guided", "--format", "jsonl"], ["guided", "--no-repeat-ngram", "3"]):
        assert len(eyeline("predict", toys.path(given[0]), *given[1:], *auto, stdin=LINES).well().lines) == 3
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert eyeline("predict", toys.path("guided"), *auto, stdin=LINES).well().lines[0] == "a b c"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["guided", "--engine", "ctranslate3"], "did you mean 'ctranslate2'?"),
        (["luong", "--engine", "ctranslate2"], "CTranslate2 cannot hold this model (model.architecture=luong)"),
        (["guided", "--engine", "ctranslate2", "--format", "jsonl"], "an engine does not know this (attention=True)"),
        (["guided", "--engine", "ctranslate2", "--ensemble", "x"], "CTranslate2 does not know this (--ensemble)"),
    ],
)
def test_what_it_cannot_do_is_said(eyeline: Command, toys: ToyRuns, words: list[str], said: str) -> None:
    assert said in eyeline("predict", toys.path(words[0]), *words[1:], stdin=LINES).error


def test_export(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    done = eyeline("export", toys.path("guided"), "--to", "ctranslate2", "--out", out).well()
    assert (done.out, done.err) == (b"", f"written: {out}\n")
    assert (out / "model.bin").stat().st_size > 0
    assert f"it is there already ({out})" in eyeline("export", toys.path("guided"), "--to", "ctranslate2", "--out", out).error
    other = tmp_path / "other"
    for words, said in (
        (["--to", "ctranslate"], "did you mean 'ctranslate2'?"),
        (["--to", "ctranslate2", "--quantization", "int9"], "(--quantization int9)"),
    ):
        assert said in eyeline("export", toys.path("guided"), *words, "--out", other).error
    assert "cannot hold this model" in eyeline("export", toys.path("luong"), "--to", "ctranslate2", "--out", other).error
    assert not other.exists()
