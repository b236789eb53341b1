"""`eyeline predict`: bytes in, one line out for each, in four formats. Knows what a user pipes through it."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest
from cli_process import ASCII_LOCALE, Command
from hypothesis import HealthCheck, given, settings

from strategies import documents
from toy_runs import ToyRuns

KEYS = [
    "source",
    "text",
    "score",
    "normalized_score",
    "source_tokens",
    "tokens",
    "token_scores",
    "alignment",
    "n_best",
    "truncated",
    "finished",
]


# ---- text in ------------------------------------------------------------------------------------------------------------


def test_blank_lines_stay_blank_and_in_their_place(eyeline: Command, toys: ToyRuns) -> None:
    given = b"\na b c\n \n\t\n\xc2\xa0\n\xe3\x80\x80\n\nd e f\n\n"
    assert eyeline("predict", toys.path("luong"), stdin=given).lines == ["", "c b a", "", "", "", "", "", "f e d", ""]


@pytest.mark.parametrize("given", [b"a b c", b"a b c\n", b"a b c\r\n", b"\xef\xbb\xbfa b c\r\n"])
def test_ends_of_lines_and_a_byte_order_mark(eyeline: Command, toys: ToyRuns, given: bytes) -> None:
    assert eyeline("predict", toys.path("luong"), stdin=given).out == b"c b a\n"


def test_nothing_in_nothing_out(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    done = eyeline("predict", toys.path("luong"), stdin=b"").well()
    assert (done.out, done.err) == (b"", "")
    empty = tmp_path / "empty.txt"
    empty.touch()
    eyeline("predict", toys.path("luong"), empty, "-o", tmp_path / "out.txt").well()
    assert (tmp_path / "out.txt").read_bytes() == b""


def test_only_line_feeds_end_lines(eyeline: Command, toys: ToyRuns) -> None:
    given = b"a\xe2\x80\xa8b\nc\xc2\x85d\ne\x0bf\x0cg\nh\x1ci\x1dj\x1ek\n\na\rb\n"
    for form in ("text", "jsonl"):
        out = eyeline("predict", toys.path("odd"), "--format", form, stdin=given).out
        assert out.count(b"\n") == 6
        assert out.count(b"\r") == 0


@given(texts=documents())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_many_lines_out_as_in(eyeline: Command, toys: ToyRuns, texts: list[str]) -> None:
    given = "".join(f"{text}\n" for text in texts).encode()
    done = eyeline("predict", toys.path("odd"), "--beam-size", "1", stdin=given)
    assert done.status == 0
    assert done.out.count(b"\n") == len(texts)


@pytest.mark.parametrize(
    ("bad", "named"),
    [(b"b\xff\n", "not UTF-8: byte 0xff at byte 2"), (b"a\0b\n", "NUL"), (b"\xff\xfea\0\n", "not UTF-8"), (b"\xc3", "not UTF-8")],
)
def test_a_line_that_is_no_text_is_named_or_skipped_in_its_place(
    eyeline: Command, toys: ToyRuns, tmp_path: Path, bad: bytes, named: str
) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"a b\n" + bad)
    error = eyeline("predict", toys.path("luong"), file, "-o", tmp_path / "out.txt").error
    assert named in error
    assert f"({file}:2)" in error
    assert "--on-bad-line skip" in error
    assert not (tmp_path / "out.txt").exists()
    assert "(standard input:2)" in eyeline("predict", toys.path("luong"), "-", stdin=file.read_bytes()).error
    skipped = eyeline("predict", toys.path("luong"), "--on-bad-line", "skip", stdin=b"a b\n" + bad.rstrip(b"\n") + b"\nc\n")
    assert skipped.lines == ["b a", "", "c"]
    assert skipped.err == "warning: lines that are no text, answered with an empty line: 1 (2)\n"


def test_an_absent_input_is_named(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    assert f"no such file ({tmp_path / 'nowhere.txt'})" in eyeline("predict", toys.path("luong"), tmp_path / "nowhere.txt").error


def test_a_packed_file_and_an_output_file(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    packed, out = tmp_path / "in.txt.gz", tmp_path / "new" / "out.txt"
    packed.write_bytes(gzip.compress(b"a b\n\nc d e\n"))
    done = eyeline("predict", toys.path("luong"), packed, "-o", out).well()
    assert done.out == b""
    assert out.read_bytes() == b"b a\n\ne d c\n"


def test_typed_control_symbols_do_not_end_a_source(eyeline: Command, toys: ToyRuns) -> None:
    one, other = eyeline("predict", toys.path("luong"), stdin=b"a </s> b c\na\n").lines
    assert one != other


def test_a_file_of_pairs_is_taken_as_it_is_and_told(eyeline: Command, toys: ToyRuns) -> None:
    done = eyeline("predict", toys.path("luong"), toys.pairs("mistaken", [("a", "b")]))
    assert len(done.lines) == 1
    assert "`eyeline evaluate` reads pairs" in done.err


def test_the_locale_changes_no_byte(process: Command, toys: ToyRuns, tmp_path: Path) -> None:
    given = "é ß\n한국어\n😀 a\nế b\n".encode()
    command = ["predict", toys.path("odd"), "--format", "jsonl"]
    plain, ascii_only = (process(*command, stdin=given, env=env) for env in ({"LC_ALL": "C.UTF-8"}, ASCII_LOCALE))
    assert ascii_only.status == 0, ascii_only.err
    assert plain.out == ascii_only.out
    assert [json.loads(line)["source"] for line in plain.lines] == given.decode().split("\n")[:-1]
    drawn = process("attend", toys.path("odd"), "--source", "한국어", "-o", tmp_path / "ß.json", env=ASCII_LOCALE)
    assert drawn.status == 0, drawn.err
    assert drawn.err == f"written: {tmp_path}/ß.json\n"
    assert json.loads((tmp_path / "ß.json").read_bytes())["source_tokens"] == ["한", "국", "어", "</s>"]


# ---- lines too long -----------------------------------------------------------------------------------------------------


@pytest.fixture
def short_sighted(toys: ToyRuns, tmp_path: Path) -> Path:
    """A run that was trained on no more than four tokens a side."""
    run = tmp_path / "short"
    run.mkdir()
    for name in ("model.safetensors", "source.tokenizer.json", "target.tokenizer.json"):
        (run / name).write_bytes((toys.path("luong") / name).read_bytes())
    config = (toys.path("luong") / "config.yaml").read_text(encoding="utf-8")
    assert "  max_length: 1000" in config
    (run / "config.yaml").write_text(config.replace("  max_length: 1000", "  max_length: 4"), encoding="utf-8")
    return run


def test_long_lines_are_counted_whatever_is_done_with_them(eyeline: Command, short_sighted: Path) -> None:
    given = b"a b c d e f\na b\n\nf e d c b a\n"
    refused = eyeline("predict", short_sighted, "--too-long", "error", stdin=given)
    assert "6 tokens is longer than data.max_length=4 (standard input:1)" in refused.error
    lines = {}
    for choice, said in (("truncate", "cut to it"), ("split", "predicted in pieces"), (None, "predicted whole")):
        done = eyeline("predict", short_sighted, *(["--too-long", choice] if choice else []), stdin=given)
        assert done.status == 0
        assert f"warning: sources of more tokens than data.max_length=4: 2, {said} (--too-long)" in done.err
        lines[choice] = done.lines
        assert len(done.lines) == 4
        assert done.lines[1:3] == ["b a", ""]
    assert lines["truncate"][0] == "d c b a"
    assert lines["split"][0] == "d c b a f e"


def test_parts_still_give_every_line_its_alternatives(eyeline: Command, short_sighted: Path) -> None:
    done = eyeline("predict", short_sighted, "--too-long", "split", "--n-best", "3", stdin=b"a b c d e f\n\n")
    assert len(done.lines) == 6


def test_five_thousand_characters(eyeline: Command, toys: ToyRuns) -> None:
    done = eyeline("predict", toys.path("odd"), stdin=b"ab" * 2500 + b"\na b\n")
    assert done.status == 0
    assert len(done.lines) == 2
    assert "sources of more tokens than data.max_length=1000: 1, predicted whole" in done.err


# ---- formats ------------------------------------------------------------------------------------------------------------


def test_json_lines_have_the_keys_of_the_contract(eyeline: Command, toys: ToyRuns) -> None:
    values = [json.loads(line) for line in eyeline("predict", toys.path("luong"), "--format", "jsonl", stdin=b"a b c\n\n").lines]
    for value in values:
        assert list(value) == KEYS
        assert list(value["n_best"][0]) == ["text", "score", "normalized_score", "tokens", "token_scores", "finished"]
    full, blank = values
    assert (full["source"], full["text"], full["finished"], full["truncated"]) == ("a b c", "c b a", True, False)
    assert full["source_tokens"] == ["a", "b", "c", "</s>"]
    assert full["tokens"] == ["c", "b", "a", "</s>"]
    assert len(full["alignment"]) == len(full["tokens"])
    assert all(len(row) == 4 and sum(row) == pytest.approx(1, abs=1e-5) for row in full["alignment"])
    assert full["score"] == pytest.approx(sum(full["token_scores"]), abs=1e-9)
    assert full["normalized_score"] == pytest.approx(full["score"] / 4)
    assert full["n_best"][0]["text"] == full["text"]
    assert (blank["text"], blank["score"], blank["tokens"], blank["alignment"]) == ("", 0.0, [], None)


def test_no_alignment_where_there_is_none_or_none_is_wanted(eyeline: Command, toys: ToyRuns) -> None:
    for run, option in (("seq2seq", "--attention"), ("luong", "--no-attention")):
        (line,) = eyeline("predict", toys.path(run), "--format", "jsonl", option, stdin=b"a b c\n").lines
        assert json.loads(line)["alignment"] is None


@pytest.mark.parametrize("beam", [[], ["--beam-size", "9"]])
def test_exactly_n_lines_for_each_input(eyeline: Command, toys: ToyRuns, beam: list[str]) -> None:
    given = b"a b c\n\nd\n"
    text = eyeline("predict", toys.path("luong"), "--n-best", "8", *beam, stdin=given).lines
    assert len(text) == 24
    assert text[8:16] == [""] * 8
    assert len(set(text[:8])) == 8
    assert text[0] == "c b a"
    rows = eyeline("predict", toys.path("luong"), "--n-best", "8", *beam, "--format", "nbest", stdin=given).lines
    assert [row.split(" ||| ")[0] for row in rows] == ["0"] * 8 + ["1"] * 8 + ["2"] * 8
    assert [row.split(" ||| ")[1] for row in rows] == text
    for row in rows:
        _, _, score, normalized = row.split(" ||| ")
        assert score.startswith("F0= ")
        assert 0 >= float(normalized) >= float(score.removeprefix("F0= "))
    ranks = [float(row.split(" ||| ")[3]) for row in rows[:8]]
    assert ranks == sorted(ranks, reverse=True)


def test_n_lines_even_where_fewer_outputs_are_possible(eyeline: Command, toys: ToyRuns) -> None:
    given = ["--n-best", "12", "--max-length", "1"]
    text = eyeline("predict", toys.path("luong"), *given, stdin=b"a\n").lines  # six symbols, the unknown one and nothing
    assert len(text) == 12
    rows = eyeline("predict", toys.path("luong"), *given, "--format", "nbest", stdin=b"a\n").lines
    assert len(rows) == 12


def test_a_longer_list_than_the_beam_names_both(eyeline: Command, toys: ToyRuns) -> None:
    error = eyeline("predict", toys.path("luong"), "--n-best", "3", "--beam-size", "2", stdin=b"a\n").error
    assert "n_best=3, beam_size=2" in error


def test_the_first_of_five_is_the_only_one_of_one(eyeline: Command, toys: ToyRuns) -> None:
    given = b"a b c\nf f\ne d c b a f\n"
    one = eyeline("predict", toys.path("bahdanau"), stdin=given).lines
    assert eyeline("predict", toys.path("bahdanau"), "--n-best", "5", stdin=given).lines[::5] == one


def test_fairseq_lines(eyeline: Command, toys: ToyRuns) -> None:
    out = eyeline("predict", toys.path("luong"), "--format", "fairseq", "--n-best", "2", stdin=b"a b c\n\n").lines
    heads = [line.split("\t")[0] for line in out]
    assert heads == ["S-0", "H-0", "D-0", "P-0", "H-0", "D-0", "P-0", "A-0", "S-1", "H-1", "D-1", "P-1", "H-1", "D-1", "P-1"]
    cells = [line.split("\t")[1:] for line in out]
    assert cells[0] == ["a b c"]
    assert cells[1][1] == cells[2][1] == "c b a"  # END is scored, but not written
    assert len(cells[3][0].split()) == 4
    best = json.loads(eyeline("predict", toys.path("luong"), "--format", "jsonl", stdin=b"a b c\n").lines[0])
    assert float(cells[1][0]) == pytest.approx(best["normalized_score"] / math.log(2), abs=1e-5)  # to the base 2, as fairseq's
    assert float(cells[3][0].split()[0]) == pytest.approx(best["token_scores"][0] / math.log(2), abs=1e-4)
    assert cells[7] == ["0-2 1-1 2-0"]
    assert float(cells[1][0]) >= float(cells[4][0])


def test_search_options_reach_the_search(eyeline: Command, toys: ToyRuns) -> None:
    def say(*options: str) -> list[str]:
        return eyeline("predict", toys.path("luong"), *options, stdin=b"a b c d\n").lines

    assert say("--max-length", "2", "-q")[0].count(" ") == 1
    assert say("--min-length", "6")[0].count(" ") >= 5
    assert say("--batch-tokens", "1") == say() == say("--beam-size", "1") == ["d c b a"]
    short, long = say("--n-best", "5", "--length-penalty", "0"), say("--n-best", "5", "--length-penalty", "3")
    assert sum(map(len, short)) < sum(map(len, long))
    assert "--length-penalty" in eyeline("predict", toys.path("luong"), "--length-penalty", "nan").error


# ---- features -----------------------------------------------------------------------------------------------------------


def test_features_stand_behind_a_tab(eyeline: Command, toys: ToyRuns) -> None:
    given = b"walk\tV;PST\nwalk\tV;PRS;3\n\tV;PST\n \nwalk\nwalk\tV;NEVER_SEEN\nwalk\t V ; PST\n"
    done = eyeline("predict", toys.path("features"), "--format", "jsonl", stdin=given)
    values = [json.loads(line) for line in done.lines]
    assert [value["source"] for value in values] == given.decode().split("\n")[:-1]
    assert values[0]["source_tokens"] == ["V", "PST", "w", "a", "l", "k", "</s>"]
    assert values[0]["text"] == "walked"
    assert values[1]["text"] == "walks"
    assert [value["text"] for value in values[2:4]] == ["", ""]
    assert values[4]["source_tokens"] == ["w", "a", "l", "k", "</s>"]
    assert values[5]["source_tokens"][:2] == ["V", "NEVER_SEEN"]
    assert values[6]["text"] == values[0]["text"]
