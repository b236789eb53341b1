"""A run directory: written whole, read back alike anywhere, and refused in one line when a part is absent, damaged or foreign."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import eyeline
from eyeline.config import Config
from eyeline.errors import ConfigError, RunError, UserError
from eyeline.ladder import Seq2Seq
from eyeline.runs import Run, create_run, load_weights, open_run, save_weights, weights_metadata
from eyeline.text.tokenizers import Tokenizer

TINY = {"embedding_size": 4, "encoder_size": 3, "decoder_size": 5, "attention_size": 6}
SRC = Path(eyeline.__file__).parent


def new_run(path: Path, shared: bool = False) -> Run:
    config = Config.from_dict({"tokenizer": {"shared": shared}, "model": {"architecture": "bahdanau", **TINY}})
    source = Tokenizer.train("character", ["abc", "def"], 50)
    target = source if shared else Tokenizer.train("character", ["wxyz"], 50)
    return create_run(path, config, source, target)


def with_weights(path: Path, shared: bool = False) -> Seq2Seq:
    run = new_run(path, shared)
    model = run.build()
    save_weights(model, run.weights, {"step": 7})
    return model.eval()


class Bomb:
    """An object whose unpickling writes a marker."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.marker), "w")


@pytest.mark.parametrize("shared", [False, True])
def test_a_run_that_was_moved_loads_alike(tmp_path: Path, shared: bool) -> None:
    model = with_weights(tmp_path / "first", shared)
    shutil.move(tmp_path / "first", tmp_path / "elsewhere ü")
    run = open_run(tmp_path / "elsewhere ü")
    loaded = run.load()
    assert not loaded.training
    for (name, one), other in zip(model.state_dict().items(), loaded.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    assert weights_metadata(run.weights) == {"step": 7}
    assert run.source.encode("abf").ids == [4, 5, 9]
    answers = [predictor.predict(["abc", "f"]) for predictor in (eyeline.load(run.path), eyeline.load(str(run.path)))]
    assert answers[0] == answers[1]


def test_shared_embeddings_are_stored_once_and_stay_shared(tmp_path: Path) -> None:
    with_weights(tmp_path / "run", shared=True)
    assert not (tmp_path / "run" / "target.tokenizer.json").exists()
    size = open_run(tmp_path / "run").source.size
    stored = load_file(tmp_path / "run" / "model.safetensors")
    assert sum(tensor.shape == (size, 4) for tensor in stored.values()) == 1
    loaded = open_run(tmp_path / "run").load()
    tables = {p.data_ptr() for p in loaded.parameters() if p.shape == (size, 4)}
    named = [name for name, p in loaded.named_parameters(remove_duplicate=False) if p.shape == (size, 4)]
    assert len(tables) == 1
    assert len(named) == 2


@pytest.mark.parametrize("shared", [False, True])
def test_the_same_weights_are_the_same_bytes(tmp_path: Path, shared: bool) -> None:
    """The library writes its entries for people in any order; a checksum of a file says whether two runs ended alike."""
    run = new_run(tmp_path / "run", shared)
    model = run.build()
    contents = set()
    for _ in range(12):
        save_weights(model, run.weights, {"step": 7, "version": 1, "metric": "loss"})
        contents.add(run.weights.read_bytes())
    assert len(contents) == 1
    assert weights_metadata(run.weights) == {"step": 7, "version": 1, "metric": "loss"}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_all_files_have_ordinary_permissions(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with_weights(tmp_path / "run")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run").iterdir()}
    assert sorted(modes) == ["config.yaml", "model.safetensors", "source.tokenizer.json", "target.tokenizer.json"]
    assert set(modes.values()) == {0o644}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no such run directory .*absent"):
        open_run(tmp_path / "absent")
    with pytest.raises(RunError, match=r"not a run directory: it has no config\.yaml"):
        open_run(tmp_path)
    run = new_run(tmp_path / "run")
    with pytest.raises(RunError, match=r"no trained weights yet .*model\.safetensors.*--resume"):
        run.load()
    (run.path / "target.tokenizer.json").unlink()
    with pytest.raises(RunError, match=r"a part of the run is missing .*target\.tokenizer\.json"):
        open_run(run.path)


def damage(path: Path, how: str, marker: Path) -> None:
    content = path.read_bytes()
    if how == "pickle":
        path.write_bytes(pickle.dumps(Bomb(marker)))
    elif how == "torch":
        torch.save({"model": Bomb(marker)}, path)
    else:
        path.write_bytes(content[: {"empty": 0, "half": len(content) // 2, "one byte short": len(content) - 1}[how]])


PARTS = ("model.safetensors", "source.tokenizer.json", "target.tokenizer.json")
DAMAGE = [
    *((name, how) for name in (*PARTS, "config.yaml") for how in ("pickle", "torch")),
    *((name, how) for name in PARTS for how in ("empty", "half")),
    ("model.safetensors", "one byte short"),
]


@pytest.mark.parametrize(("name", "how"), DAMAGE)
def test_a_damaged_or_foreign_part_is_refused_and_never_run(tmp_path: Path, name: str, how: str) -> None:
    """One line that names the file; nothing in it is executed."""
    with_weights(tmp_path / "run")
    damage(tmp_path / "run" / name, how, tmp_path / "marker")
    with pytest.raises((RunError, ConfigError)) as caught:
        eyeline.load(tmp_path / "run")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))
    assert not (tmp_path / "marker").exists()


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    with_weights(tmp_path / "one")
    run = new_run(tmp_path / "two", shared=True)
    shutil.copy(tmp_path / "one" / "model.safetensors", run.weights)
    with pytest.raises(RunError, match=r"the weights are not those of this model: .*model\.safetensors"):
        run.load()
    with pytest.raises(RunError, match="no such file"):
        load_weights(run.build(), tmp_path / "absent")


def test_no_space_for_weights_keeps_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own exception for a full disk is none that a user is shown."""
    from safetensors import SafetensorError

    from eyeline import runs

    with_weights(tmp_path / "run")
    run = open_run(tmp_path / "run")
    before = run.weights.read_bytes()

    def full(model: object, path: str, metadata: object) -> None:
        Path(path).write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(runs, "save_file", full)
    with pytest.raises(UserError) as caught:
        save_weights(run.build(), run.weights)
    assert str(caught.value) == f"cannot write: No space left on device ({run.weights})"
    assert run.weights.read_bytes() == before
    assert not [path for path in run.path.iterdir() if path.name.startswith(".")]


def test_nothing_in_the_package_unpickles() -> None:
    """No pickle, no torch.load, no numpy archive with objects: on no path at all."""
    wrong = re.compile(
        r"\bpickle\b(?!\s+anywhere)|torch\.load\(|torch\.save\(|allow_pickle\s*=\s*True|weights_only|\bshelve\b|\bjoblib\b|\bmarshal\b"
    )
    found = [
        f"{path.relative_to(SRC)}:{number}: {line}"
        for path in sorted(SRC.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if wrong.search(line)
    ]
    assert found == []
