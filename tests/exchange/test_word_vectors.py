"""Files of word2vec, GloVe and fastText: every token as it is, rows kept and left, and what is wrong with a file."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.errors import DataError
from eyeline.exchange.word_vectors import read_vectors, vectors_width
from strategies import CONTROL_LOOKALIKES, ODD_CHARACTERS

Vectors = Mapping[str, Sequence[float]]

TWO: Vectors = {"the": [0.5, -1.25, 3.0], "house": [1e-3, 2.0, -0.125]}
BLANKS = "\u00a0\u3000\u2009\u202f\t\u2028\u0085\u001c\x0b\x0c\r\u200b\ufeff"  # none of them U+0020 or LF


def text(vectors: Vectors, header: bool = False, trailing: str = "", end: str = "\n") -> bytes:
    """As GloVe writes it; with a header and a trailing blank as word2vec and fastText do."""
    rows = [f"{token} {' '.join(map(repr, numbers))}{trailing}{end}" for token, numbers in vectors.items()]
    first = f"{len(vectors)} {len(next(iter(vectors.values())))}{end}" if header else ""
    return (first + "".join(rows)).encode()


def binary(vectors: Vectors, between: bytes = b"\n") -> bytes:
    rows = [token.encode() + b" " + struct.pack(f"<{len(v)}f", *v) + between for token, v in vectors.items()]
    return f"{len(vectors)} {len(next(iter(vectors.values())))}\n".encode() + b"".join(rows)


FORMS = {
    "word2vec.txt": lambda vectors: text(vectors, header=True, trailing=" "),
    "word2vec.bin": binary,
    "without-line-ends.vectors": lambda vectors: binary(vectors, b""),
    "glove.txt": text,
    "fasttext.vec": lambda vectors: text(vectors, header=True),
    "windows.vec": lambda vectors: text(vectors, header=True, end="\r\n"),
}

BINARY = ("word2vec.bin", "without-line-ends.vectors")


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def same(found: Mapping[str, np.ndarray], vectors: Vectors) -> None:
    assert found.keys() == vectors.keys()
    for token, numbers in vectors.items():
        assert found[token].dtype == np.float32
        assert found[token].tolist() == np.array(numbers, dtype=np.float32).tolist()


# Every form


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_told_by_its_content(tmp_path: Path, form: str, packed: str) -> None:
    path = written(tmp_path / (form + packed), FORMS[form](TWO))
    assert vectors_width(path) == 3
    same(read_vectors(path, ["the", "house", "The", "th"]), TWO)
    same(read_vectors(str(path), {"house"}), {"house": TWO["house"]})
    assert read_vectors(path, []) == {}


@pytest.mark.parametrize("form", FORMS)
def test_blanks_of_every_kind_are_tokens_and_parts_of_tokens(tmp_path: Path, form: str) -> None:
    """`strip()` and `split()` would lose or merge these."""
    tokens = [*BLANKS, *(f"a{blank}b" for blank in BLANKS), *(f"{blank}a{blank}" for blank in BLANKS), "a", "b", "ab", "é", "한"]
    vectors = {token: [float(number), -0.5 * number] for number, token in enumerate(tokens)}
    assert len(vectors) == len(tokens)
    same(read_vectors(written(tmp_path / form, FORMS[form](vectors)), tokens), vectors)


@pytest.mark.parametrize("form", ["glove.txt", "fasttext.vec", "word2vec.txt"])
def test_a_blank_is_a_token_and_part_of_tokens_in_text(tmp_path: Path, form: str) -> None:
    vectors = {
        token: [float(number) + 0.25, 1.0] for number, token in enumerate(["the", " ", ". . .", "a b", "x", "at 5", "", "y", "z"])
    }
    same(read_vectors(written(tmp_path / form, FORMS[form](vectors)), list(vectors)), vectors)


def test_a_byte_order_mark_is_dropped_and_as_a_token_kept(tmp_path: Path) -> None:
    for form in ("glove.txt", "fasttext.vec"):
        same(read_vectors(written(tmp_path / form, b"\xef\xbb\xbf" + FORMS[form](TWO)), list(TWO)), TWO)
    marks = {"\ufeff": [1.0, 2.0], "a": [3.0, 4.0]}
    same(read_vectors(written(tmp_path / "mark.txt", text(marks)), list(marks)), marks)


TOKENS = st.one_of(
    st.text(st.sampled_from(ODD_CHARACTERS.replace(" ", "")), min_size=1, max_size=4),
    st.text(st.characters(codec="utf-8", exclude_characters=" \n"), min_size=1, max_size=4),
    st.sampled_from(CONTROL_LOOKALIKES),
).filter(lambda token: not token.startswith("\ufeff"))
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), width=st.integers(2, 5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject, width: int) -> None:
    rows = st.dictionaries(TOKENS, st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=6)
    vectors = data.draw(rows)
    name = "a.bin" if form in BINARY else form  # so few numbers may happen to be text
    path = written(tmp_path_factory.mktemp("vectors") / name, FORMS[form](vectors))
    assert vectors_width(path) == width
    same(read_vectors(path, list(vectors)), vectors)
    some = data.draw(st.sets(st.sampled_from(sorted(vectors))))
    same(read_vectors(path, some), {token: vectors[token] for token in some})


def test_only_wanted_rows_stand_in_memory(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    vectors = {f"word{number}": generator.normal(size=50).astype(np.float32).tolist() for number in range(20_000)}
    for form in ("fasttext.vec", "word2vec.bin"):
        path = written(tmp_path / form, FORMS[form](vectors))
        tracemalloc.start()
        found = read_vectors(path, ["word7", "word19999", "absent"])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        same(found, {token: vectors[token] for token in ("word7", "word19999")})
        assert peak < 6_000_000 < path.stat().st_size * 2


def test_of_a_token_that_comes_twice_the_first_row_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "twice.vec", b"3 2\na 1 2\nb 3 4\na 5 6\n")
    same(read_vectors(path, ["a", "b"]), {"a": [1.0, 2.0], "b": [3.0, 4.0]})


def test_other_rows_may_be_no_text(tmp_path: Path) -> None:
    """word2vec's own files hold tokens that were cut in the middle of a character."""
    for name, content in (
        ("a.txt", b"2 2\nc\xff\xc3 1 2\na 3 4\n"),
        ("a.bin", binary({"a": [3.0, 4.0]}).replace(b"1 2\na", b"2 2\n\xff " + bytes(8) + b"\na")),
    ):
        same(read_vectors(written(tmp_path / name, content), ["a"]), {"a": [3.0, 4.0]})


# What is wrong with a file


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("few.vec", b"2 3\na 1 2 3\nb 1 2\n", "2 numbers where 3 are wanted (FILE:3)"),
        ("few.txt", b"a 1 2 3\nb 1 2 3\nc 1 2\n", "2 numbers where 3 are wanted (FILE:3)"),
        ("many.vec", b"2 2\na 1.5 2.5\nb 1.5 2.5 0.5\n", "3 numbers where 2 are wanted (FILE:3)"),
        ("many.txt", b"a .5 .5\nb .5 .5\nc 1.5 -2.5e-05 0.5\n", "3 numbers where 2 are wanted (FILE:3)"),
        ("blank.txt", b"a 1 2\nb 1 2\n\nc 1 2\n", "0 numbers where 2 are wanted (FILE:3)"),
        (
            "tabs.txt",
            b"a\t1\t2\nb\t1\t2\n",
            "no word vectors: a row is a token and its numbers, with blanks between them (FILE:1)",
        ),
        ("words.txt", b"the house is red\nthe sea is blue\n", "no word vectors"),
        ("empty.txt", b"", "no word vectors"),
        ("word.vec", b"2 2\na 1 2\nb 1 x\n", "'x' is not a number (FILE:3)"),
        ("under.vec", b"1 2\na 1 1_0\n", "'1_0' is not a number (FILE:2)"),
        ("nan.txt", b"a 1 2\nb nan 2\n", "nan is not a finite number (FILE:2)"),
        ("inf.vec", b"2 2\na 1 2\nb 1 -inf\n", "-inf is not a finite number (FILE:3)"),
        ("huge.vec", b"2 2\na 1 2\nb 1 4e38\n", "4e38 is not a finite number (FILE:3)"),
        ("short.vec", b"3 2\na 1 2\nb 1 2\n", "cut short: 2 vectors where the first line promises 3 (FILE)"),
        ("long.vec", b"1 2\na 1 2\nb 1 2\n", "a row beyond the 1 that the first line promises (FILE:3)"),
        ("short.bin", binary(TWO)[:-3], "cut short: it ends within vector 2 of 2 (FILE)"),
        ("token.bin", binary(TWO)[: len(b"2 3\nthe ") + 12 + 3], "cut short: it ends within vector 2 of 2 (FILE)"),
        ("head.bin", b"2 3\n", "cut short: 0 vectors where the first line promises 2 (FILE)"),
        ("long.bin", binary(TWO) + b"b ", "it goes on after the 2 vectors that the first line promises (FILE)"),
        (
            "nan.bin",
            binary({"a": [1.0, 2.0], "b": [1.0, float("nan")]}),
            "vector 2 holds nan, which is not a finite number (FILE)",
        ),
        ("blank.bin", b"1 3\n" + b"a" * 70_000 + b"\0", "vector 1 has no token: 65,536 bytes without a blank (FILE)"),
        ("model.bin", b"\xba\x16\x4f\x2f" + bytes(100), "a fastText model, not vectors (FILE); its .vec file has them"),
        ("packed.vec", gzip.compress(text(TWO), mtime=0), "compressed, but its name does not end in .gz (FILE); rename it"),
        ("packed.txt", b"PK\x03\x04" + bytes(100), "a zip archive (FILE); unpack it"),
        ("plain.vec.gz", text(TWO), "damaged or incomplete gzip"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_vectors(path, ["a", "b", "the"])
    assert said.replace("FILE", str(path)) in str(caught.value)


def test_a_file_cut_short_while_packed_absent_or_a_folder(tmp_path: Path) -> None:
    whole = gzip.compress(text({f"word{n}": [n / 7, n / 3] for n in range(2_000)}, header=True))
    (tmp_path / "cut.vec.gz").write_bytes(whole[: len(whole) // 2])
    for path, said in (
        (tmp_path / "cut.vec.gz", "incomplete gzip"),
        (tmp_path / "no.vec", "no such file"),
        (tmp_path, "cannot be read"),
    ):
        with pytest.raises(DataError, match=said):
            read_vectors(path, ["a"])


def test_numbers_of_rows_that_are_not_wanted_are_not_looked_at(tmp_path: Path) -> None:
    path = written(tmp_path / "a.vec", b"2 2\na 1 2\nb nan x\n")
    same(read_vectors(path, ["a"]), {"a": [1.0, 2.0]})
