"""What holds for every command: help that starts fast, one line for a mistake, statuses, signals, closed pipes, full disks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cli_process import Command, python

import eyeline as package
import eyeline.cli as cli
from toy_runs import ToyRuns

COMMANDS = [command.__name__ for command in cli.COMMANDS]
ON_RUNS = {
    "predict": [],
    "score": ["pairs.tsv"],
    "evaluate": ["pairs.tsv"],
    "align": ["pairs.tsv"],
    "attend": ["--source", "a", "-o", "a.json"],
    "info": [],
}
HEAVY = ("torch", "tokenizers", "matplotlib", "sacrebleu", "pyarrow", "tensorboard")


def test_every_command_of_the_contract_is_there() -> None:
    assert {"quickstart", "init", "train", *ON_RUNS} <= set(COMMANDS)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=["eyeline", *COMMANDS])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    done = subprocess.run(python(*command, "--help", options=["-X", "importtime"]), capture_output=True, text=True, check=True)
    assert "Usage: eyeline" in done.stdout
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "typer" in imported
    assert not imported & set(HEAVY)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_the_options_that_all_commands_have(eyeline: Command, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = eyeline(command, "--help").out.decode()
    for option in ("--seed", "--device", "--threads", "--quiet", "-q", "--verbose", "-v"):
        assert option in said


def test_version(eyeline: Command) -> None:
    assert eyeline("--version").out == f"eyeline {package.__version__}\n".encode()


def test_no_command_shows_help(eyeline: Command) -> None:
    done = eyeline()
    assert done.status == 2
    assert b"Usage" in done.out + done.err.encode()
    assert "Traceback" not in done.err


def test_a_misspelt_command_a_bad_option_and_a_bad_value_name_the_right_ones(process: Command) -> None:
    assert "Did you mean 'predict'" in process("predcit").error
    assert "--format" in process("predict", "run", "--fromat", "x").error
    assert (
        "(--format xml); valid: fairseq, jsonl, nbest, pharaoh, pharaoh-tokens, text"
        in process("predict", "run", "--format", "xml").error
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["predict"], "'RUN'"),
        (["score", "run"], "'PAIRS'"),
        (["predict", "run", "--beam-size", "0"], "'--beam-size'"),
        (["predict", "run", "--beam-size", "two"], "'--beam-size'"),
        (["predict", "run", "--too-long", "trunkate"], "did you mean 'truncate'?"),
        (["predict", "run", "--on-bad-line", "stop"], "--on-bad-line stop"),
        (["score", "run", "pairs.tsv", "--format", "json"], "did you mean 'jsonl'?"),
        (["attend", "run", "--source", "a", "-o", "a.pdf"], "valid: .png, .svg, .json"),
        (["init", "--architecture", "luung"], "did you mean 'luong'?"),
        (["train", "--train", "a.tsv"], "--out"),
        (["train", "--seed", "-1"], "'--seed'"),
    ],
)
def test_mistakes_on_the_command_line(eyeline: Command, arguments: list[str], named: str) -> None:
    assert named in eyeline(*arguments).error


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:", "cuda:99", "cpu:", "mps:"])
def test_a_device_that_is_not_there(eyeline: Command, toys: ToyRuns, device: str) -> None:
    assert f"--device {device}" in eyeline("predict", toys.path("luong"), "--device", device).error


@pytest.mark.parametrize("command", ON_RUNS)
def test_what_is_no_run_or_half_a_run(eyeline: Command, toys: ToyRuns, tmp_path: Path, command: str) -> None:
    pairs = ["pairs.tsv"] if ON_RUNS[command] == ["pairs.tsv"] else ON_RUNS[command]
    assert "no such run directory" in eyeline(command, tmp_path / "nowhere", *pairs).error
    (tmp_path / "empty").mkdir()
    assert "not a run directory: it has no config.yaml" in eyeline(command, tmp_path / "empty", *pairs).error
    for damage, file in (("model:\n  architecture: luung\n", "config.yaml"), ("{", "source.tokenizer.json")):
        run = copy_of(toys.path("luong"), tmp_path / file)
        (run / file).write_text(damage)
        assert file in eyeline(command, run, *pairs).error


@pytest.mark.parametrize("command", [name for name in ON_RUNS if name != "info"])
def test_weights_that_are_absent_or_damaged(eyeline: Command, toys: ToyRuns, tmp_path: Path, command: str) -> None:
    run = copy_of(toys.path("luong"), tmp_path / "run")
    weights = run / "model.safetensors"
    whole = weights.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"no weights at all"):
        weights.write_bytes(content)
        assert f"{weights}" in eyeline(command, run, *ON_RUNS[command]).error
    weights.unlink()
    assert "no trained weights yet" in eyeline(command, run, *ON_RUNS[command]).error


def test_weights_of_another_model(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    run = copy_of(toys.path("luong"), tmp_path / "run")
    (run / "model.safetensors").write_bytes((toys.path("bahdanau") / "model.safetensors").read_bytes())
    assert "not those of this model" in eyeline("predict", run).error


def test_verbose_adds_the_traceback_and_keeps_the_line(eyeline: Command, tmp_path: Path) -> None:
    done = eyeline("predict", tmp_path / "nowhere", "-v")
    assert done.status == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("error: no such run directory")


def test_a_defect_is_told_apart(eyeline: Command, toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyeline.evaluation.describe", lambda _: {}["ours"])
    done = eyeline("info", toys.path("luong"))
    assert done.status == 1
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("defect: KeyError: 'ours'")


def test_too_little_memory_is_no_defect(eyeline: Command, toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(_: str) -> Any:
        raise MemoryError

    monkeypatch.setattr("eyeline.evaluation.describe", greedy)
    assert "lower --batch-tokens" in eyeline("info", toys.path("luong")).error


def test_a_signal_ends_with_130_and_leaves_no_half_output(toys: ToyRuns, tmp_path: Path) -> None:
    command = python("predict", toys.path("luong"), "-o", tmp_path / "out.txt")
    said, left = {}, {}
    for lines in (4000, 100_000):  # a part of the first portion, which no pipe holds, and many portions
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
            assert waiting.stderr is not None
            assert waiting.stdin is not None
            waiting.stdin.write(b" " * 100_000 + b"\n" * lines)  # when they are written, it is reading
            waiting.stdin.flush()
            assert list(tmp_path.iterdir())
            for _ in range(4):  # Python swallows an interrupt that falls into a finaliser: whoever sees nothing presses again
                waiting.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    waiting.wait(15)
                    break
            assert waiting.returncode == 130
            said[lines], left[lines] = waiting.stderr.read(), [path.name for path in tmp_path.iterdir()]
    assert (said[4000], left[4000]) == (b"interrupted\n", [])
    assert said[100_000].startswith(b"interrupted: ")
    assert said[100_000].endswith(b", --resume goes on behind them\n")
    assert left[100_000] == ["out.txt.partial"]


def test_a_closed_pipe_is_quiet(toys: ToyRuns) -> None:
    predict = python("predict", toys.path("luong"), "--beam-size", "1")
    for command, lines, first in ((python("--help"), b"", None), (python("init"), b"", None), (predict, b"a\n" * 30_000, b"a\n")):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as writer:
            assert writer.stdout is not None
            if first is None:
                writer.stdout.close()
                said = writer.communicate(lines)[1]
            else:
                with subprocess.Popen(["head", "-1"], stdin=writer.stdout, stdout=subprocess.PIPE) as reader:
                    writer.stdout.close()
                    said = writer.communicate(lines)[1]
                    assert reader.communicate()[0] == first
        assert (writer.returncode, said) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_no_defect(toys: ToyRuns) -> None:
    for arguments in (["init"], ["predict", str(toys.path("luong"))]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(python(*arguments), input=b"a b\n", stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 2
        assert done.stderr.lower().startswith(b"error: ")
        assert b"no space left on device" in done.stderr.lower()
        assert done.stderr.count(b"\n") == 1


def test_a_place_that_cannot_be_written(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = eyeline("predict", toys.path("luong"), "-o", tmp_path / "file" / "out.txt", stdin=b"a\n")
    assert str(tmp_path / "file") in done.error


def test_quiet_silences_notes_and_not_warnings(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    loud = eyeline("attend", toys.path("luong"), "--source", "a b", "-o", tmp_path / "a.json")
    quiet = eyeline("attend", toys.path("luong"), "--source", "a b", "-o", tmp_path / "a.json", "-q")
    assert (loud.out, quiet.out) == (b"", b"")
    assert "written" in loud.err
    assert quiet.err == ""
    warned = eyeline("predict", toys.path("luong"), "-q", "--max-length", "1", stdin=b"a b c d\n")
    assert warned.err == "warning: outputs that did not end before their maximum length: 1 (--max-length): line 1\n"


def test_results_go_to_standard_output_and_nothing_else_does(eyeline: Command, toys: ToyRuns) -> None:
    pairs = toys.pairs("told", [("a b", "b a"), ("c", "c")])
    json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-").out)
    json.loads(eyeline("info", toys.path("luong"), "--json").out)
    assert len(eyeline("score", toys.path("luong"), pairs).lines) == 2
    assert len(eyeline("align", toys.path("luong"), pairs).lines) == 2
    for done in (eyeline("predict", toys.path("luong"), stdin=b"a\n"), eyeline("score", toys.path("luong"), pairs)):
        assert done.err == ""


def test_progress_is_told_in_plain_lines_where_there_is_no_terminal(
    eyeline: Command, toys: ToyRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eyeline.cli.common.PLAIN_EVERY", 0.0)
    source = tmp_path / "in.txt"
    source.write_text("a\nb\n")
    done = eyeline("predict", toys.path("luong"), source)
    assert done.lines == ["a", "b"]
    assert [line.split("  ")[0] for line in done.err.splitlines()] == ["1 lines", "2 lines"]
    assert "lines/s" in done.err
    assert "left 0s" in done.err
    assert eyeline("predict", toys.path("luong"), source, "-q").err == ""


def test_a_run_whose_name_is_no_text(eyeline: Command, tmp_path: Path) -> None:
    assert "no such run directory" in eyeline("info", os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).error


def copy_of(run: Path, to: Path) -> Path:
    """The files of a run that prediction needs."""
    to.mkdir()
    for name in ("config.yaml", "model.safetensors", "source.tokenizer.json", "target.tokenizer.json"):
        (to / name).write_bytes((run / name).read_bytes())
    return to
