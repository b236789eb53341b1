"""docs/recipes.md: every line of it runs, one after the other, on data so small that nothing is learnt from it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import reversal, write_pairs

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
SMALL = {
    "transformer": ["--set=model.size=8", "--set=model.heads=2", "--set=model.feedforward_size=8"],
    "luong": ["--set=model.embedding_size=8", "--set=model.encoder_size=8", "--set=model.decoder_size=8"],
}


def lines() -> list[str]:
    return re.findall(r"^ {4,}((?:eyeline|paste|cut) .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def tiny(words: list[str]) -> list[str]:
    """A training of two updates of a small model; other commands say little."""
    if words[0] == "train":
        assert words.count("--epochs") == 1
        place = words.index("--epochs")
        words = [*words[:place], "--steps", "2", *words[place + 2 :], *SMALL[words[words.index("--architecture") + 1]]]
        layers = ["--set=model.encoder_layers=1", "--set=model.decoder_layers=1"]
        return [*words, *layers, "--set=tokenizer.kind=whitespace-symbols"]
    short = {"predict": ["--min-length", "1", "--max-length", "6"], "evaluate": ["--max-length", "6"]}  # never a blank line
    return [*words, *short.get(words[0], [])]


@pytest.mark.skipif(os.name != "posix", reason="paste, cut and sort of POSIX")
def test_every_line_runs(eyeline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 20), ("dev", 4), ("test", 3)):
        write_pairs(tmp_path / f"{name}.tsv", reversal(count, count))
    Path("mono.txt").write_text("".join(f"{target}\n" for _, target in reversal(6, 9)) + "\n", encoding="utf-8")
    assert len(lines()) > 10
    for line in lines():
        if line.startswith("eyeline "):
            done = eyeline(*tiny(shlex.split(line)[1:]))
            assert done.status == 0, f"{line}\n{done.err}"
        else:
            subprocess.run(line, shell=True, check=True)
    assert len(Path("back.tsv").read_text(encoding="utf-8").split("\n")) == 8, "a pair a line, the blank one too"
    assert all(len(line.split("\t")) == 2 for line in Path("best.tsv").read_text(encoding="utf-8").split("\n")[:-1])
    config = Path("runs", "forward", "config.yaml").read_text(encoding="utf-8")
    assert "tag: back" in config
