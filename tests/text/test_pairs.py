"""Files to pairs: the forms, how paths name them, and rows that are no pair."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.errors import ConfigError, DataError, MissingExtra
from eyeline.text.pairs import Pair, ReadReport, drop_blank, read_pairs, resolve
from eyeline.text.tally import Tally
from strategies import lines


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sides(pairs: Iterator[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def fails(kind: type[Exception], *arguments: object, **settings: object) -> str:
    with pytest.raises(kind) as error:
        list(read_pairs(*arguments, **settings))  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    return str(error.value)


# TSV


def test_quotation_marks_are_text(here: Path) -> None:
    Path("q.tsv").write_bytes(b'a\tb\n"c\td\ne\tf"\ng\t"\n')
    assert sides(read_pairs(["q.tsv"])) == [("a", "b"), ('"c', "d"), ("e", 'f"'), ("g", '"')]


def test_lf_and_windows_files_are_alike(here: Path) -> None:
    Path("unix.tsv").write_bytes("é\tb\nc\td\n".encode())
    Path("windows.tsv").write_bytes(b"\xef\xbb\xbf" + "é\tb\r\nc\td\r\n".encode())
    assert sides(read_pairs(["windows.tsv"])) == sides(read_pairs(["unix.tsv"])) == [("é", "b"), ("c", "d")]


def test_columns_by_role(here: Path) -> None:
    Path("m.tsv").write_text("go\tX\tV;PST; 3 ;;\twent\tY\t0-0\n")
    (pair,) = read_pairs(["m.tsv"], ("source", "-", "features", "target", "_", "alignment"))
    assert pair == Pair("go", "went", ("V", "PST", "3"), "0-0", "m.tsv", 1)


def test_extra_columns_are_ignored_and_counted(here: Path) -> None:
    Path("m.tsv").write_text("a\tb\tc\nd\te\nf\tg\th\ti\n")
    report = ReadReport()
    assert sides(read_pairs(["m.tsv"], report=report)) == [("a", "b"), ("d", "e"), ("f", "g")]
    assert (report.pairs, report.extra_columns, report.files) == (3, 2, ["m.tsv"])


def test_a_column_left_out_at_the_end_may_be_absent(here: Path) -> None:
    Path("m.tsv").write_text("a\tb\n")
    assert sides(read_pairs(["m.tsv"], ("source", "target", "-"))) == [("a", "b")]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("source", "taget"), "did you mean 'target'"),
        (("source", "-"), "no column is named 'target'"),
        (("source", "target", "source"), "2 columns are named 'source'"),
        ((), "no column is named 'source'"),
    ],
)
def test_columns_are_checked_before_anything_is_read(columns: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        read_pairs(["absent.tsv"], columns)
    assert f"data.columns={','.join(columns)}" in str(error.value)


def test_a_missing_column_names_file_line_and_counts(here: Path) -> None:
    Path("m.tsv").write_text("a\tb\nc\n\nd\te\n")
    assert fails(DataError, ["m.tsv"]).startswith("1 column where 2 are wanted (m.tsv:2); ")
    report = ReadReport()
    assert sides(read_pairs(["m.tsv"], on_bad_line="skip", report=report)) == [("a", "b"), ("d", "e")]
    assert report.skipped.rows() == [("missing column", 2, "m.tsv:2, 3")]


def test_bytes_that_are_no_text_are_refused_or_counted(here: Path) -> None:
    Path("m.tsv").write_bytes(b"a\tb\nc\0\td\n\xff\te\nf\tg\n")
    assert "(m.tsv:2)" in fails(DataError, ["m.tsv"])
    report = ReadReport()
    assert sides(read_pairs(["m.tsv"], on_bad_line="skip", report=report)) == [("a", "b"), ("f", "g")]
    assert report.skipped.counts == {"NUL character": 1, "not UTF-8": 1}


@given(st.lists(st.tuples(lines(), lines()), min_size=1, max_size=8))
def test_any_text_without_a_tab_survives_a_tsv(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    pairs = [(source.replace("\t", " ").replace("\ufeff", ""), target.replace("\t", " ")) for source, target in pairs]
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in pairs).encode())
    assert sides(read_pairs([str(path)])) == pairs


# JSONL


def test_three_shapes_of_json(here: Path) -> None:
    records = [
        {"source": "a", "target": "b"},
        {"src": "c", "tgt": "d", "features": ["V;X", "PST"], "alignment": "0-0"},
        {"id": 7, "source": "e\tf\u2028", "target": "", "features": "V;PST"},
        {"translation": {"en": "h", "de": "g"}},
    ]
    Path("m.jsonl.gz").write_bytes(gzip.compress("\n".join(json.dumps(record) for record in records).encode()))
    pairs = list(read_pairs(["m.jsonl.gz"], source_language="de", target_language="en"))
    assert sides(iter(pairs)) == [("a", "b"), ("c", "d"), ("e\tf\u2028", ""), ("g", "h")]
    assert [pair.features for pair in pairs] == [(), ("V;X", "PST"), ("V", "PST"), ()]
    assert pairs[1].alignment == "0-0"
    assert [pair.line for pair in pairs] == [1, 2, 3, 4]


def test_translation_without_languages_takes_its_two_keys_in_order(here: Path) -> None:
    Path("m.jsonl").write_text('{"translation": {"en": "h", "de": "g"}}\n')
    assert sides(read_pairs(["m.jsonl"])) == [("h", "g")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "bad JSON: expecting property name"),
        ("", "bad JSON: expecting value"),
        ("[" * 100_000, "bad JSON"),
        ("1" * 10_000, "bad JSON"),
        ('["a", "b"]', "not an object"),
        ('{"source": "a"}', "found 'source'"),
        ("{}", "found nothing"),
        ('{"source": "a", "target": null}', "'target' is null, not text"),
        ('{"source": 5, "target": "b"}', "'source' is int, not text"),
        ('{"source": "a", "target": "b", "features": [1]}', "'features' is int"),
        ('{"source": "a", "target": "b", "alignment": [[0, 0]]}', "'alignment' is list"),
        ('{"source": "a\\u0000", "target": "b"}', "NUL"),
        ('{"source": "a", "target": "\\ud800"}', "surrogate"),
        ('{"translation": {"de": "a", "en": "b", "fr": "c"}}', "3 keys"),
        ('{"translation": "a"}', "found 'translation'"),
    ],
)
def test_json_that_is_no_pair(here: Path, text: str, words: str) -> None:
    Path("m.jsonl").write_text('{"source": "a", "target": "b"}\n' + text + "\n")
    message = fails(DataError, ["m.jsonl"])
    assert words in message
    assert "(m.jsonl:2)" in message
    assert len(sides(read_pairs(["m.jsonl"], on_bad_line="skip"))) == 1


def test_a_language_that_is_not_there(here: Path) -> None:
    Path("m.jsonl").write_text('{"translation": {"de": "a", "en": "b"}}\n')
    message = fails(DataError, ["m.jsonl"], source_language="de", target_language="fr")
    assert "no 'fr' but 'de', 'en'" in message


# Two files


def write_parallel(source: bytes, target: bytes, prefix: str = "train", packed: bool = False) -> None:
    for language, data in (("de", source), ("en", target)):
        Path(f"{prefix}.{language}{'.gz' if packed else ''}").write_bytes(gzip.compress(data) if packed else data)


def test_unicode_separators_do_not_shift_lines(here: Path) -> None:
    write_parallel(b"a\xe2\x80\xa8b\nc\xc2\x85d\ne\x0bf\x0cg\nh\x1ci\n\n", b"1\n2\n3\n4\n5\n")
    assert [pair.target for pair in read_pairs(["train.de", "train.en"])] == ["1", "2", "3", "4", "5"]


def test_a_carriage_return_inside_a_line_does_not_shift_lines(here: Path) -> None:
    write_parallel(b"one\rtwo\nthree\r\nfour\n", b"x\ny\nz\n")
    assert sides(read_pairs(["train.de", "train.en"])) == [("one\rtwo", "x"), ("three", "y"), ("four", "z")]


@pytest.mark.parametrize(
    ("source", "target", "counts"), [(5, 3, "has 5 and train.en has 3"), (2, 40, "has 2 and train.en has 40")]
)
def test_unequal_files_give_both_counts(here: Path, source: int, target: int, counts: str) -> None:
    write_parallel(b"a\n" * source, b"b\n" * target)
    assert f"unequal numbers of lines: train.de {counts}" in fails(DataError, ["train.de", "train.en"])


def test_an_empty_partner_is_an_unequal_one(here: Path) -> None:
    write_parallel(b"a\n", b"")
    assert "train.de has 1 and train.en has 0" in fails(DataError, ["train.de", "train.en"])


def test_a_nul_is_named_by_its_line_and_splits_nothing(here: Path) -> None:
    write_parallel(b"a b\x00 c\nd e f\n\x00\ng h\n", b"c b a\nf e d\nx\nh g\n")
    assert "NUL character at character 4 of the line (train.de:1)" in fails(DataError, ["train.de", "train.en"])
    report = ReadReport()
    assert sides(read_pairs(["train.de", "train.en"], on_bad_line="skip", report=report)) == [("d e f", "f e d"), ("g h", "h g")]
    assert report.skipped.rows() == [("NUL character", 2, "train.de:1, 3")]


def test_a_bad_target_is_named_by_its_own_file(here: Path) -> None:
    write_parallel(b"a\nb\n", b"c\n\xff\n")
    assert "(train.en:2)" in fails(DataError, ["train.de", "train.en"])


# Paths


@pytest.mark.parametrize(
    ("paths", "languages", "expected"),
    [
        (["train.de", "train.en"], (None, None), [("train.de", "train.en")]),
        (["train.{de,en}"], (None, None), [("train.de", "train.en")]),
        (["train.{en,de}"], (None, None), [("train.en", "train.de")]),
        (["train.{en,de}"], ("de", "en"), [("train.de", "train.en")]),
        (["train.{de,en}"], ("xx", "yy"), [("train.de", "train.en")]),
        (["packed.{de,en}.gz"], (None, None), [("packed.de.gz", "packed.en.gz")]),
        (["train"], ("en", "de"), [("train.en", "train.de")]),
        (["packed"], ("de", "en"), [("packed.de.gz", "packed.en.gz")]),
        (["a.tsv", "train.de", "train.en", "b.JSONL.gz"], (None, None), [("a.tsv",), ("train.de", "train.en"), ("b.JSONL.gz",)]),
        (["{a,c}.tsv"], (None, None), [("a.tsv",), ("c.tsv",)]),
        (["odd{x,y}"], (None, None), None),  # a file of just this name, and alone
    ],
)
def test_what_paths_mean(
    here: Path, paths: list[str], languages: tuple[str | None, str | None], expected: list[tuple[str, ...]] | None
) -> None:
    write_parallel(b"a\n", b"b\n")
    write_parallel(b"a\n", b"b\n", "packed", packed=True)
    Path("odd{x,y}").write_text("a\n")
    if expected is None:
        with pytest.raises(DataError, match="a source without its target"):
            resolve(paths, *languages)
    else:
        assert [file.paths for file in resolve(paths, *languages)] == expected


def test_a_table_may_have_any_name(here: Path) -> None:
    """SIGMORPHON's are called hun_large.train, hun.dev and hun.gold."""
    Path("hun.train").write_text("év\tévek\tN;PL\n")
    with gzip.open("hun.dev.gz", "wt", encoding="utf-8") as stream:
        stream.write("kacor\tkacorok\tN;PL\n")
    assert sides(read_pairs(["hun.train"])) == [("év", "évek")]
    inflection = ("source", "target", "features")
    found = list(read_pairs(["hun.train", "hun.dev.gz"], inflection))
    assert [(pair.source, pair.features) for pair in found] == [("év", ("N", "PL")), ("kacor", ("N", "PL"))]


def test_two_sides_that_hold_tabs_are_still_two_sides(here: Path) -> None:
    Path("a.txt").write_text("one\ttwo\n")
    Path("b.txt").write_text("eins\tzwei\n")
    assert sides(read_pairs(["a.txt", "b.txt"])) == [("one\ttwo", "eins\tzwei")]
    write_parallel(b"x\n", b"y\n")
    assert sides(read_pairs(["train.de", "train.en"], ("source", "target", "alignment"))) == [("x", "y")]


@pytest.mark.parametrize(
    ("paths", "languages", "words"),
    [
        ([], (None, None), "no files of pairs"),
        (["absent"], (None, None), "no such file (absent); a bare prefix needs source_language and target_language"),
        (["absent"], ("de", "en"), "no such file (absent); nor with .de and .en after it"),
        (["absent.tsv"], (None, None), "no such file (absent.tsv)"),
        (["absent.parquet"], (None, None), "no such file (absent.parquet)"),
        (["train.{de,fr}"], (None, None), "no such file (train.fr)"),
        (["train.de"], (None, None), "a source without its target (train.de)"),
        (["folder"], (None, None), "a directory that is not a saved data set (folder)"),
        (["empty.tsv"], (None, None), "no pairs: the file is empty (empty.tsv)"),
        (["empty.jsonl"], (None, None), "no pairs: the file is empty (empty.jsonl)"),
        (["empty.tsv", "empty.jsonl"], (None, None), "no pairs: the file is empty (empty.tsv)"),
    ],
)
def test_paths_that_lead_nowhere(here: Path, paths: list[str], languages: tuple[str | None, str | None], words: str) -> None:
    write_parallel(b"a\n", b"b\n")
    Path("folder").mkdir()
    Path("empty.tsv").write_bytes(b"")
    Path("empty.jsonl").write_bytes(b"")
    assert words in fails(DataError, paths, source_language=languages[0], target_language=languages[1])


def test_two_empty_files(here: Path) -> None:
    write_parallel(b"", b"")
    assert "the file is empty (train.de and train.en)" in fails(DataError, ["train.{de,en}"])


def test_a_file_of_nothing_but_bad_lines(here: Path) -> None:
    Path("m.tsv").write_text("a\nb\n")
    assert "each of the 2 lines was skipped (m.tsv)" in fails(DataError, ["m.tsv"], on_bad_line="skip")


# Tables


def test_parquet_and_saved_data_sets(here: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ipc = pytest.importorskip("pyarrow.ipc")
    table = arrow.table({"translation": [{"de": "a", "en": "b"}, {"de": "c", "en": "d"}], "id": [1, 2]})
    parquet.write_table(table, "m.parquet")
    parquet.write_table(arrow.table({"source": ["a", None], "target": ["b", "c"]}), "n.parquet")
    Path("saved").mkdir()
    with ipc.new_stream("saved/data-00000-of-00001.arrow", table.schema) as stream:
        stream.write_table(table)
    Path("saved/state.json").write_text(
        json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train"})
    )
    assert sides(read_pairs(["m.parquet", "saved"])) == [("a", "b"), ("c", "d")] * 2
    assert "'source' is null, not text (n.parquet:2)" in fails(DataError, ["n.parquet"])


def test_tables_that_cannot_be_read(here: Path) -> None:
    pytest.importorskip("pyarrow")
    Path("m.parquet").write_bytes(b"no table")
    assert "not a readable Parquet file" in fails(DataError, ["m.parquet"])
    for name, state in [("a", "{"), ("b", "[]"), ("c", '{"_data_files": [{"filename": "absent.arrow"}]}')]:
        Path(name).mkdir()
        Path(name, "state.json").write_text(state)
        assert "not a readable data set" in fails(DataError, [name])
    Path("a/dataset_dict.json").write_text("{}")
    assert "several splits (a)" in fails(DataError, ["a"])


def test_without_pyarrow_the_extra_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("m.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "eyeline[exchange]" in fails(MissingExtra, ["m.parquet"])


# Blank sides


def test_pairs_with_a_blank_side_are_kept_until_they_are_dropped(here: Path) -> None:
    rows = [("a", "b")] * 40
    rows[4], rows[8], rows[9] = (" \u3000", "x"), ("y", ""), ("", "")
    Path("c.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    assert len(sides(read_pairs(["c.tsv"]))) == 40
    skipped = Tally()
    assert len(list(drop_blank(read_pairs(["c.tsv"]), skipped))) == 37
    assert skipped.rows() == [("empty source", 2, "c.tsv:5, 10"), ("empty target", 1, "c.tsv:9")]


def test_a_tally_keeps_few_places_and_counts_all() -> None:
    first, second = Tally(), Tally()
    for line in (1, 2, 3):
        first.add("x", "a", line)
    for line in range(1, 100):
        second.add("x", "b", line)
    second.add("y", "b", 100)
    first.update(second)
    assert first.rows() == [("x", 102, "a:1, 2, 3, b:1, 2 and 97 more"), ("y", 1, "b:100")]
    assert first.total == 103


# numbers and positions


def test_lists_of_numbers_are_sources_where_they_are_wanted(here: Path) -> None:
    Path("p.jsonl").write_text('{"source": [[0.5, 1], [2, 3]], "target": [1, 0]}\n{"src": [3, 1], "tgt": "1 0"}\n')
    pairs = list(read_pairs(["p.jsonl"], numbers=True))
    assert sides(iter(pairs)) == [("[[0.5,1], [2,3]]", "1 0"), ("[3, 1]", "1 0")]
    assert fails(DataError, ["p.jsonl"]).startswith(
        "'source' is a list, not text; sources of numbers are for pointer-network (p."
    )


def test_lists_of_positions_are_targets_of_any_source(here: Path) -> None:
    Path("p.jsonl").write_text('{"source": "b a", "target": [1, 0]}\n')
    assert sides(read_pairs(["p.jsonl"])) == [("b a", "1 0")]


def test_numbers_in_tables(here: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"source": [[[0.5, 1.0]], [[2.0, 3.0]]], "target": [[0], [0]]}), "p.parquet")
    assert sides(read_pairs(["p.parquet"], numbers=True)) == [("[[0.5,1.0]]", "0"), ("[[2.0,3.0]]", "0")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"source": [[1, 2], [3]], "target": [0]}', "element 1 has 1 number, and those before it 2"),
        ('{"source": [NaN], "target": [0]}', "element 0 holds nan, which is not a finite number"),
        ('{"source": [1], "target": [0.5]}', "0.5 is not a position"),
        ('{"source": [1], "target": [-1]}', "-1 is not a position"),
        ('{"source": [1], "target": [true]}', "true is not a position"),
        ('{"source": {"x": 1}, "target": [0]}', "'source' is dict, not text"),
    ],
)
def test_numbers_that_are_none_are_named_or_counted(here: Path, line: str, words: str) -> None:
    Path("p.jsonl").write_text(f'{{"source": [1], "target": [0]}}\n{line}\n')
    assert fails(DataError, ["p.jsonl"], numbers=True).startswith(f"{words} (p.jsonl:2); --on-bad-line skip")
    report = ReadReport()
    assert len(list(read_pairs(["p.jsonl"], numbers=True, on_bad_line="skip", report=report))) == 1
    assert report.skipped.total == 1
