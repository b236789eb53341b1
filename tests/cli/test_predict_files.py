"""`eyeline predict -o FILE --resume`: the bytes of an undisturbed run, whatever ended it. Knows what a user sees and kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns, reversal

# The command with small portions, which dies as by a full machine (SIGKILL), or finds its disk full, when it has written so much.
DYING = """
import os, resource, signal, sys
import eyeline.predictor.inputs
import eyeline.predictor
eyeline.predictor.inputs.CHUNK = 50
call, number = sys.argv[1], int(sys.argv[2])
if call == "size":
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
elif number:
    real = getattr(os, call)
    def dying(*arguments, **named):
        global number
        number -= 1
        if not number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    setattr(os, call, dying)
from eyeline.cli import main
main(sys.argv[3:])
"""


def dying(call: str, number: int, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Runs the command; its `number`-th use of an os function is its last."""
    command = [sys.executable, "-c", DYING, call, str(number), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=300)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Forty lines, some of them blank."""
    path = tmp_path / "in.txt"
    sources = [source for source, _ in reversal(40, 9)]
    sources[3] = sources[17] = ""
    path.write_text("".join(f"{source}\n" for source in sources))
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions of eight lines."""
    monkeypatch.setattr("eyeline.predictor.inputs.CHUNK", 8)


FORMATS = [
    [],
    ["--format", "jsonl"],
    ["--format", "nbest", "--n-best", "3"],
    ["--format", "fairseq", "--n-best", "2"],
    ["--format", "pharaoh"],
    ["--sampling", "top-k=5", "--seed", "3"],
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", FORMATS)
def test_a_mended_line_is_gone_on_with(eyeline: Command, toys: ToyRuns, tmp_path: Path, lines: Path, form: list[str]) -> None:
    whole, out = tmp_path / "whole.txt", tmp_path / "out.txt"
    command = ["predict", toys.path("luong"), lines, "--max-length", "5", *form]
    undisturbed = eyeline(*command, "-o", whole)
    assert undisturbed.status == 0
    assert "did not end before their maximum length" in undisturbed.err
    good = lines.read_bytes()
    rows = good.split(b"\n")
    rows[20] = b"\xff"
    lines.write_bytes(b"\n".join(rows))
    error = eyeline(*command, "-o", out).error
    assert f"({lines}:21)" in error
    assert error.endswith("; 16 lines are kept (" + f"{out}.partial), --resume goes on behind them")
    assert not out.exists()
    lines.write_bytes(good)
    done = eyeline(*command, "-o", out, "--resume")
    assert done.status == 0
    assert out.read_bytes() == whole.read_bytes()
    assert done.err == undisturbed.err  # what is counted is counted over all lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt", "whole.txt"]


@pytest.mark.usefixtures("small")
def test_numbers_of_lines_go_on(eyeline: Command, toys: ToyRuns, tmp_path: Path, lines: Path) -> None:
    terms, prefixes = tmp_path / "terms.jsonl", tmp_path / "prefixes.txt"
    terms.write_text(json.dumps({"line": 25, "require": "f f f"}) + "\n")
    prefixes.write_text("".join("a\n" if number % 5 == 0 else "\n" for number in range(40)))
    command = ["predict", toys.path("luong"), lines, "--prefix", prefixes, "--constraints", terms, "--on-bad-line", "skip"]
    rows = lines.read_bytes().split(b"\n")
    rows[5] = b"\xff"
    lines.write_bytes(b"\n".join(rows))
    whole = eyeline(*command, "-o", tmp_path / "whole.txt")
    assert "(6)" in whole.err
    every = prefixes.read_text()
    prefixes.write_text("\n".join(every.split("\n")[:20]) + "\n")  # too few
    assert "16 lines are kept" in eyeline(*command, "-o", tmp_path / "out.txt").error
    prefixes.write_text(every)
    done = eyeline(*command, "-o", tmp_path / "out.txt", "--resume")
    assert done.err == whole.err
    outputs = (tmp_path / "out.txt").read_text()
    assert outputs == (tmp_path / "whole.txt").read_text()
    assert "f f f" in outputs.split("\n")[24]


@pytest.mark.usefixtures("small")
def test_what_is_different_is_named(eyeline: Command, toys: ToyRuns, tmp_path: Path, lines: Path) -> None:
    out, good = tmp_path / "out.txt", lines.read_bytes()
    lines.write_bytes(good[:-1] + b"\xff\n")
    command = ["predict", toys.path("luong"), lines, "-o", out]
    assert "32 lines are kept" in eyeline(*command).error
    lines.write_bytes(good)
    assert "add --resume to go on" in eyeline(*command).error
    assert "begun with beam_size=its default, not 2" in eyeline(*command, "--resume", "--beam-size", "2").error
    assert "begun with --format=text, not jsonl" in eyeline(*command, "--resume", "--format", "jsonl").error
    other = ["predict", toys.path("bahdanau"), lines, "-o", out, "--resume"]
    assert "the run: the files are not those that this was begun with" in eyeline(*other).error
    lines.write_bytes(good.replace(b"a", b"b", 1))
    assert "the first 32 lines are not those that were predicted" in eyeline(*command, "--resume").error
    lines.write_bytes(good)
    eyeline(*command, "--resume").well()
    assert out.read_bytes().count(b"\n") == 40


@pytest.mark.parametrize("arguments", [[], ["-o", "-"], ["-o", "/dev/null"]])
def test_only_a_file_can_be_gone_on_with(eyeline: Command, toys: ToyRuns, arguments: list[str]) -> None:
    error = eyeline("predict", toys.path("luong"), "--resume", *arguments, stdin=b"a\n").error
    assert error == "only a file can be gone on with (--resume); name it with -o FILE"


def test_a_device_is_written_to(eyeline: Command, toys: ToyRuns) -> None:
    eyeline("predict", toys.path("luong"), "-o", "/dev/null", stdin=b"a\n").well()


@pytest.mark.slow
def test_kills_and_full_disks(toys: ToyRuns, tmp_path: Path) -> None:
    given = tmp_path / "in.txt"
    given.write_text("".join(f"{source}\n" for source, _ in reversal(400, 5)))
    command = ["predict", toys.path("luong"), given, "--beam-size", "1", "--format", "jsonl", "-o"]
    assert dying("replace", 0, *command, tmp_path / "whole.txt").returncode == 0
    whole = (tmp_path / "whole.txt").read_bytes()
    out = tmp_path / "out.txt"
    for number, (call, at) in enumerate((("fsync", 1), ("fsync", 9), ("replace", 2), ("fsync", 4), ("size", len(whole) // 2))):
        done = dying(call, at, *command, out, "--resume")
        if call == "size":
            assert done.returncode == 2
            assert done.stderr.count(b"\n") == 1
            assert b"error: cannot write: " in done.stderr
            assert b"--resume goes on behind them" in done.stderr
        else:
            assert done.returncode == -signal.SIGKILL, (number, done.stderr)
        assert not out.exists()
    assert dying("replace", 0, *command, out, "--resume").returncode == 0
    assert out.read_bytes() == whole
