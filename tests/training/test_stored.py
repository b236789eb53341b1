"""Prepared data: trained on, it is the run that text would have been; what does not go with it is one clear line."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import reversal, same_tensors, settings, train, train_and_stop, write_pairs

from eyeline.config import Config
from eyeline.data import plan
from eyeline.data import store as stores
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, DataError, RunError, UserError
from eyeline.text import spool
from eyeline.training import portions, storing
from eyeline.training.preparation import prepare
from eyeline.training.stored import Stored
from eyeline.training.storing import store

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty pairs in several shards and chunks."""
    monkeypatch.setattr(stores, "SHARD", 60)
    monkeypatch.setattr(spool, "CHUNK", 7)
    monkeypatch.setattr(storing, "CHUNK", 9)
    monkeypatch.setattr(portions, "CHUNK", 5)


def of(folder: Path, config: Config, **sections: Any) -> Config:
    """The same settings, of which `data` names nothing but the prepared directory and the validation pairs."""
    values = config.to_dict()
    data = {"train": [str(folder)], "valid": values["data"]["valid"], **sections.pop("data", {})}
    return Config.from_dict(
        {**{name: values[name] for name in ("model", "training", "search", "seed")}, "data": data, **sections}
    )


def same_corpus(one: Corpus, other: Corpus) -> None:
    assert len(one) == len(other)
    assert one.parts == other.parts
    rows = np.random.default_rng(1).permutation(len(one))
    a, b = one.batch(rows), other.batch(rows)
    for name in ("inputs", "outputs", "target_mask", "links"):
        assert str(getattr(a, name)) == str(getattr(b, name))
    for name in ("ids", "lengths", "copy_ids", "values", "extra"):
        assert str(getattr(a.source, name)) == str(getattr(b.source, name))


TAGGED = {"corpora": [{"pairs": "BACK", "tag": "back", "weight": 0.5}], "filter": {"duplicates": "drop"}}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "pieces": {"tokenizer": {"kind": "bpe", "size": 30, "shared": True}},
    "mixed": {"data": TAGGED},
    "copies": {"model": {"architecture": "pointer-generator"}, "tokenizer": {"kind": "whitespace-symbols", "size": 8}},
    "links": {"data": {"columns": ["source", "target", "alignment"]}, "training": {"guided_alignment": 0.5}},
    "cut": {"data": {"max_length": 5, "too_long": "truncate"}},
    "left out": {"data": {"max_length": 5, "too_long": "skip"}},
}


def case(folder: Path, name: str) -> Config:
    sections = json.loads(json.dumps(CASES[name]).replace("BACK", str(folder / "back.tsv")))
    write_pairs(folder / "back.tsv", [*reversal(9, seed=9), *reversal(9, seed=9)])
    if name == "links":
        pairs = [(s, t, f"0-{len(t.split()) - 1}") for s, t in reversal()]
        write_pairs(folder / "train.tsv", pairs)
        write_pairs(folder / "valid.tsv", pairs[:5])
    return settings(folder, **sections)


@pytest.mark.parametrize("name", CASES)
def test_prepared_data_are_the_pairs_of_the_text(tmp_path: Path, name: str) -> None:
    config = case(tmp_path, name)
    report = store(config, tmp_path / "data")
    keys = {key: config.to_dict()["data"][key] for key in ("columns", "max_length", "too_long")}
    text, prepared = prepare(config, None), prepare(of(tmp_path / "data", config, data=keys), None)
    assert prepared.source.content == text.source.content
    assert prepared.target.content == text.target.content
    same_corpus(text.train.corpus(), prepared.train.corpus())
    assert prepared.report.render() == text.report.render()
    assert (tmp_path / "data" / "report.txt").read_text(encoding="utf-8") == report.render() + "\n"
    assert report.rows() == [row for row in text.report.rows() if "validation" not in row[0]]
    files = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert sum(file.endswith(".arrow") for file in files) >= 2
    assert not [file for file in files if file.startswith("pairs")]


def test_numbers_and_positions(tmp_path: Path) -> None:
    lines = [{"source": [[0.5, n], [n, 2.0], [1, 1]][: 2 + n % 2], "target": [1, 0]} for n in range(20)]
    for name in ("train", "valid"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files = {"train": str(tmp_path / "train.jsonl"), "valid": str(tmp_path / "valid.jsonl")}
    config = Config.from_dict({"data": files, "model": {"architecture": "pointer-network"}})
    store(config, tmp_path / "data")
    text, prepared = prepare(config, None), prepare(of(tmp_path / "data", config), None)
    assert prepared.config.numbers == 2
    same_corpus(text.train.corpus(), prepared.train.corpus())


@pytest.mark.parametrize(("name", "pool", "data"), [("mixed", 16, {}), ("pieces", plan.POOL, {"bpe_dropout": 0.2})])
def test_a_run_on_prepared_data_is_the_run_on_text(
    tmp_path: Path, name: str, pool: int, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights bit for bit, also when it is stopped in mid-epoch and goes on, and when an epoch is more than a pool of pairs."""
    monkeypatch.setattr(plan, "POOL", pool)
    written = case(tmp_path, name)
    store(written, tmp_path / "data")
    config = Config.from_dict({**written.to_dict(), "data": {**written.to_dict()["data"], **data}})
    kind = {"tokenizer": {"kind": written.tokenizer.kind}}
    train(config, tmp_path / "text")
    train_and_stop(of(tmp_path / "data", config, data=data, **kind), tmp_path / "run", 7)
    train(of(tmp_path / "data", config, data=data, **kind), tmp_path / "run", resume=True)
    same_tensors(tmp_path / "text" / "model.safetensors", tmp_path / "run" / "model.safetensors")
    assert (tmp_path / "run" / "source.tokenizer.json").exists()


def test_ids_are_as_small_as_they_can_be(tmp_path: Path) -> None:
    import pyarrow as arrow

    store(settings(tmp_path), tmp_path / "data")
    with arrow.memory_map(str(tmp_path / "data" / "000-00000.arrow")) as file:
        schema = arrow.ipc.open_file(file).schema
    assert [str(field.type) for field in schema] == ["large_list<item: uint16>", "large_list<item: uint16>"]
    assert [stores.id_bytes(largest) for largest in (65_535, 65_536)] == [2, 4]
    wide = stores.ShardWriter(tmp_path, "wide", stores.Kinds(4, 4))
    wide.add([70_000, 5], [6])
    wide.flush()
    assert stores.mapped_corpus(tmp_path, wide.shards, 0).batch([0]).source.ids.tolist() == [[70_000, 5, 3]]


def test_every_form_of_pairs_becomes_the_same_ids(tmp_path: Path) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    pairs = reversal()
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    lines = "".join(json.dumps({"src": s, "tgt": t}) + "\n" for s, t in pairs)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    parquet.write_table(arrow.table({"source": sides[0], "target": sides[1]}), tmp_path / "b.parquet")
    for name, texts in zip(("c.de", "c.en"), sides, strict=True):
        (tmp_path / name).write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    write_pairs(tmp_path / "d.tsv", [("V", target, source) for source, target in pairs])
    forms = [["a.jsonl.gz"], ["b.parquet"], ["c.{de,en}"], ["d.tsv"]]
    sums = []
    for number, names in enumerate(forms):
        data = {"train": [str(tmp_path / name) for name in names]}
        columns = {"columns": ["-", "target", "source"]} if names == ["d.tsv"] else {}
        store(settings(tmp_path, data={**data, **columns}), tmp_path / f"data-{number}")
        manifest = Stored.open(tmp_path / f"data-{number}").manifest
        sums.append([(shard["pairs"], shard["checksum"]) for shard in manifest["corpora"][0]["shards"]])
    assert len(sums[0]) > 2
    assert all(each == sums[0] for each in sums)


def test_pairs_are_shown_on_their_way(tmp_path: Path) -> None:
    """While they are read, and once more while they become ids."""
    said: list[tuple[str, int | None, int]] = []

    def watch(pairs: Iterator[Any], work: str, count: int | None) -> Iterator[Any]:
        handed_on = 0
        for pair in pairs:
            yield pair
            handed_on += 1
        said.append((work, count, handed_on))

    store(settings(tmp_path), tmp_path / "data", watch)
    assert said == [("pairs read", None, 40), ("pairs as ids", 40, 40)]


def test_weights_may_be_others_than_were_prepared(tmp_path: Path) -> None:
    config = case(tmp_path, "mixed")
    store(config, tmp_path / "data")
    corpora = [{"pairs": config.data.train}, {"pairs": str(tmp_path / "back.tsv"), "tag": "back", "weight": 3}]
    made = prepare(of(tmp_path / "data", config, data={"corpora": corpora}), None)
    assert [part.draws for part in made.train.corpus().parts] == [40, 27]
    corpora[1]["tag"] = "other"
    with pytest.raises(ConfigError, match=r"other corpora than were prepared .data\.corpora"):
        prepare(of(tmp_path / "data", config, data={"corpora": corpora}), None)


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"data": {"lowercase": True}}, r"made with data\.lowercase=False .data\.lowercase=True"),
        ({"tokenizer": {"kind": "character"}}, r"made with tokenizer\.kind=whitespace-symbols .tokenizer\.kind=character"),
        ({"model": {"architecture": "pointer-generator"}}, r"model\.architecture=pointer-generator.*prepare with this"),
        ({"data": {"max_length": 7}}, r"a prepared pair has 8 tokens .data\.max_length=7"),
        ({"data": {"filter": {"max_ratio": 2}}}, r"made with data\.filter\.max_ratio=None .data\.filter\.max_ratio=2"),
        ({"data": {"corpora": [{"pairs": "DATA"}]}}, r"beside other pairs .*; prepare all of them together"),
        ({"training": {"guided_alignment": 0.5}}, "no gold links"),
    ],
)
def test_what_does_not_go_with_it_is_one_line(tmp_path: Path, sections: dict[str, Any], named: str) -> None:
    config = settings(tmp_path)
    store(config, tmp_path / "data")
    sections = json.loads(json.dumps(sections).replace("DATA", str(tmp_path / "data")))
    with pytest.raises(ConfigError, match=named):
        train(of(tmp_path / "data", config, **sections), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_it_is_not_fine_tuned_on(tmp_path: Path) -> None:
    config = settings(tmp_path)
    store(config, tmp_path / "data")
    with pytest.raises(ConfigError, match=r"cannot be held against .*training\.from=runs/other"):
        prepare(of(tmp_path / "data", config, training={"from": "runs/other"}), None)


def test_damage_is_named(tmp_path: Path) -> None:
    config = settings(tmp_path)
    store(config, tmp_path / "data")
    shard = tmp_path / "data" / "000-00001.arrow"
    whole = shard.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 3] ^= 1
    for content in (whole[:-1], b"", b"x" * len(whole), bytes(turned)):
        shard.write_bytes(content)
        with pytest.raises(RunError, match=r"000-00001\.arrow"):
            prepare(of(tmp_path / "data", config), None)
    shard.unlink()
    with pytest.raises(RunError, match=r"000-00001\.arrow"):
        prepare(of(tmp_path / "data", config), None)
    (tmp_path / "data" / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunError, match=r"manifest\.json"):
        Stored.open(tmp_path / "data")


def test_other_vocabularies_are_refused(tmp_path: Path) -> None:
    """In the directory itself, and where it was prepared anew under a run that goes on."""
    config = settings(tmp_path)
    store(config, tmp_path / "data")
    train_and_stop(of(tmp_path / "data", config), tmp_path / "run", 7)
    write_pairs(tmp_path / "train.tsv", [("x y z", "z y x"), *reversal()])
    store(config, tmp_path / "other")
    tokenizer = tmp_path / "data" / "source.tokenizer.json"
    before = tokenizer.read_bytes()
    shutil.copy(tmp_path / "other" / "source.tokenizer.json", tokenizer)
    with pytest.raises(RunError, match=r"not those that the ids were made with .*/data"):
        Stored.open(tmp_path / "data")
    tokenizer.write_bytes(before)
    (tmp_path / "data").rename(tmp_path / "first")
    (tmp_path / "other").rename(tmp_path / "data")
    with pytest.raises(ConfigError, match=r"other vocabularies than the run .data\.train="):
        train(of(tmp_path / "data", config), tmp_path / "run", resume=True)


def test_other_pairs_are_refused(tmp_path: Path) -> None:
    """Prepared anew with the same vocabularies."""
    config = settings(tmp_path)
    store(config, tmp_path / "data")
    train_and_stop(of(tmp_path / "data", config), tmp_path / "run", 7)
    shutil.rmtree(tmp_path / "data")
    write_pairs(tmp_path / "train.tsv", list(reversed(reversal())))
    store(config, tmp_path / "data")
    with pytest.raises(ConfigError, match="the training pairs are not those that this run was begun with"):
        train(of(tmp_path / "data", config), tmp_path / "run", resume=True)


# ---- what cannot be written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "data", "named"),
    [
        (b"", {}, r"no pairs: the file is empty .*train\.tsv"),
        (b" \tb\n", {}, r"a side is blank or was filtered out .*train\.tsv"),
        (b"a b\tb a\n", {"filter": {"min_characters": 9}}, r"a side is blank or was filtered out .*train\.tsv"),
        (b"a b c\tb a\n", {"max_length": 2, "too_long": "skip"}, r"more than data\.max_length=2 tokens .*train\.tsv"),
    ],
)
def test_a_corpus_without_a_pair_is_refused(tmp_path: Path, content: bytes, data: dict[str, Any], named: str) -> None:
    config = settings(tmp_path, data=data)
    (tmp_path / "train.tsv").write_bytes(content)
    with pytest.raises(DataError, match=named):
        store(config, tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.tsv", "valid.tsv"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write: .*train\.tsv/data"):
        store(settings(tmp_path), tmp_path / "train.tsv" / "data")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, where this machine lets us make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("lines", [200, 1000], ids=["among the shards", "while text is put aside"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, small_disk: Path, lines: int) -> None:
    write_pairs(tmp_path / "train.tsv", reversal(lines))
    with pytest.raises(UserError, match=f"cannot write: No space left on device .{small_disk}/data"):
        store(settings(tmp_path), small_disk / "data")
    assert list(small_disk.iterdir()) == []


def test_what_a_killed_preparation_left_goes_with_the_next(tmp_path: Path) -> None:
    for name in (".data.0123abcd.partial", ".database.0123abcd.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pairs-0").write_bytes(b"half")
    store(settings(tmp_path), tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [".database.0123abcd.partial", "data"]


def test_nothing_is_left_of_a_preparation_that_fails(tmp_path: Path) -> None:
    write_pairs(tmp_path / "train.tsv", [*reversal(), ("a b", "")])
    with pytest.raises(DataError, match="a pair of more than"):
        store(settings(tmp_path, data={"max_length": 5}), tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.tsv"]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("")
    with pytest.raises(RunError, match="there is something here already"):
        store(settings(tmp_path), tmp_path / "data")
