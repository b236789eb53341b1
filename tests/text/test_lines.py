"""Bytes to lines and back: what ends a line, what is no text, and files that cannot be read."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.errors import DataError
from eyeline.text.lines import NOT_UTF8, NUL, BadLine, Line, output_line, read_lines, require_line, write_lines
from strategies import documents

BOM = b"\xef\xbb\xbf"


def texts(data: bytes) -> list[str]:
    return [require_line(line, "test").text for line in read_lines(io.BytesIO(data))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (
            b"a\xe2\x80\xa8b\nc\xc2\x85d\ne\x0bf\x0cg\nh\x1ci\x1dj\x1ek\n\n",
            ["a\u2028b", "c\x85d", "e\x0bf\x0cg", "h\x1ci\x1dj\x1ek", ""],
        ),
        (b"one\rtwo\nthree\r\nfour\n", ["one\rtwo", "three", "four"]),
        (b"a\r\r\nb\r", ["a\r", "b\r"]),
        (BOM + b"a\n" + BOM + b"b\n", ["a", "\ufeffb"]),
        (BOM, [""]),
        ("é ß 한 😀 ế\n".encode(), ["é ß 한 😀 ế"]),
    ],
)
def test_only_lf_and_crlf_end_a_line(data: bytes, expected: list[str]) -> None:
    assert texts(data) == expected


@given(documents())
def test_lines_survive_lf_crlf_and_bom_alike(lines: list[str]) -> None:
    data = [line.encode() for line in lines]
    assert texts(b"".join(line + b"\n" for line in data)) == [
        line.removeprefix("\ufeff") if i == 0 else line for i, line in enumerate(lines)
    ]
    assert texts(BOM + b"".join(line + b"\r\n" for line in data)) == (lines or [""])


@given(st.text(st.characters(codec="utf-8")))
def test_one_text_is_one_line_of_output(text: str) -> None:
    line = output_line(text)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    assert line.decode()[:-1] == text.replace("\r", " ").replace("\n", " ")


def test_writing_counts_lines_and_keeps_unicode_separators() -> None:
    stream = io.BytesIO()
    assert write_lines(stream, ["a\u2028b", "", "c\nd", "\ud800"]) == 4
    assert stream.getvalue() == "a\u2028b\n\nc d\n?\n".encode()


def test_bad_lines_are_values_and_reading_goes_on() -> None:
    lines = list(read_lines(io.BytesIO(b"a\nb\x00c\n\xff\xfe\nd\xe2\x80\n\xed\xa0\x80\nlast")))
    assert [line.number for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line.reason for line in lines if isinstance(line, BadLine)] == [NUL, NOT_UTF8, NOT_UTF8, NOT_UTF8]
    assert lines[0] == Line(1, "a")
    assert lines[5] == Line(6, "last")


def test_a_bad_line_names_file_line_and_byte() -> None:
    (line,) = read_lines(io.BytesIO(b"ab\xffc\n"))
    with pytest.raises(DataError) as error:
        require_line(line, "x.txt", "mend it")
    assert str(error.value) == "not UTF-8: byte 0xff at byte 3 of the line (x.txt:1); mend it"


def test_utf16_is_recognised() -> None:
    first = next(read_lines(io.BytesIO("a b\n".encode("utf-16"))))
    assert isinstance(first, BadLine)
    assert "UTF-16" in first.detail


def test_gzip_is_transparent(tmp_path: Path) -> None:
    path = tmp_path / "a b é.txt.gz"
    path.write_bytes(gzip.compress(BOM + "x\r\n한".encode()))
    assert [line.text for line in read_lines(path) if isinstance(line, Line)] == ["x", "한"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    truncated = tmp_path / "cut.gz"
    truncated.write_bytes(gzip.compress(os.urandom(4000))[:2000])
    damaged = tmp_path / "damaged.gz"
    content = bytearray(gzip.compress(b"abc\n" * 1000))
    content[12:30] = b"\xff" * 18
    damaged.write_bytes(bytes(content))
    plain = tmp_path / "plain.gz"
    plain.write_bytes(b"not gzip\n")
    for path, words in [
        (truncated, "gzip"),
        (damaged, "gzip"),
        (plain, "gzip"),
        (tmp_path / "absent", "no such file"),
        (tmp_path, "a directory"),
    ]:
        with pytest.raises(DataError, match=words) as error:
            list(read_lines(path))
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:  # the superuser, who may run the tests, is refused nothing
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("eyeline.text.lines._open", refuse)
    with pytest.raises(DataError, match=r"permission denied \(.*secret\)$"):
        list(read_lines(tmp_path / "secret"))


def test_a_stream_is_left_open_and_called_by_its_name() -> None:
    stream = io.BytesIO(b"\0\n")
    list(read_lines(stream, "standard input"))
    assert not stream.closed


def test_a_large_file_is_never_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"some words on a line\n" * 100_000)  # 2 MB
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_lines(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 100_000
    assert peak < 500_000


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("é ß 한 😀 ế\n".encode())
    program = (
        "import sys; from eyeline.text.lines import read_lines, write_lines;"
        f"write_lines(sys.stdout.buffer, [line.text for line in read_lines({str(path)!r})])"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert done.stdout == path.read_bytes()
