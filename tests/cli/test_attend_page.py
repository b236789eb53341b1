"""`eyeline attend -o page.html`: one file for one pair, of every model, even of one that has no attention to draw."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns


def traces(path: Path) -> list[dict[str, object]]:
    found = re.search(r'<script type="application/json" id="traces">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert found
    return list(json.loads(found[1])["traces"])


@pytest.mark.parametrize("name", ["bahdanau", "seq2seq"])
def test_a_page_is_written(toys: ToyRuns, eyeline: Command, tmp_path: Path, name: str) -> None:
    out = tmp_path / "page.html"
    done = eyeline("attend", toys.path(name), "--source", "a b <c>", "-o", out).well()
    assert done.out == b""
    assert f"written: {out}" in done.err
    (found,) = traces(out)
    assert found["name"] == name
    assert found["source"]["text"] == "a b <c>"  # type: ignore[index]
    assert bool(found["looks"]) == (name == "bahdanau")


def test_a_given_target_and_a_beam(toys: ToyRuns, eyeline: Command, tmp_path: Path) -> None:
    out = tmp_path / "page.HTML"
    eyeline("attend", toys.path("luong"), "--source", "a b", "--target", "b a", "-o", out).well()
    assert traces(out)[0]["beam"] is None
    eyeline("attend", toys.path("luong"), "--source", "a b", "--beam-size", "2", "-o", out).well()
    assert len(traces(out)[0]["beam"]["levels"][0]) == 2  # type: ignore[index]


def test_what_cannot_be_is_one_line(toys: ToyRuns, eyeline: Command, tmp_path: Path) -> None:
    run = toys.path("luong")
    assert "leave it out" in eyeline("attend", run, "--source", "a", "--coverage", "-o", tmp_path / "page.html").error
    assert "valid: .png, .svg, .json, .html" in eyeline("attend", run, "--source", "a", "-o", tmp_path / "page.pdf").error
    assert "longer than can be drawn" in eyeline("attend", run, "--source", "a " * 600, "-o", tmp_path / "page.html").error
    assert not list(tmp_path.iterdir())
