"""Text to ids and back: exact round trips, reserved ids that no text reaches, one file for one text."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
import tokenizers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.config import TokenizerKind
from eyeline.contracts import BEGIN, END, PAD, UNKNOWN
from eyeline.errors import RunError, UserError
from eyeline.text.tokenizers import Tokenizer
from strategies import CONTROL_LOOKALIKES, ODD_CHARACTERS, documents, lines

KINDS = get_args(TokenizerKind)
EXACT = ("character", "word", "bpe", "unigram")  # decode(encode(s)) == s; whitespace-symbols joins with one blank
TEXTS = ["the cat sat on the mat .", "a cat and a dog !", "do n't say 'hello !' , say “hi”", "der Hund läuft über die Straße"] * 3
ODD = [
    "hello !",
    " a",
    "a ",
    "a  b",
    "do n't",
    "︰",
    "…",
    "ŉ",
    "ﬁ",
    "🤷🏽\u200d♂\ufe0f",
    "x\tz",
    "한국어 ᄒ\u1161\u11ab",
    "हिन्दी भाषा",
    "e\u0301\u0323",
]


def trained(kind: TokenizerKind, texts: Sequence[str] = TEXTS, size: int = 300, **settings: object) -> Tokenizer:
    return Tokenizer.train(kind, texts, size, **settings)  # type: ignore[arg-type]


# Round trips


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("text", [*ODD, *CONTROL_LOOKALIKES, "", " ", "   ", "\t", "<s>Yay!</s>", "a </s> b"])
def test_what_is_known_comes_back_exactly(kind: TokenizerKind, text: str) -> None:
    tokenizer = trained(kind, [*TEXTS, *ODD, *CONTROL_LOOKALIKES, "<s>Yay!</s>", " \t "])
    encoded = tokenizer.encode(text)
    if UNKNOWN not in encoded.ids:
        assert tokenizer.decode(encoded.ids) == text
    assert kind == "word" or UNKNOWN not in encoded.ids


@pytest.mark.parametrize("kind", EXACT)
@given(texts=documents(), data=st.data())
def test_texts_of_training_come_back_exactly(kind: TokenizerKind, texts: list[str], data: st.DataObject) -> None:
    tokenizer = trained(kind, texts, 2000)
    for text in texts:
        encoded = tokenizer.encode(text)
        assert UNKNOWN not in encoded.ids
        assert tokenizer.decode(encoded.ids) == text
    both = data.draw(st.permutations(texts))
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_ids(both)] == both


@given(texts=documents())
def test_symbols_are_joined_by_one_blank(texts: list[str]) -> None:
    tokenizer = trained("whitespace-symbols", texts, 2000)
    for text in texts:
        symbols = [symbol for symbol in text.replace("\t", " ").split(" ") if symbol]
        encoded = tokenizer.encode(text)
        assert encoded.tokens == symbols
        assert tokenizer.decode(encoded.ids) == " ".join(symbols)
        assert [text[start:end] for start, end in encoded.spans] == symbols


def test_other_white_space_is_part_of_a_symbol() -> None:
    text = "a\u00a0b\u3000c\u2009d e\u200bf\ufeffg\u2028h"
    assert trained("whitespace-symbols", [text]).encode(text).tokens == ["a\u00a0b\u3000c\u2009d", "e\u200bf\ufeffg\u2028h"]


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram"])
def test_output_is_detokenised_by_construction(kind: TokenizerKind) -> None:
    tokenizer = trained(kind, ["Hello, world! It's 5 o'clock."] * 3)
    encoded = tokenizer.encode("Hello, world!")
    assert tokenizer.decode(encoded.ids) == "Hello, world!"
    assert tokenizer.decode(encoded.ids[:1]) == "Hello"


def test_marks_stay_with_their_word_and_their_sign() -> None:
    texts = ["हिन्दी भाषा", "e\u0301te\u0301", "♂\ufe0f"]
    tokenizer = trained("word", texts)
    assert [tokenizer.encode(text).tokens for text in texts] == [["हिन्दी", "भाषा"], ["e\u0301te\u0301"], ["♂\ufe0f"]]


# Spans and words


@pytest.mark.parametrize("kind", EXACT)
@given(text=lines())
def test_spans_lie_end_to_end_over_any_text(kind: TokenizerKind, text: str) -> None:
    spans = TRAINED[kind].encode(text).spans
    end = 0
    for start, stop in spans:
        assert start == end
        end = stop
    assert end == len(text)


@pytest.mark.parametrize("kind", KINDS)
@given(texts=documents(4))
def test_words_by_span_and_by_generated_text_agree(kind: TokenizerKind, texts: list[str]) -> None:
    tokenizer = trained(kind, texts, 2000)
    for text in texts:
        encoded = tokenizer.encode(text)
        assert tokenizer.decoded_word_index([BEGIN, *encoded.ids, END, PAD]) == [None, *encoded.words, None, None]


@pytest.mark.parametrize("kind", KINDS)
@given(text=lines())
def test_spans_of_generated_ids_are_places_in_their_text(kind: TokenizerKind, text: str) -> None:
    tokenizer = TRAINED[kind]
    ids = tokenizer.encode(text).ids
    decoded, spans = tokenizer.decode(ids), tokenizer.decoded_spans(ids)
    for place, (number, (start, end)) in enumerate(zip(ids, spans, strict=True)):
        piece = tokenizer.piece(number)
        assert decoded[start:end] == piece or (place == 0 and " " + decoded[start:end] == piece)


TRAINED = {kind: trained(kind, [*TEXTS, *ODD]) for kind in KINDS}


def test_words_of_subwords() -> None:
    tokenizer = Tokenizer.train("bpe", ["low lower lowest newer wider"] * 3, 30)
    encoded = tokenizer.encode("lower  newest")
    assert len(encoded.ids) > 3
    words = encoded.words
    assert [word for word in words if word is not None] == sorted(word for word in words if word is not None)
    assert {0, 1} <= set(words)
    assert encoded.cut(2).words == words[:2]


# Control symbols


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lookalike", CONTROL_LOOKALIKES)
def test_text_never_becomes_a_control_symbol(kind: TokenizerKind, lookalike: str) -> None:
    text = f"a {lookalike} b"
    for tokenizer in (TRAINED[kind], trained(kind, [text] * 100)):
        assert not {PAD, BEGIN, END} & set(tokenizer.encode(text).ids)
        assert len(tokenizer.encode(text).ids) > len(tokenizer.encode("a").ids)


@pytest.mark.parametrize("kind", KINDS)
@given(text=lines())
def test_no_text_at_all_becomes_one(kind: TokenizerKind, text: str) -> None:
    tokenizer = TRAINED[kind]
    encoded = tokenizer.encode(text)
    assert all(number == UNKNOWN or 4 <= number < tokenizer.size for number in encoded.ids)
    assert len(encoded.ids) == len(encoded.tokens) == len(encoded.spans)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_has_one_entry_whatever_the_text_holds(kind: TokenizerKind) -> None:
    tokenizer = trained(kind, ["x <unk> y"] * 100)
    shown = [tokenizer.token(number) for number in range(tokenizer.size)]
    assert shown[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert shown.count("<unk>") == 1
    assert "" not in shown
    assert tokenizer.decode(tokenizer.encode("x <unk> y").ids) == "x <unk> y"


def test_reserved_ids_are_no_text() -> None:
    tokenizer = TRAINED["word"]
    cat = tokenizer.encode("cat").ids
    ids = [BEGIN, *cat, UNKNOWN, *cat, END, PAD, PAD]
    assert tokenizer.decode(ids) == "cat <unk> cat"
    assert tokenizer.tokens_of(ids) == ["<s>", "cat", "<unk>", "cat", "</s>", "<pad>", "<pad>"]
    assert [tokenizer.piece(number) for number in ids] == ["", " cat", " <unk>", " cat", "", "", ""]


def test_unknown_is_written_and_shown_as_typed() -> None:
    for kind, written in [("character", "<unk>a"), ("word", "<unk>"), ("bpe", "<unk>a"), ("unigram", "<unk>a")]:
        tokenizer = TRAINED[kind]  # type: ignore[index]
        encoded = tokenizer.encode("Ψa")
        assert UNKNOWN in encoded.ids
        assert tokenizer.decode(encoded.ids) == written
        assert encoded.tokens[encoded.ids.index(UNKNOWN)] in ("Ψ", "Ψa")


def test_a_blank_is_seen_where_a_token_carries_it() -> None:
    assert TRAINED["bpe"].encode("the cat").tokens == ["▁the", "▁cat"]
    assert TRAINED["word"].encode("the cat !").tokens == ["the", "cat", "!"]
    assert TRAINED["word"].encode("the  cat").tokens == ["the", "▁", "cat"]
    assert TRAINED["character"].encode("a cat").tokens == ["a", " ", "c", "a", "t"]


# Vocabularies


def test_characters_are_ordered_by_frequency_then_code_point() -> None:
    tokenizer = trained("character", ["bbaacd", "c"])
    assert [tokenizer.token(number) for number in range(4, tokenizer.size)] == ["a", "b", "c", "d"]
    assert trained("character", ["c", "bbaacd"]).encode_ids(["abcd"]) == [[4, 5, 6, 7]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [8, 20, 40])
def test_size_is_the_most_entries(kind: TokenizerKind, size: int) -> None:
    assert trained(kind, size=size).size <= size
    if kind not in ("unigram", "bpe"):  # which may find nothing more worth an entry
        assert trained(kind, size=size).size == min(size, trained(kind, size=10_000).size)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_rarer_than_asked_is_unknown(kind: TokenizerKind) -> None:
    tokenizer = trained(kind, ["x x x", "x y"], min_frequency=2)
    assert UNKNOWN not in tokenizer.encode("x").ids
    assert UNKNOWN in tokenizer.encode("x y").ids


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], [""], [" "], ["", "\t"]])
def test_training_on_nothing_gives_a_tokenizer_that_knows_nothing(kind: TokenizerKind, texts: list[str]) -> None:
    tokenizer = trained(kind, texts)
    assert set(tokenizer.encode("abc").ids) - {tokenizer.size - 1} <= {UNKNOWN, 4}
    assert UNKNOWN in tokenizer.encode("abc").ids


def test_a_frequent_word_is_one_unigram() -> None:
    """Also one that is the beginning of no other word, which the library's trainer alone would never propose."""
    tokenizer = trained("unigram", ["wir sind hier", "sind sie hier", "sie sind da", "da sind wir"] * 20, 60)
    assert tokenizer.encode("sie sind hier").tokens == ["▁sie", "▁sind", "▁hier"]


# One file for one text

PROGRAM = """
import hashlib, os, random
from eyeline.text.tokenizers import Tokenizer
draw = random.Random(1)
words = ["".join(draw.choice("abcdefgh한글자모") for _ in range(draw.randint(1, 7))) for _ in range(150)]
texts = [" ".join(draw.choice(words) for _ in range(8)) for _ in range(150)]
for kind in ("character", "whitespace-symbols", "word", "bpe", "unigram"):
    tokenizer = Tokenizer.train(kind, texts, 120)
    print(kind, tokenizer.size, hashlib.sha256(tokenizer._content.encode()).hexdigest(), flush=True)
if hasattr(os, "fork") and "TOKENIZERS_PARALLELISM" not in before:
    tokenizer.encode_ids(texts)
    child = os.fork()
    tokenizer.encode_ids(texts)
    if child:
        os.waitpid(child, 0)
"""


def test_training_gives_the_same_bytes_in_every_process_with_any_threads_and_forks_silently() -> None:
    plain = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    many = {"RAYON_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "true", "PYTHONHASHSEED": "7"}
    outputs = []
    for environment in (plain | {"PYTHONHASHSEED": "1"}, plain | many):
        program = "import os; before = dict(os.environ)" + PROGRAM
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        assert done.stderr == b""
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].split()) == 15


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@settings(max_examples=30)
@given(texts=documents(), size=st.integers(8, 60))
def test_training_twice_gives_the_same_bytes(kind: TokenizerKind, texts: list[str], size: int) -> None:
    assert trained(kind, texts * 2, size)._content == trained(kind, texts[::-1] * 2, size)._content


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("true", None):
        if value is None:
            monkeypatch.delenv("TOKENIZERS_PARALLELISM")
        else:
            monkeypatch.setenv("TOKENIZERS_PARALLELISM", value)
        trained("bpe")
        assert os.environ.get("TOKENIZERS_PARALLELISM") == value


# Files


def test_saved_and_loaded_is_the_same_in_another_process(tmp_path: Path) -> None:
    text = "a\u00a0b\u3000c\u2009d e\u200bf\ufeffg \t \u2028 \x85 \x1c 한"
    expected = []
    for kind in KINDS:
        path = tmp_path / kind / "source.tokenizer.json"
        tokenizer = trained(kind, [text, *TEXTS])
        tokenizer.save(path)
        assert [file.name for file in path.parent.iterdir()] == ["source.tokenizer.json"]
        assert b"\r" not in path.read_bytes()
        ids = tokenizer.encode(text).ids
        expected.append([kind, tokenizer.tokens_of(range(tokenizer.size)), ids, tokenizer.decode(ids)])
        Tokenizer.load(path).save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    program = f"""
import json
from eyeline.text.tokenizers import Tokenizer
found = []
for kind in {KINDS!r}:
    t = Tokenizer.load({str(tmp_path)!r} + "/" + kind + "/source.tokenizer.json")
    ids = t.encode({text!r}).ids
    found.append([t.kind, t.tokens_of(range(t.size)), ids, t.decode(ids)])
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert json.loads(done.stdout) == expected


@settings(max_examples=40)
@given(texts=documents(6))
def test_every_character_keeps_its_id_through_a_file(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "characters.json"
    tokenizer = trained("character", [*texts, ODD_CHARACTERS], 5000)
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.tokens_of(range(loaded.size)) == tokenizer.tokens_of(range(tokenizer.size))
    assert loaded.encode_ids(texts) == tokenizer.encode_ids(texts)


def test_the_file_is_what_the_library_reads(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    TRAINED["bpe"].save(path)
    library = hf.Tokenizer.from_file(str(path))
    encoding = library.encode("the  cat !")
    assert library.decode(encoding.ids) == "the  cat !"
    assert [number - 1 + 4 for number in encoding.ids] == TRAINED["bpe"].encode("the  cat !").ids
    assert json.loads(path.read_bytes())["added_tokens"] == []


def test_features_have_ids_of_their_own_after_the_text(tmp_path: Path) -> None:
    path = tmp_path / "source.tokenizer.json"
    tokenizer = Tokenizer.train("character", ["VPS;T"], 50, features=["V", "PST", "V", "3"])
    tokenizer.save(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["source.features.json", "source.tokenizer.json"]
    for one in (tokenizer, Tokenizer.load(path)):
        assert one.size == 4 + 5 + 3
        encoded = one.encode("VT", ["PST", "V", "unseen"])
        assert encoded.ids == [10, 11, UNKNOWN, *one.encode("VT").ids]
        assert encoded.tokens == ["PST", "V", "unseen", "V", "T"]
        assert encoded.spans == [(0, 0), (0, 0), (0, 0), (0, 1), (1, 2)]
        assert encoded.words == [None, None, None, 0, 0]
        assert one.encode("V;PST").ids[0] < 9
        assert one.decode(encoded.ids) == "<unk>VT"
        assert one.encode_ids(["VT", "V"], [["V"], []]) == [[11, *one.encode("VT").ids], one.encode("V").ids]
    Tokenizer.train("character", ["a"], 50).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["source.tokenizer.json"]
    assert Tokenizer.load(path).features == ()


def given_tokenizer(
    path: Path, model: hf.models.Model, added: Sequence[str] = (), pre: object = None, decoder: object = None
) -> str:
    library = hf.Tokenizer(model)
    library.pre_tokenizer = pre or hf.pre_tokenizers.WhitespaceSplit()
    library.decoder = decoder
    library.add_special_tokens(list(added))
    library.enable_truncation(2)
    library.enable_padding(length=20)
    library.save(str(path))
    return str(path)


def test_a_given_tokenizer_cannot_reach_control_ids_either(tmp_path: Path) -> None:
    vocabulary = {"<s>": 0, "</s>": 1, "[UNK]": 2, "a": 3, "b": 9}
    model = hf.models.WordLevel(vocabulary, unk_token="[UNK]")
    tokenizer = Tokenizer.load(given_tokenizer(tmp_path / "t.json", model, ["<s>", "</s>", "<pad>"]))
    encoded = tokenizer.encode("<s> a zz b </s> <pad>")
    assert len(encoded.ids) == 6, "neither cut nor padded"
    assert encoded.ids[2] == UNKNOWN
    assert encoded.tokens == ["<s>", "a", "zz", "b", "</s>", "<pad>"]
    assert sorted(set(encoded.ids)) == [1, 4, 5, 6, 7, 8]
    assert tokenizer.size == 9
    assert tokenizer.decode(encoded.ids) == "<s> a <unk> b </s> <pad>"
    assert tokenizer.decoded_word_index([*encoded.ids, END]) == [0, 1, 2, 3, 4, 5, None]


def test_a_given_byte_level_tokenizer_mends_what_is_half_a_character(tmp_path: Path) -> None:
    alphabet = sorted(hf.pre_tokenizers.ByteLevel.alphabet())
    model = hf.models.BPE({character: number for number, character in enumerate(alphabet)}, [], dropout=0.5)
    pre, decoder = hf.pre_tokenizers.ByteLevel(add_prefix_space=False), hf.decoders.ByteLevel()
    tokenizer = Tokenizer.load(given_tokenizer(tmp_path / "t.json", model, (), pre, decoder))
    encoded = tokenizer.encode("é 한 b")
    assert tokenizer.size == 4 + 256
    assert tokenizer.decode(encoded.ids) == "é 한 b"
    assert encoded.words == [0, 0, None, 1, 1, 1, None, 2]
    assert tokenizer.decode(encoded.ids[:1]) == "\ufffd"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b"\x80\x04\x95",
        b'{"version": "1.0", "model": {"type": "BPE"}}',
        b'{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "<unk>"}}',
        b'{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}',
        None,
    ],
)
def test_a_file_that_is_no_tokenizer(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError) as error:
        Tokenizer.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("content", ["{", '{"V": 1}', '["V", 1]'])
def test_features_that_are_no_list(tmp_path: Path, content: str) -> None:
    trained("character").save(tmp_path / "t.json")
    (tmp_path / "t.features.json").write_text(content)
    with pytest.raises(RunError):
        Tokenizer.load(tmp_path / "t.json")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    trained("character").save(path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match="No space left"):
        trained("word").save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]
