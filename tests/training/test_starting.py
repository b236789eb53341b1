"""Embeddings that start from word vectors: which rows, of which rungs, what is said of it, and that resuming reads nothing."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import MODELS, Listener, events, newest, same_run, settings, train, train_and_stop, write_pairs

import eyeline
from eyeline.config import Config
from eyeline.contracts import RESERVED
from eyeline.errors import ConfigError, DataError
from eyeline.ladder import build
from eyeline.runs import open_run
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.starting import start_from_vectors
from rungs import RUNGS, SOURCE, TARGET

LETTERS = "abcdefgh"  # of which corpus C has the first six
STILL = {"steps": 1, "learning_rate": 1e-12}  # after which the weights are still what they were at the start


def vectors(path: Path, tokens: str | list[str] = LETTERS, width: int = 8, sign: int = 1) -> str:
    """A file whose row for the k-th token is k, k + 0.5, k + 1, …"""
    rows = [
        " ".join([token, *(str(sign * (place + column / 2)) for column in range(width))]) for place, token in enumerate(tokens)
    ]
    path.write_bytes("".join(f"{row}\n" for row in (f"{len(tokens)} {width}", *rows)).encode())
    return str(path)


def expected(place: int, width: int = 8, sign: int = 1) -> list[float]:
    return [sign * (place + column / 2) for column in range(width)]


def ids(tokenizer: Tokenizer) -> dict[str, int]:
    return {tokenizer.token(number): number for number in range(len(RESERVED), tokenizer.size)}


# Every architecture


@pytest.mark.parametrize("name", RUNGS)
def test_every_rung_shows_the_tables_that_its_symbols_are_read_by(name: str) -> None:
    model = build(RUNGS[name], SOURCE, TARGET)
    points, real = RUNGS[name].architecture == "pointer-network", getattr(RUNGS[name], "element_size", 0) > 0
    for table, size in ((model.source_table, None if real else SOURCE), (model.target_table, None if points else TARGET)):
        assert (None if table is None else table.num_embeddings) == size
        assert table is None or any(table.weight is parameter for parameter in model.parameters())
    if not points:
        shared = build(RUNGS[name], SOURCE, SOURCE, True)
        assert shared.source_table is shared.target_table is not None


SMALL: dict[str, dict[str, Any]] = {
    **MODELS,
    "transformer": {"architecture": "transformer", "tie_output": True},
    "pointer-generator": {"architecture": "pointer-generator"},
    "state-space": {"architecture": "state-space"},
}
OF_SIZE = {"size": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
RECURRENT = {"embedding_size": 8, "encoder_size": 8, "decoder_size": 12}


def model_settings(name: str) -> dict[str, Any]:
    return {**(OF_SIZE if name in ("transformer", "state-space") else RECURRENT), **SMALL[name]}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shared", [False, True])
def test_rows_start_as_the_file_has_them_and_no_other_row_changes(tmp_path: Path, name: str, shared: bool) -> None:
    values = {
        "model": model_settings(name),
        "tokenizer": {"kind": "whitespace-symbols", "shared": shared},
        "training": {
            "source_vectors": vectors(tmp_path / "a.vec", "xabc"),
            "target_vectors": vectors(tmp_path / "b.vec", "cdy", sign=-1),
        },
    }
    config = Config.from_dict(values)
    source = Tokenizer.train("whitespace-symbols", ["a b c d e"], 100, features=["V"])
    target = source if shared else Tokenizer.train("whitespace-symbols", ["c d e f"], 100)
    torch.manual_seed(1)
    drawn = build(config.model, source.size, target.size, shared)
    torch.manual_seed(1)
    model = build(config.model, source.size, target.size, shared)
    covered = start_from_vectors(config, model, source, target)
    counts = [(each.side, each.entries, each.covered) for each in covered]
    assert counts == [("source", 5, 3), ("target", 5 if shared else 4, 1 if shared else 2)]
    starts = {"source": {"a": (1, 1), "b": (2, 1), "c": (3, 1)}, "target": {"c": (0, -1), "d": (1, -1)}}
    if shared:  # what the source's file gives stays, the target's gives the rest
        starts["source"] = starts["target"] = {**starts["target"], **starts["source"]}
    for side, tokenizer in (("source", source), ("target", target)):
        table, before = getattr(model, f"{side}_table").weight, getattr(drawn, f"{side}_table").weight
        known = {number: starts[side].get(token) for token, number in ids(tokenizer).items()}
        for number in range(tokenizer.size):
            start = known.get(number)
            row = before[number].tolist() if start is None else expected(start[0], sign=start[1])
            assert table[number].tolist() == row
    head = dict(model.head.named_parameters())
    tied = [weight for weight in head.values() if weight is model.target_table.weight]  # type: ignore[union-attr]
    assert len(tied) == (name in ("transformer", "state-space"))
    others = [
        (n, p)
        for n, p in model.named_parameters()
        if not any(p is t.weight for t in (model.source_table, model.target_table) if t)
    ]
    assert others
    assert all(torch.equal(parameter, drawn.get_parameter(name)) for name, parameter in others)


def test_entries_are_looked_up_as_they_are_and_then_composed(tmp_path: Path) -> None:
    blanks = ["\u00a0", "\u3000", "\u0085", "\u001c"]
    decomposed = unicodedata.normalize("NFD", "é한")
    source = Tokenizer.train("character", [decomposed[0] + "".join(blanks) + "x y"], 100)
    whole = Tokenizer.train("word", ["é한 ist. das ."], 100)
    both = [*blanks, " ", "x", "é한", ".", "das"]
    path = vectors(tmp_path / "a.vec", both)
    values = {"model": RECURRENT, "training": {"source_vectors": path, "target_vectors": path}}
    config = Config.from_dict(values)
    model = build(config.model, source.size, whole.size)
    covered = start_from_vectors(config, model, source, whole)
    for token in (*blanks, " ", "x"):
        assert model.source_table.weight[ids(source)[token]].tolist() == expected(both.index(token))  # type: ignore[union-attr]
    dots = [number for number in range(len(RESERVED), whole.size) if whole.token(number) == "."]
    assert len(dots) == 2, "with a blank before it, and without"
    for number in (*dots, ids(whole)["das"], ids(whole)["é한"]):
        assert model.target_table.weight[number].tolist() == expected(both.index(whole.token(number)))  # type: ignore[union-attr]
    assert [each.covered for each in covered] == [6, 4]
    spelt = Tokenizer.train("word", [decomposed], 100)
    model = build(config.model, source.size, spelt.size)
    assert start_from_vectors(config, model, source, spelt)[1].covered == 1
    assert model.target_table.weight[4].tolist() == expected(both.index("é한"))  # type: ignore[union-attr]


# A whole run


def test_a_run_starts_from_them_and_says_so(tmp_path: Path) -> None:
    path = vectors(tmp_path / "a.vec", "abch")
    config = settings(tmp_path, "luong", training={**STILL, "source_vectors": path})
    said = train(config, tmp_path / "run")
    assert f"source vectors: 3 of 6 entries (50.0 %) start from {path}\n" in said
    assert "target vectors" not in said
    run = open_run(tmp_path / "run")
    table = run.load().source_table.weight  # type: ignore[union-attr]
    for place, letter in enumerate("abc"):
        assert table[ids(run.source)[letter]].tolist() == pytest.approx(expected(place), abs=1e-6)
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert f"| source vectors | 3 of 6 entries (50.0 %) start from {path} |\n" in card
    told = {"step": 0, "split": "vectors", "side": "source", "file": path, "entries": 6, "covered": 3}
    assert events(tmp_path / "run", "vectors") == [told]
    assert Config.from_yaml(tmp_path / "run" / "config.yaml").training.source_vectors == path


def test_without_them_nothing_is_said_and_nothing_drawn_otherwise(tmp_path: Path) -> None:
    assert "vectors:" not in train(settings(tmp_path, training=STILL), tmp_path / "plain")
    assert " vectors |" not in (tmp_path / "plain" / "README.md").read_text(encoding="utf-8")
    given = settings(tmp_path, training={**STILL, "target_vectors": vectors(tmp_path / "a.vec", "xyz")})
    said = train(given, tmp_path / "none")
    assert "warning: target vectors: 0 of 6 entries (0.0 %) start from" in said
    plain, none = (open_run(tmp_path / name).load().state_dict() for name in ("plain", "none"))
    assert all(torch.equal(plain[name], none[name]) for name in plain)


def test_resuming_reads_no_vectors_and_the_card_still_tells_of_them(tmp_path: Path) -> None:
    path = Path(vectors(tmp_path / "a.vec"))
    config = settings(tmp_path, training={"source_vectors": str(path), "target_vectors": str(path)})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 7)
    path.unlink()
    said = train(config, tmp_path / "parts", resume=True)
    assert "going on from step 7" in said
    assert "vectors:" not in said
    same_run(tmp_path / "whole", tmp_path / "parts")
    assert [event["side"] for event in events(tmp_path / "parts", "vectors")] == ["source", "target"]
    for run in ("whole", "parts"):
        card = (tmp_path / run / "README.md").read_text(encoding="utf-8")
        assert f"| target vectors | 6 of 6 entries (100.0 %) start from {path} |" in card


def test_a_run_without_a_checkpoint_starts_once_more(tmp_path: Path) -> None:
    config = settings(tmp_path, training={"source_vectors": vectors(tmp_path / "a.vec")})
    train(config, tmp_path / "whole")
    train(config, tmp_path / "again")
    for checkpoint in (tmp_path / "again" / "checkpoints").iterdir():
        for file in checkpoint.iterdir():
            file.unlink()
        checkpoint.rmdir()
    assert "source vectors: 6 of 6" in train(config, tmp_path / "again", resume=True)
    same_run(tmp_path / "whole", tmp_path / "again")
    assert newest(tmp_path / "again").name == "step-20"


def test_a_run_goes_on_with_its_own_vectors(tmp_path: Path) -> None:
    train_and_stop(settings(tmp_path), tmp_path / "run", 7)
    other = settings(tmp_path, training={"target_vectors": vectors(tmp_path / "a.vec")})
    with pytest.raises(ConfigError, match=r"was begun with \(training\.target_vectors=.*a\.vec\); it was begun with None"):
        eyeline.train(other, tmp_path / "run", resume=True, reporter=Listener())


# What cannot be is refused before anything is written


@pytest.mark.parametrize(
    ("name", "setting"), [("luong", "embedding_size"), ("seq2seq", "embedding_size"), ("transformer", "size")]
)
def test_another_width_names_both_and_leaves_nothing(tmp_path: Path, name: str, setting: str) -> None:
    path = vectors(tmp_path / "a.vec", width=6)
    config = settings(tmp_path, "luong", training={"target_vectors": path})
    values = config.to_dict() | {"model": model_settings(name)}
    with pytest.raises(ConfigError) as caught:
        eyeline.train(Config.from_dict(values), tmp_path / "run", reporter=Listener())
    what = "vectors of 6 numbers cannot start an embedding of 8"
    assert str(caught.value) == f"{what} (training.target_vectors={path}); model.{setting}=6 would fit"
    assert not (tmp_path / "run").exists()


def test_a_file_at_fault_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_bytes(b"2 8\na 1 2 3 4 5 6 7 8\nb 1 2\n")
    for name, said in (("a.vec", r"2 numbers where 8 are wanted .*a\.vec:3"), ("b.vec", "no such file")):
        config = settings(tmp_path, training={"source_vectors": str(tmp_path / name)})
        with pytest.raises(DataError, match=said):
            eyeline.train(config, tmp_path / "run", reporter=Listener())
        assert not (tmp_path / "run").exists()


def test_positions_and_numbers_have_no_vectors(tmp_path: Path) -> None:
    for side, source in (("target", "a b"), ("source", "[[0.5], [0.25]]")):
        pairs = write_pairs(tmp_path / side / "train.tsv", [(source, "1 0")])
        values = {
            "data": {"train": [pairs]},
            "model": {"architecture": "pointer-network", **RECURRENT},
            "training": {"steps": 1, f"{side}_vectors": vectors(tmp_path / "a.vec")},
        }
        with pytest.raises(ConfigError, match=f"pointer-network has no embedding of {side} symbols here"):
            eyeline.train(Config.from_dict(values), tmp_path / "run", reporter=Listener())
