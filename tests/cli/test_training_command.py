"""`train`, `init`, `info` and `quickstart`: what is typed is what is trained. Knows the command line; not how training goes."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_process import ASCII_LOCALE, Command, Done

import eyeline as package
from eyeline.cli import spread
from eyeline.cli.common import ARCHITECTURES
from eyeline.config import Config
from eyeline.config_models import MODEL_SETTINGS
from eyeline.starter import starting_config
from toy_runs import INFLECTED, ODD, ToyRuns, reversal, write_pairs

TINY = [
    *("--set", "model.embedding_size=8"),
    *("--set", "model.encoder_size=8"),
    *("--set", "model.decoder_size=8"),
    *("--set", "training.validate_every=100"),
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Training and validation pairs."""
    return write_pairs(tmp_path / "train.tsv", reversal(20, 1)), write_pairs(tmp_path / "valid.tsv", reversal(5, 2))


def settings_of(run: Path) -> Config:
    return Config.from_yaml(run / "config.yaml")


# ---- arguments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train --train a b --out r", "train --train a --train b --out r"),
        ("train --train a b c --valid d e", "train --train a --train b --train c --valid d --valid e"),
        ("train config.yaml --train a", "train config.yaml --train a"),
        ("train --train=a b --out r", "train --train=a --train b --out r"),
        ("train --train a --train b", "train --train a --train b"),
        ("train --out r config.yaml", "train --out r config.yaml"),
        ("train --train a -q b", "train --train a -q b"),
        ("predict r -", "predict r -"),
    ],
)
def test_options_take_every_path_up_to_the_next_option(typed: str, meant: str) -> None:
    assert spread(typed.split()) == meant.split()


def test_settings_come_from_the_file_then_from_options_then_from_set(
    eyeline: Command, files: tuple[str, str], tmp_path: Path
) -> None:
    train, valid = files
    file = tmp_path / "config.yaml"
    file.write_text(
        f"data: {{train: nowhere.tsv, valid: {valid}}}\n"
        "model: {architecture: seq2seq, encoder_size: 8, decoder_size: 8, embedding_size: 8, cell: gru}\n"
        "training: {epochs: 50, validate_every: 100}\n"
        "seed: 5\n"
    )
    run = tmp_path / "run"
    given = ["--train", train, train, "--steps", "2", "--seed", "7", "--set", "model.cell=rnn", "--set", "search.beam_size=2"]
    eyeline("train", file, "--out", run, *given).well()
    config = settings_of(run)
    assert config.data.train == [train, train]
    assert config.data.valid == [valid]
    assert (config.training.steps, config.training.epochs) == (2, None)
    assert (config.seed, config.search.beam_size) == (7, 2)
    assert config.model.cell == "rnn"
    assert config.model.architecture == "seq2seq"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--set", "model.encoder_sise=8"], "did you mean 'encoder_size'?"),
        (["--set", "modle.encoder_size=8"], "did you mean 'model'?"),
        (["--set", "training.steps=many"], "training.steps"),
        (["--set", "training.steps"], "training.steps"),
        (["--architecture", "bahdanu"], "did you mean 'bahdanau'?"),
        (["--steps", "3", "--epochs", "2"], "one of steps, epochs, target_tokens and for bounds a run, not steps and epochs"),
        (["--for", "soon"], "a duration is written as 90s, 45m, 1h30m"),
        (["--columns", "source,goal"], "'goal'"),
        (["--on-bad-line", "stop"], "on_bad_line"),
        (["--more-steps", "3"], "--more-steps 3"),
        (["--device", "gpu"], "--device gpu"),
    ],
)
def test_mistakes_in_settings_are_one_line_and_leave_nothing(
    eyeline: Command, files: tuple[str, str], tmp_path: Path, given: list[str], named: str
) -> None:
    error = eyeline("train", "--train", files[0], "--valid", files[1], "--out", tmp_path / "run", *given).error
    assert named in error
    assert not (tmp_path / "run").exists()


def test_files_that_are_absent_empty_or_bad(eyeline: Command, tmp_path: Path) -> None:
    assert "nothing to train on" in eyeline("train", "--out", tmp_path / "run").error
    assert "absent.yaml" in eyeline("train", tmp_path / "absent.yaml", "--out", tmp_path / "run").error
    (tmp_path / "bad.yaml").write_text("data: [\n")
    assert f"{tmp_path}/bad.yaml:" in eyeline("train", tmp_path / "bad.yaml", "--out", tmp_path / "run").error
    (tmp_path / "wrong.yaml").write_text("modle: {}\n")
    assert "did you mean 'model'?" in eyeline("train", tmp_path / "wrong.yaml", "--out", tmp_path / "run").error
    assert "absent.tsv" in eyeline("train", "--train", tmp_path / "absent.tsv", "--out", tmp_path / "run").error
    (tmp_path / "bad.tsv").write_bytes(b"a\tb\nc\n")
    assert f"{tmp_path}/bad.tsv:2" in eyeline("train", "--train", tmp_path / "bad.tsv", "--out", tmp_path / "run").error
    assert not (tmp_path / "run").exists()


# ---- forms of pairs -----------------------------------------------------------------------------------------------------


def trained(eyeline: Command, run: Path, *arguments: str | Path) -> Done:
    done = eyeline("train", "--out", run, "--steps", "2", *TINY, *arguments)
    assert done.status == 0, done.err
    assert done.out == b""
    assert (run / "model.safetensors").exists()
    return done


def test_every_form_of_pairs_trains_the_same_vocabulary(eyeline: Command, tmp_path: Path) -> None:
    pairs = reversal(20, 1)
    write_pairs(tmp_path / "a.tsv", pairs)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress((tmp_path / "a.tsv").read_bytes()))
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in pairs))
    (tmp_path / "d.de").write_text("".join(f"{source}\n" for source, _ in pairs))
    (tmp_path / "d.en").write_text("".join(f"{target}\n" for _, target in pairs))
    (tmp_path / "e.tsv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.tsv").read_bytes().replace(b"\n", b"\r\n"))
    forms: list[Sequence[str]] = [
        ["a.tsv"],
        ["b.tsv.gz"],
        ["c.jsonl"],
        ["d.de", "d.en"],
        ["d.{de,en}"],
        ["e.tsv"],
    ]
    made = []
    for number, form in enumerate(forms):
        paths = [f"{tmp_path}/{name}" for name in form]
        run = tmp_path / f"run{number}"
        trained(eyeline, run, "--train", *paths, "--valid", *paths, "--set", "tokenizer.kind=whitespace-symbols")
        made.append([(run / f"{side}.tokenizer.json").read_bytes() for side in ("source", "target")])
        losses = [json.loads(line) for line in (run / "metrics.jsonl").read_text().split("\n") if line]
        made[-1].append(json.dumps([line["loss"] for line in losses]).encode())
    assert all(one == made[0] for one in made)


def test_a_shared_vocabulary(eyeline: Command, files: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    trained(eyeline, run, "--train", files[0], "--valid", files[1], "--set", "tokenizer.shared=true", "--architecture", "luong")
    assert not (run / "target.tokenizer.json").exists()
    assert len(eyeline("predict", run, "-q", "--max-length", "3", stdin=b"a b\n\n").lines) == 2
    assert len(eyeline("score", run, files[1]).lines) == 5


def test_features_from_training_to_evaluation(eyeline: Command, tmp_path: Path) -> None:
    file, run = write_pairs(tmp_path / "inflected.tsv", INFLECTED), tmp_path / "run"
    trained(eyeline, run, "--train", file, "--valid", file, "--columns", "source,target,features", "--steps", "5")
    assert len(eyeline("predict", run, "-q", stdin=b"walk\tV;PST\nbark\tV;PRS;3\n").lines) == 2
    assert json.loads(eyeline("evaluate", run, file, "--json", "-").out)["n"] == 6
    assert json.loads(eyeline("info", run, "--json").out)["features"] == 4


def test_blank_sides_are_left_out_and_counted(eyeline: Command, tmp_path: Path) -> None:
    pairs = reversal(40, 1)
    pairs[4], pairs[8] = ("", "a"), ("a", " ")
    file = write_pairs(tmp_path / "train.tsv", pairs)
    said = trained(eyeline, tmp_path / "run", "--train", file).err
    assert f"empty source: 1 ({file}:5)" in said
    assert f"empty target: 1 ({file}:9)" in said
    assert "training lines 38 38" in " ".join(said.split())


def test_training_in_an_ascii_locale(process: Command, tmp_path: Path) -> None:
    file, run = write_pairs(tmp_path / "odd.tsv", ODD), tmp_path / "run"
    given = ["--train", file, "--valid", file, "--out", run, "--steps", "2", *TINY]
    done = process("train", *given, env=ASCII_LOCALE)
    assert done.status == 0, done.err
    assert "한국어" in done.err
    assert "한" in (run / "source.tokenizer.json").read_text(encoding="utf-8")
    evaluated = process("evaluate", run, file, env=ASCII_LOCALE)
    assert evaluated.status == 0, evaluated.err
    evaluated.out.decode("utf-8")
    name = tmp_path / "läuft.tsv"
    name.write_bytes(Path(file).read_bytes())
    error = process("train", "--train", name, "--out", tmp_path / "other", env=ASCII_LOCALE).error
    assert "this locale cannot read the path" in error
    assert "PYTHONUTF8=1" in error


# ---- going on -----------------------------------------------------------------------------------------------------------


def test_a_run_in_the_way_and_going_on_with_it(eyeline: Command, files: tuple[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    trained(eyeline, run, "--train", files[0], "--valid", files[1])
    assert "--resume goes on with it" in eyeline("train", "--train", files[0], "--out", run).error
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    done = eyeline("train", "--out", run, "--resume").well()
    assert "--more-steps N adds" in done.err
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    assert eyeline("train", "--out", run, "--resume", "-q").err == ""
    eyeline("train", "--out", run, "--resume", "--more-steps", "3").well()
    assert json.loads(eyeline("info", run, "--json").out)["steps"] == 5


def test_quiet_training_says_nothing(eyeline: Command, files: tuple[str, str], tmp_path: Path) -> None:
    done = eyeline("train", "--train", files[0], "--valid", files[1], "--out", tmp_path / "run", "--steps", "1", *TINY, "-q")
    assert (done.status, done.out, done.err) == (0, b"", "")


# ---- init, info ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", MODEL_SETTINGS)
def test_what_init_writes_is_complete_and_trains_as_it_is(eyeline: Command, tmp_path: Path, rung: str) -> None:
    file = tmp_path / "config.yaml"
    done = eyeline("init", "--architecture", rung, "--out", file).well()
    assert f"written: {file}" in done.err
    text = file.read_text(encoding="utf-8")
    assert Config.from_yaml(file) == starting_config(rung)
    assert "# hypotheses kept; 1 is greedy" in text
    assert eyeline("init", "--architecture", rung).out == text.encode()
    assert "this file exists already" in eyeline("init", "--out", file).error
    assert file.read_text(encoding="utf-8") == text
    if rung in ("luong", "pointer-network", "pointer-generator"):
        eyeline("train", file, "--out", tmp_path / "run", "--steps", "2").well()
        assert settings_of(tmp_path / "run").training.steps == 2


def test_help_names_every_architecture() -> None:
    assert re.split(", | or ", ARCHITECTURES.rstrip(".")) == list(MODEL_SETTINGS)


def test_init_takes_a_seed(eyeline: Command) -> None:
    assert b"\nseed: 9\n" in eyeline("init", "--seed", "9").out


def test_info_as_text_and_as_json(eyeline: Command, toys: ToyRuns) -> None:
    text = eyeline("info", toys.path("luong")).well().lines
    facts = json.loads(eyeline("info", toys.path("luong"), "--json").well().out)
    assert facts["architecture"] == "luong"
    assert facts["steps"] == 140
    assert "architecture       luong" in text
    heads = [line[:19].strip().replace(" ", "_") for line in text if not line.startswith(" ")]
    assert heads == list(facts)
    assert "    architecture: luong" in text[text.index("settings") :]


# ---- quickstart ---------------------------------------------------------------------------------------------------------


def test_quickstart_from_nothing_to_pictures(eyeline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(seed: int | None = None) -> Config:
        config = starting_config(seed=seed)
        training = {"epochs": None, "steps": 2, "validate_every": 100}
        return config.model_copy(update={"training": config.training.model_copy(update=training)})

    monkeypatch.setattr("eyeline.quickstart.starting_config", short)
    out = tmp_path / "quick"
    done = eyeline("quickstart", "--out", out)
    assert done.status == 0, done.err
    said = done.out.decode()
    shown = [line.strip()[2:].partition(" → ")[0] for line in said.split("\n") if line.startswith(("  ✓ ", "  ✗ "))]
    german, korean, arabic = shown[:3]
    assert any(month in german for month in ("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August")) or (
        any(month in german for month in ("September", "Oktober", "November", "Dezember"))
    )
    assert "년" in korean
    assert any("\u0600" <= letter <= "\u06ff" for letter in arabic)
    assert "On 1,000 held-out dates" in said
    assert "attention against the gold links" in said
    pictures = sorted(path.name for path in out.glob("attention-*"))
    assert pictures == [f"attention-{number}.{kind}" for number in (1, 2, 3) for kind in ("png", "svg")]
    assert german in (out / "attention-1.svg").read_text(encoding="utf-8")  # a script for which all have a font
    result = json.loads((out / "evaluation.json").read_bytes())
    assert result["n"] == 1000
    assert 0 <= result["alignment"]["f1"] <= 100
    assert package.load(out).predict(["3. Oktober 1990"])[0].text
