"""Corpora that are tagged, weighted and mixed, pieces cut anew, and workers: a run that was stopped is the run that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_runs import reversal, same_run, settings, train, train_and_stop, write_pairs

from eyeline.config import Config
from eyeline.data.plan import Part
from eyeline.errors import ConfigError
from eyeline.training.preparation import Prepared, prepare


def two(folder: Path, **sections: Any) -> Config:
    """Corpus C, and another of twelve pairs tagged `back`."""
    back = write_pairs(folder / "back.tsv", reversal(12, seed=9))
    data = {"corpora": [{"pairs": back, "tag": "back", "weight": 2}], **sections.pop("data", {})}
    return settings(folder, data=data, **sections)


def prepared(config: Config) -> Prepared:
    return prepare(config, None)


def test_a_tag_stands_before_each_source_of_its_corpus(tmp_path: Path) -> None:
    made = prepared(two(tmp_path))
    assert made.source.features == ("back",)
    (tag,) = made.source.encode("", ["back"]).ids
    assert [ids[0] == tag for ids in made.train.sources] == [False] * 40 + [True] * 12
    assert made.train.corpus().parts == (Part(40, 40), Part(12, 24))
    assert [len(ids) for ids in made.train.targets] == [len(target.split()) for _, target in reversal() + reversal(12, seed=9)]


def test_corpora_without_the_first(tmp_path: Path) -> None:
    back = write_pairs(tmp_path / "back.tsv", reversal(12, seed=9))
    made = prepared(settings(tmp_path, data={"train": [], "corpora": [{"pairs": [back]}]}))
    assert len(made.train.pairs) == 12
    assert made.train.corpus().parts == ()


def test_temperature_lifts_the_small_one(tmp_path: Path) -> None:
    parts = prepared(two(tmp_path, data={"temperature": 1e9})).train.parts
    assert [part.draws for part in parts] == [round(64 / 3), round(128 / 3)]


@pytest.mark.parametrize("tag", ["", " a", "a;b", "a\tb"])
def test_a_tag_is_one_symbol(tmp_path: Path, tag: str) -> None:
    with pytest.raises(ConfigError, match=r"a tag is one symbol .*data\.corpora\.0\.tag"):
        settings(tmp_path, data={"corpora": [{"pairs": "x.tsv", "tag": tag}]})


def test_filters_leave_out_and_say_so(tmp_path: Path) -> None:
    pairs = [("a b", "b a"), ("a b", "b a"), ("a b c d e f", "a"), ("a b", "b b")]
    write_pairs(tmp_path / "train.tsv", pairs)
    write_pairs(tmp_path / "valid.tsv", pairs)
    made = prepared(settings(tmp_path, data={"filter": {"duplicates": "drop", "max_ratio": 3}}))
    assert [pair.line for pair in made.train.pairs] == [1, 4]
    assert made.valid is not None
    assert len(made.valid.pairs) == 4
    said = made.report.render()
    assert f"left out, duplicate: 1 ({tmp_path / 'train.tsv'}:2)" in said
    assert f"left out, too unequal lengths: 1 ({tmp_path / 'train.tsv'}:3)" in said


BPE = {"kind": "bpe", "size": 30}


@pytest.mark.parametrize("sections", [{}, {"tokenizer": BPE, "data": {"bpe_dropout": 0.3}}], ids=["mixed", "mixed and cut anew"])
def test_a_mixed_run_goes_on_exactly_with_any_number_of_workers(tmp_path: Path, sections: dict[str, Any]) -> None:
    def config(workers: int) -> Config:
        return two(tmp_path, **sections, training={"steps": 14, "accumulate": 2, "workers": workers, "validate_every": 14})

    train(config(0), tmp_path / "whole")
    train_and_stop(config(1), tmp_path / "parts", 5)
    train_and_stop(config(4), tmp_path / "parts", 4, resume=True)
    train(config(0), tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")


def test_pieces_are_others_in_every_epoch_and_decode_alike(tmp_path: Path) -> None:
    made = prepared(settings(tmp_path, tokenizer=BPE, data={"bpe_dropout": 0.5}))
    corpus = made.train.corpus()
    plain, first, again, later = (corpus.batch(range(40), epoch) for epoch in (None, 0, 0, 1))
    assert first.outputs.tolist() == again.outputs.tolist()
    assert len({str(batch.outputs.tolist()) for batch in (plain, first, later)}) == 3
    assert len({str(batch.source.ids.tolist()) for batch in (plain, first, later)}) == 3
    for batch in (plain, first, later):
        assert [made.target.decode(row) for row in batch.outputs.tolist()] == [pair.target for pair in made.train.pairs]
    alone = corpus.batch([7], 0)
    assert made.target.decode(alone.outputs[0].tolist()) == made.train.pairs[7].target
    width = alone.outputs.shape[1]
    assert alone.outputs[0].tolist() == first.outputs[7, :width].tolist()


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"tokenizer": {"kind": "character"}}, r"bpe_dropout=0\.1 leaves out merges of bpe, and tokenizer\.kind=character"),
        ({"tokenizer": BPE, "model": {"architecture": "pointer-generator"}}, r"bpe_dropout=0\.1 makes no sense"),
        ({"tokenizer": BPE, "training": {"guided_alignment": 0.1}}, r"bpe_dropout=0\.1 moves the tokens"),
    ],
)
def test_pieces_that_cannot_be_cut_anew(tmp_path: Path, sections: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        settings(tmp_path, data={"bpe_dropout": 0.1}, **sections)


def test_a_sample_of_the_lines_is_enough_for_pieces(tmp_path: Path) -> None:
    whole, some = (prepared(settings(tmp_path, tokenizer={**BPE, "sample": sample})) for sample in (40, 8))
    again = prepared(settings(tmp_path, tokenizer={**BPE, "sample": 8}))
    assert some.source.content == again.source.content
    assert some.source.content != whole.source.content
