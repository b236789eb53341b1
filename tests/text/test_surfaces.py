"""What tokens stand for in a text, exactly, and texts of ids beyond the vocabulary: what copying needs of a tokenizer."""

from __future__ import annotations

from typing import get_args

import pytest
import tokenizers as hf
from hypothesis import given

from eyeline.config import TokenizerKind
from eyeline.contracts import BEGIN, END, PAD, UNKNOWN
from eyeline.text.tokenizers import Tokenizer
from strategies import lines

KINDS = get_args(TokenizerKind)
TEXTS = ["the cat sat on the mat .", "a cat and a dog !", "der Hund läuft über die Straße"] * 3
TRAINED = {kind: Tokenizer.train(kind, TEXTS, 60, features=["V", "PST"]) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(text=lines())
def test_surfaces_put_together_are_the_text(kind: TokenizerKind, text: str) -> None:
    """Known or unknown; with the blank that a text begins with for tokenizers whose tokens carry theirs."""
    tokenizer = TRAINED[kind]
    encoded = tokenizer.encode(text)
    if kind == "whitespace-symbols":
        assert encoded.surfaces == encoded.tokens == [symbol for symbol in text.replace("\t", " ").split(" ") if symbol]
    else:
        before = " " if kind in ("word", "bpe", "unigram") and text else ""
        assert "".join(encoded.surfaces) == before + text
    for number, surface in zip(encoded.ids, encoded.surfaces, strict=True):
        assert number == UNKNOWN or (tokenizer.lookup(surface) == number and tokenizer.piece(number) == surface)
        assert number != UNKNOWN or tokenizer.lookup(surface) == UNKNOWN


@pytest.mark.parametrize("kind", KINDS)
@given(text=lines())
def test_ids_beyond_the_vocabulary_are_read_as_they_were_typed(kind: TokenizerKind, text: str) -> None:
    """Everything unknown as an extended id: decoding gives the text itself back, and its tokens, spans and words."""
    tokenizer = TRAINED[kind]
    encoded = tokenizer.encode(text)
    extra = sorted({surface for number, surface in zip(encoded.ids, encoded.surfaces, strict=True) if number == UNKNOWN})
    ids = [
        tokenizer.size + extra.index(surface) if number == UNKNOWN else number
        for number, surface in zip(encoded.ids, encoded.surfaces, strict=True)
    ]
    wanted = " ".join(encoded.tokens) if kind == "whitespace-symbols" else text
    around = [BEGIN, *ids, END, PAD]
    assert tokenizer.decode(around, extra) == wanted
    assert tokenizer.tokens_of(ids, extra) == encoded.tokens
    assert [tokenizer.piece(number, extra) for number in ids] == encoded.surfaces
    assert tokenizer.decoded_word_index(around, extra) == [None, *encoded.words, None, None]
    spans = tokenizer.decoded_spans(ids, extra)
    if kind != "whitespace-symbols":
        assert spans == encoded.spans


def test_a_word_is_one_surface_wherever_it_stands() -> None:
    tokenizer = TRAINED["word"]
    assert tokenizer.encode("Zürich on the Zürich").surfaces == [" Zürich", " on", " the", " Zürich"]
    assert tokenizer.encode("(Zürich)").surfaces == [" (", "Zürich", ")"]
    assert tokenizer.encode("\tcat").surfaces == [" ", "\t", "cat"]
    assert tokenizer.decode([tokenizer.size, tokenizer.lookup(" cat")], [" Zürich"]) == "Zürich cat"


@pytest.mark.parametrize("kind", KINDS)
def test_features_stand_for_no_text(kind: TokenizerKind) -> None:
    encoded = TRAINED[kind].encode("cat", ["V", "NEVER"])
    assert encoded.surfaces[:2] == ["", ""]
    assert "".join(encoded.surfaces).strip() == "cat"
    assert encoded.cut(2).surfaces == ["", ""]


@pytest.mark.parametrize("kind", KINDS)
def test_control_symbols_and_features_are_no_surfaces(kind: TokenizerKind) -> None:
    for text in ("<unk>", "<s>", "</s>", "<pad>", "V", "", " <unk>"):
        assert TRAINED[kind].lookup(text) == UNKNOWN


def test_the_name_of_the_unknown_entry_is_copied_as_typed() -> None:
    tokenizer = TRAINED["whitespace-symbols"]
    encoded = tokenizer.encode("the <unk> cat")
    assert (encoded.ids[1], encoded.surfaces[1]) == (UNKNOWN, "<unk>")
    assert tokenizer.decode([tokenizer.size], ["<unk>"]) == "<unk>"


def test_a_given_tokenizer_has_surfaces_too() -> None:
    """The entries of its file where they are known; else what was typed."""
    made = hf.Tokenizer(hf.models.WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = hf.pre_tokenizers.Whitespace()
    tokenizer = Tokenizer(made.to_str())
    encoded = tokenizer.encode("the Zürich cat")
    assert encoded.surfaces == ["the", "Zürich", "cat"]
    assert tokenizer.lookup("cat") == encoded.ids[2]
    ids = [encoded.ids[0], tokenizer.size, encoded.ids[2]]
    assert tokenizer.decode(ids, ["Zürich"]) == "the Zürich cat"
    assert tokenizer.decoded_word_index(ids, ["Zürich"]) == [0, 1, 2]
