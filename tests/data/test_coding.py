"""Coders: what is encoded decodes to what was typed, rows are the same as lines one by one, and what cannot be is said."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.config import Config
from eyeline.contracts import END, UNKNOWN
from eyeline.data.coding import FIRST, Coder, Copies, Positions, Row, Spelling, Vocabulary, coder
from eyeline.errors import UserError
from eyeline.text.records import Fault, Pair
from eyeline.text.tokenizers import Tokenizer
from strategies import lines

KINDS = ("character", "word", "whitespace-symbols", "bpe", "unigram")
TEXTS = ["call the man in the house", "the phone of the man", "a house"]
SYMBOLS = Tokenizer.train("whitespace-symbols", ["a b c d e f"], 50)


def pair(source: str, target: str, features: tuple[str, ...] = ()) -> Pair:
    return Pair(source, target, features, None, "p.tsv", 7)


def copies(kind: Any = "word", features: tuple[str, ...] = (), **spelling: Any) -> Copies:
    source, target = Tokenizer.train(kind, TEXTS, 60, features=features), Tokenizer.train(kind, TEXTS, 60)
    return Copies(source, target, Spelling(**spelling))


def answer(code: Coder, source: str, target: str) -> tuple[list[int], str, list[str]]:
    """A target in its source's ids, and these ids read again."""
    read = code.read(code.encode(source), source)
    ids = code.encode_target(target, read).ids
    return ids, code.decode(ids, read), code.tokens(ids, read)


# ---- copies -------------------------------------------------------------------------------------------------------------


def test_words_of_the_source_that_no_vocabulary_holds_are_outputs() -> None:
    code = copies()
    size = code.own_from
    ids, text, tokens = answer(code, "call Zaphod in Zürich Zaphod", "Zaphod the Zürich Nobody")
    assert ids == [size, code.target.lookup(" the"), size + 1, UNKNOWN]
    assert text == "Zaphod the Zürich <unk>"
    assert tokens == ["Zaphod", "the", "Zürich", "<unk>"]
    assert answer(code, "Arthur", "Arthur") == ([size], "Arthur", ["Arthur"])


@pytest.mark.parametrize("kind", KINDS)
@given(text=lines(blank=False))
def test_a_copy_of_the_whole_source_is_the_source_as_typed(kind: str, text: str) -> None:
    code = COPIES[kind]
    ids, said, tokens = answer(code, text, text)
    assert UNKNOWN not in ids
    assert said == (text if kind != "whitespace-symbols" else " ".join(tokens))
    assert answer(code, text, said)[0] == ids, "what was said is scored as what was said"


COPIES = {kind: copies(kind, source="none", target="none") for kind in KINDS}


def test_what_is_copied_has_the_case_and_the_form_that_was_typed() -> None:
    code = copies(lowercase=True)
    decomposed = unicodedata.normalize("NFD", "Zürich")
    ids, text, tokens = answer(code, f"Call Zaphod, in {decomposed} zaphod!", f"THE zaphod {decomposed} ZAPHOD")
    assert text == f"the Zaphod {decomposed} Zaphod"
    assert tokens == ["the", "Zaphod", decomposed, "Zaphod"]
    assert ids[1] == ids[3]
    assert answer(code, f"Call Zaphod, in {decomposed}", text)[0] == ids
    assert code.judged(text) == code.compared(f"THE zaphod {decomposed} ZAPHOD") == "the zaphod zürich zaphod"


def test_a_part_of_a_word_keeps_its_case_where_lengths_agree() -> None:
    code = copies(lowercase=True)
    assert answer(code, "(Zürich)", "(zürich)")[1] == "(Zürich)"
    assert answer(code, unicodedata.normalize("NFD", "(Zürich)"), "(zürich)")[1] == "(zürich)"


def test_only_the_part_of_a_source_that_is_read_can_be_copied() -> None:
    code = copies()
    encoded = code.encode("call Zaphod in Zürich")
    read = code.read(encoded.cut(2), "call Zaphod in Zürich")
    assert read.typed == [" Zaphod"]
    assert code.encode_target("Zaphod Zürich", read).ids == [code.own_from, UNKNOWN]


def test_features_are_not_copied() -> None:
    code = copies("character", ("V", "PST"))
    encoded = code.encode("xé", ("V", "PST"))
    read = code.read(encoded, "xé")
    assert read.copies == [UNKNOWN, UNKNOWN, code.own_from, code.own_from + 1]
    assert code.decode([code.own_from + 1], read) == "é"


def test_unknown_is_what_neither_side_holds() -> None:
    code = copies()
    read = code.read(code.encode("call Zaphod Arthur"), "call Zaphod Arthur")
    assert read.unknown == 2
    assert code.encode_target("Zaphod Nobody", read).ids.count(UNKNOWN) == 1


def test_sources_of_a_batch_have_extras_of_their_own() -> None:
    code = copies()
    texts = ["call Zaphod", "the man", "Arthur in Zürich in Oslo"]
    sources = code.sources([code.read(code.encode(text), text) for text in texts])
    batch = sources.batch(np.arange(3))
    assert sources.copies is not None
    assert sources.copies.flat.dtype == np.int32
    assert batch.extra == 3
    assert batch.copy_ids is not None
    size, within = code.own_from, code.target.lookup(" in")
    assert batch.copy_ids[2].tolist() == [size, within, size + 1, within, size + 2, END]
    assert sources.batch(np.array([1])).extra == 0


# ---- rows ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Vocabulary, Copies])
@given(texts=st.lists(st.tuples(lines(blank=False), lines(blank=False)), min_size=1, max_size=4))
def test_rows_are_lines_one_by_one(make: type[Vocabulary] | type[Copies], texts: list[tuple[str, str]]) -> None:
    tokenizer = Tokenizer.train("word", TEXTS, 60, features=["V"])
    code = make(tokenizer, tokenizer, Spelling())
    for (source, target), row in zip(texts, code.rows([pair(*each, ("V",)) for each in texts]), strict=True):
        read = code.read(code.encode(source, ("V",)), source)
        assert row == Row(read.encoded.ids, code.encode_target(target, read).ids, read.copies)


def test_rows_of_positions_are_lines_one_by_one_and_faults_are_values() -> None:
    code = Positions(SYMBOLS, Spelling(), numbers=2)
    good, bad = code.rows([pair("[[1, 2],[3,4]]", "1 0"), pair("[[1,2]]", "1")])
    assert isinstance(good, Row)
    assert (good.source, good.target) == ([UNKNOWN] * 2, [FIRST + 1, FIRST])
    assert good.values is not None
    assert good.values.tolist() == [[1, 2], [3, 4]]
    assert isinstance(bad, Fault)
    assert (bad.path, bad.line, bad.detail) == ("p.tsv", 7, "position 1 is beyond a source of 1 elements")


# ---- positions ----------------------------------------------------------------------------------------------------------


def test_positions_are_ids_from_four_upwards() -> None:
    code = Positions(SYMBOLS, Spelling())
    read = code.read(code.encode("c a b"), "c a b")
    encoded = code.encode_target("1 2  0", read)
    assert encoded.ids == [5, 6, 4]
    assert encoded.words == [0, 1, 2]
    assert code.decode([5, 6, 4, END], read) == "1 2 0"
    assert code.tokens([5, 6, 4, END], read) == ["1", "2", "0", "</s>"]
    assert code.compared("1  2 0 ") == "1 2 0"


def test_numbers_travel_beside_ids() -> None:
    code = Positions(SYMBOLS, Spelling(), numbers=1)
    reads = [code.read(code.encode(text), text) for text in ("[3, 1]", '{"source": [0.5]}')]
    batch = code.sources(reads).batch(np.arange(2))
    assert batch.values is not None
    assert batch.values.tolist() == [[[3], [1], [0]], [[0.5], [0], [0]]]
    assert batch.lengths.tolist() == [3, 2]
    assert reads[0].unknown == 0


@pytest.mark.parametrize(
    ("numbers", "distinct", "source", "target", "what"),
    [
        (0, False, "a b", "0 2", "position 2 is beyond a source of 2 elements"),
        (0, True, "a b", "1 1", "position 1 comes twice, and model.distinct=true forbids it"),
        (0, False, "a b", "x", "'x' is not a position of the source"),
        (0, False, "[1, 2]", "0", "a source of numbers, where the model reads symbols"),
        (0, False, "[]", "", "an empty source has no positions"),
        (1, False, "[]", "", "an empty source has no positions"),
        (1, False, "a b", "0", "not a JSON list of numbers"),
        (1, False, "[[1, 2]]", "0", "elements of 2 numbers where the model reads 1"),
        (1, False, "", "0", "position 0 is beyond a source of 0 elements"),
    ],
)
def test_what_points_nowhere_is_refused(numbers: int, distinct: bool, source: str, target: str, what: str) -> None:
    code = Positions(SYMBOLS, Spelling(), numbers, distinct)
    with pytest.raises(UserError, match=what.replace("'", ".")):
        code.encode_target(target, code.read(code.encode(source), source))
    (fault,) = code.rows([pair(source, target)])
    assert isinstance(fault, Fault)
    assert what in fault.detail


def test_features_have_no_place_beside_positions() -> None:
    (fault,) = Positions(SYMBOLS, Spelling()).rows([pair("a b", "0", ("V",))])
    assert isinstance(fault, Fault)
    assert "features" in fault.detail


# ---- which coder --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("seq2seq", Vocabulary),
        ("luong", Vocabulary),
        ("transformer", Vocabulary),
        ("pointer-generator", Copies),
        ("pointer-generator-transformer", Copies),
        ("pointer-network", Positions),
    ],
)
def test_a_run_has_the_coder_of_its_outputs(architecture: str, kind: type[Coder]) -> None:
    config = Config.from_dict({"model": {"architecture": architecture}, "data": {"normalization": {"source": "none"}}})
    code = coder(config, SYMBOLS, SYMBOLS)
    assert type(code) is kind
    assert code.spelling == Spelling("none", "nfc", False)
