"""Gold links of words or characters between tokens: for every tokenizer and spelling, cut with their pairs, named where bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_runs import reversal, settings, train, write_pairs

import eyeline
from eyeline.config import Config
from eyeline.data.coding import Spelling
from eyeline.errors import ConfigError, DataError
from eyeline.evaluation import align_pairs, alignment_against_gold, read_for
from eyeline.text.records import Pair
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.links import token_links
from eyeline.training.preparation import prepare

PLAIN = Spelling()


def linked(
    source: str, target: str, alignment: str, kind: Any = "character", unit: Any = "words", spelt: Spelling = PLAIN
) -> list[tuple[str, str]]:
    """The tokens that are linked."""
    texts = spelt.of_source(source), spelt.of_target(target)
    tokenizer = Tokenizer.train(kind, [*texts] * 3, 12 if kind == "bpe" else 80)
    encoded = [tokenizer.encode(text) for text in texts]
    links = token_links(Pair(source, target, (), alignment, "p.tsv", 3), encoded[0], encoded[1], spelt, unit)
    return [(f"{encoded[0].tokens[i]}{i}", f"{encoded[1].tokens[j]}{j}") for i, j in links]


# ---- words --------------------------------------------------------------------------------------------------------------


def test_words_are_linked_token_by_token() -> None:
    assert linked("ab c", "x yz", "0-1 1-0") == [("a0", "y2"), ("a0", "z3"), ("b1", "y2"), ("b1", "z3"), ("c3", "x0")]


def test_symbols_are_words() -> None:
    assert linked("ab c", "x yz", "0-1 1-0", "whitespace-symbols") == [("ab0", "yz1"), ("c1", "x0")]


def test_every_piece_of_a_word_is_linked_whatever_the_pieces() -> None:
    source, target = "the cat, the cats", "le chat"
    for kind in ("word", "bpe", "unigram", "character"):
        tokenizer = Tokenizer.train(kind, [source, target, "the", "cat", "chat"] * 3, 30)
        encoded = tokenizer.encode(source), tokenizer.encode(target)
        links = token_links(Pair(source, target, (), "1-1 3-1", "p", 1), *encoded, PLAIN, "words")
        words = {(encoded[0].words[i], encoded[1].words[j]) for i, j in links}
        assert words == {(1, 1), (3, 1)}
        tokens = [side.words.count(word) for side, word in ((encoded[0], 1), (encoded[0], 3), (encoded[1], 1))]
        assert len(links) == (tokens[0] + tokens[1]) * tokens[2]


def test_sure_and_possible_links_count_alike_and_once() -> None:
    assert linked("a b", "x", "0p0 1-0 0p0", "word") == [("a0", "x0"), ("b1", "x0")]


def test_blanks_and_pairs_without_links_have_none() -> None:
    assert linked("a  b", "x y", "0-0 1-1") == [("a0", "x0"), ("b3", "y2")]
    assert linked("a b", "x y", "") == []


def test_features_stand_before_the_words_and_are_not_linked() -> None:
    tokenizer = Tokenizer.train("character", ["ab"], 20, features=["V"])
    source = tokenizer.encode("ab", ("V", "V"))
    assert token_links(Pair("ab", "a", (), "0-0", "p", 1), source, tokenizer.encode("a"), PLAIN, "words") == [(2, 0), (3, 0)]


def test_no_link_is_between_ends() -> None:
    pair = Pair("a b", "x y", (), "0-0 1-1", "p", 1)
    tokenizer = Tokenizer.train("whitespace-symbols", ["a b x y"], 20)
    assert token_links(pair, tokenizer.encode("a b"), tokenizer.encode("x y"), PLAIN, "words") == [(0, 0), (1, 1)]


# ---- characters ---------------------------------------------------------------------------------------------------------


def test_characters_are_linked_to_characters() -> None:
    assert linked("3 May", "05-03", "0-4 2p1", unit="characters") == [("30", "34"), ("M2", "51")]


def test_characters_are_linked_through_the_tokens_that_hold_them() -> None:
    assert linked("the cat", "le", "4-1 5-0", "word", "characters") == [("cat1", "le0")]
    assert linked("ab c", "x", "2-0", "whitespace-symbols", "characters") == [], "the blank is in no symbol"


def test_characters_count_in_the_text_as_typed() -> None:
    assert linked("한글", "ab", "1-0 0-1", unit="characters", spelt=Spelling("jamo")) == [
        ("\u11120", "b1"),
        ("\u11611", "b1"),
        ("\u11ab2", "b1"),
        ("\u11003", "a0"),
        ("\u11734", "a0"),
        ("\u11af5", "a0"),
    ]
    assert linked("e\u0301x", "ab", "1-0 2-1", unit="characters") == [("é0", "a0"), ("x1", "b1")]


# ---- bad links ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alignment", "unit", "line"),
    [
        ("0-0 2-0", "words", r"a link 2-0, and the source has 2 words \(p\.tsv:3\); links count from 0"),
        ("0-0 0-1", "words", r"a link 0-1, and the target has 1 words \(p\.tsv:3\)"),
        ("4-0", "characters", r"a link 4-0, and the source has 4 characters"),
        ("0-0,1-0", "words", r"'0-0,1-0' is not an alignment link \(p\.tsv:3\); links are written 0-0"),
    ],
)
def test_a_link_that_cannot_be_is_named(alignment: str, unit: str, line: str) -> None:
    with pytest.raises(DataError, match=line):
        linked("a bc", "x", alignment, unit=unit)


LINKED = [("a b", "x y", "0-1 1-0"), ("a b c", "x y", "2-0 2-1"), ("b", "y", "")]


def guided(folder: Path, pairs: list[tuple[str, ...]], weight: float = 1.0, **data: Any) -> Config:
    settings(folder)
    write_pairs(folder / "linked.tsv", pairs)
    data = {"train": [str(folder / "linked.tsv")], "columns": ["source", "target", "alignment"], "valid": [], **data}
    return settings(folder, data=data, training={"guided_alignment": weight})


def test_training_reads_links_where_they_are_wanted(tmp_path: Path) -> None:
    corpus = prepare(guided(tmp_path, LINKED), None).train.corpus()
    links = corpus.batch([0]).links
    assert links is not None
    assert links[0].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    both = corpus.batch([1, 2]).links
    assert both is not None
    assert both.tolist() == [[[0, 0, 1, 0], [0, 0, 1, 0], [0] * 4], [[0] * 4] * 3]
    assert prepare(guided(tmp_path, LINKED, 0.0), None).train.corpus().links is None


def test_guided_attention_finds_the_links(tmp_path: Path) -> None:
    """In as many steps, on the same pairs: what is drawn to the links agrees with them, what is left alone does not yet."""
    pairs = [(s, t, " ".join(f"{i}-{len(s.split()) - 1 - i}" for i in range(len(s.split())))) for s, t in reversal(60)]
    found = []
    for weight in (0.0, 2.0):
        config = guided(tmp_path, pairs, weight)
        config = config.model_copy(update={"model": settings(tmp_path, "luong").model})
        train(config, tmp_path / f"{weight}")
        predictor = eyeline.load(tmp_path / f"{weight}")
        read = read_for(predictor, config.data.train, alignment=True)
        scores = alignment_against_gold(align_pairs(predictor, read, words=True), read)
        assert scores is not None
        found.append(scores.f1)
    assert found[1] > found[0] + 20


def test_links_are_cut_with_their_pairs(tmp_path: Path) -> None:
    pairs = prepare(guided(tmp_path, LINKED, max_length=2, too_long="truncate"), None).train
    assert pairs.links == [[(0, 1), (1, 0)], [], []]
    kept = prepare(guided(tmp_path, LINKED, max_length=2, too_long="skip"), None).train
    assert kept.links == [[(0, 1), (1, 0)], []]
    assert [pair.line for pair in kept.pairs] == [1, 3]


def test_links_of_json_lines(tmp_path: Path) -> None:
    config = guided(tmp_path, LINKED)
    (tmp_path / "l.jsonl").write_text('{"source": "a b", "target": "x", "alignment": "1-0"}\n')
    given = config.model_copy(update={"data": config.data.model_copy(update={"train": [str(tmp_path / "l.jsonl")]})})
    assert prepare(given, None).train.links == [[(1, 0)]]


def test_bad_links_stop_training_or_are_counted(tmp_path: Path) -> None:
    pairs = [*LINKED, ("a", "x", "0-1"), ("a", "x", "0:0")]
    with pytest.raises(DataError, match=r"a link 0-1, and the target has 1 words; .*linked\.tsv:4\); --on-bad-line skip"):
        prepare(guided(tmp_path, pairs), None)
    prepared = prepare(guided(tmp_path, pairs, on_bad_line="skip"), None)
    assert len(prepared.train.pairs) == 3
    assert "left out, bad gold links: 2 (" in prepared.report.render()
    assert len(prepare(guided(tmp_path, pairs, 0.0), None).train.pairs) == 5, "links that nobody asked for are not looked at"


def test_pairs_without_links_cannot_guide(tmp_path: Path) -> None:
    config = guided(tmp_path, LINKED, columns=["source", "target", "-"])
    with pytest.raises(
        ConfigError, match=r"a pair without gold links: .*linked\.tsv:1 \(training\.guided_alignment=1\); name their"
    ):
        prepare(config, None)


def test_the_unit_of_links_is_a_setting(tmp_path: Path) -> None:
    pairs = [("ab c", "xy", "1-0 3-1")]
    with pytest.raises(DataError, match="a link 3-1, and the source has 2 words"):
        prepare(guided(tmp_path, pairs), None)
    prepared = prepare(guided(tmp_path, pairs, links="characters"), None)
    assert prepared.train.links == [[(0, 0), (1, 0)]]
