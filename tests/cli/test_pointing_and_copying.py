"""Commands on runs that point and on runs that copy: JSON lines or text in, positions or words out. Knows bytes and statuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cli_process import Command

from toy_runs import ToyRuns, letters_to_be_sorted, named, to_be_sorted, write_pairs

POINTS = to_be_sorted(6, 7)
LINES = "".join(json.dumps(pair["source"]) + "\n" for pair in POINTS).encode()


def jsonl(path: Path, pairs: object) -> Path:
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))  # type: ignore[attr-defined]
    return path


# ---- numbers in, positions out ------------------------------------------------------------------------------------------


def test_json_lines_in_positions_out(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    plain = eyeline("predict", toys.path("points"), stdin=LINES).well().lines
    assert len(plain) == 6
    for line, pair in zip(plain, POINTS, strict=True):
        assert sorted(map(int, line.split())) == list(range(len(pair["source"])))
    objects = eyeline("predict", toys.path("points"), stdin=jsonl(tmp_path / "p.jsonl", POINTS).read_bytes())
    assert objects.lines == plain
    packed = tmp_path / "in.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n")))
    eyeline("predict", toys.path("points"), packed, "-o", tmp_path / "out.txt").well()
    assert (tmp_path / "out.txt").read_text().split("\n")[:-1] == plain


def test_blank_lines_stay_in_their_place(eyeline: Command, toys: ToyRuns) -> None:
    given = b"\n[[0.1, 0.2], [0.3, 0.4]]\n \t\n\n"
    assert eyeline("predict", toys.path("points"), stdin=given).well().lines == ["", "0 1", "", ""]


def test_every_format_says_positions(eyeline: Command, toys: ToyRuns) -> None:
    def predict(form: str) -> list[str]:
        return eyeline("predict", toys.path("points"), "--format", form, stdin=b"[[0.9,0.2], [0.1,0.4]]\n").well().lines

    value = json.loads(predict("jsonl")[0])
    assert (value["text"], value["tokens"], value["finished"]) == ("1 0", ["1", "0", "</s>"], True)
    assert value["source"] == "[[0.9,0.2], [0.1,0.4]]"
    assert value["source_tokens"] == ["(0.9, 0.2)", "(0.1, 0.4)", "</s>"]
    assert [len(row) for row in value["alignment"]] == [3, 3, 3]
    assert sum(value["token_scores"]) == pytest.approx(value["score"])
    assert predict("nbest")[0].startswith("0 ||| 1 0 ||| F0= ")
    assert predict("fairseq")[-1] == "A-0\t0-1 1-0"


BAD = ["0.5 1", "[[1, 2], [3]]", "[[1]]", "[]", "[[NaN, 1]]", '{"target": [0]}', "[[1, 2]"]


@pytest.mark.parametrize("bad", BAD)
def test_a_line_that_is_no_source_is_named(eyeline: Command, toys: ToyRuns, tmp_path: Path, bad: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(f"[[0.1, 0.2]]\n{bad}\n")
    assert f"({file}:2)" in eyeline("predict", toys.path("points"), file).error


def test_lines_that_are_no_sources_are_answered_with_empty_lines(eyeline: Command, toys: ToyRuns) -> None:
    given = "\n".join(["[[0.1, 0.2]]", *BAD, "[[0.3, 0.4]]"]).encode() + b"\n\xff\n"
    done = eyeline("predict", toys.path("points"), "--on-bad-line", "skip", stdin=given)
    assert done.lines == ["0", *[""] * len(BAD), "0", ""]
    assert done.err == "warning: lines that are no source, answered with an empty line: 8 (2, 3, 4, 5, 6 …)\n"


def test_positions_are_not_found_piece_by_piece(eyeline: Command, toys: ToyRuns) -> None:
    assert "piece by piece (too_long=split)" in eyeline("predict", toys.path("points"), "--too-long", "split", stdin=LINES).error


def test_score_evaluate_align_of_points(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "p.jsonl", POINTS)
    said = [json.loads(line) for line in eyeline("predict", toys.path("points"), "--format", "jsonl", stdin=LINES).lines]
    answered = jsonl(
        tmp_path / "said.jsonl", [{"source": p["source"], "target": s["text"]} for p, s in zip(POINTS, said, strict=True)]
    )
    scores = eyeline("score", toys.path("points"), answered).well().lines
    assert [float(line) for line in scores] == pytest.approx([one["score"] for one in said], abs=1e-5)
    done = eyeline("evaluate", toys.path("points"), file, "--geometry", "sorting").well()
    assert "exact_match" in done.out.decode()
    assert "sequence_accuracy|version:1|task:sorting|match:ascending" in done.out.decode()
    result = json.loads(eyeline("evaluate", toys.path("points"), file, "--json", "-", "--geometry", "sorting").well().out)
    assert result["geometry"]["n"] == 6
    links = eyeline("align", toys.path("points"), answered).well().lines
    for line, one in zip(links, said, strict=True):
        assert line == " ".join(f"{i}-{j}" for i, j in sorted((int(p), place) for place, p in enumerate(one["text"].split())))
    bad = jsonl(tmp_path / "bad.jsonl", [POINTS[0], {"source": [[1, 2]], "target": [1]}])
    for command in ("score", "evaluate", "align"):
        assert f"position 1 is beyond a source of 1 elements ({bad}:2)" in eyeline(command, toys.path("points"), bad).error
        assert (
            "left out, not a source and positions in it: 1"
            in eyeline(command, toys.path("points"), bad, "--on-bad-line", "skip").err
        )


def test_attend_shows_where_it_points(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    eyeline("attend", toys.path("points"), "--source", "[[0.9, 0.2], [0.1, 0.4]]", "-o", file).well()
    value = json.loads(file.read_bytes())
    assert value["source_tokens"] == ["(0.9, 0.2)", "(0.1, 0.4)", "</s>"]
    assert value["target_tokens"] == ["1", "0", "</s>"]
    assert value["weights"][0][1] > 0.5
    assert "position 5" in eyeline("attend", toys.path("points"), "--source", "[[1, 2]]", "--target", "5", "-o", file).error
    eyeline("attend", toys.path("points"), "--source", "[[0.9, 0.2], [0.1, 0.4]]", "-o", tmp_path / "a.svg").well()


def test_info_of_a_pointing_run(eyeline: Command, toys: ToyRuns) -> None:
    lines = eyeline("info", toys.path("points")).well().lines
    assert any(line.startswith("tokenizer") and "vectors of 2" in line for line in lines)
    assert "    element_size: 2" in lines


# ---- symbols in, positions out ------------------------------------------------------------------------------------------


def test_letters_from_a_table(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    pairs = letters_to_be_sorted(12, 7)
    table = write_pairs(tmp_path / "letters.tsv", pairs)
    result = json.loads(eyeline("evaluate", toys.path("letters"), table, "--json", "-").well().out)
    assert result["metrics"]["exact_match"]["score"] > 80
    given = "".join(f"{source}\n" for source, _ in pairs).encode()
    assert len(eyeline("predict", toys.path("letters"), stdin=given).well().lines) == 12
    out = tmp_path / "run"
    files = ["--train", table, "--valid", table, "--out", out]
    eyeline("train", "--architecture", "pointer-network", *files, "--steps", "1").well()
    assert "element_size: 0" in (out / "config.yaml").read_text()


# ---- copies -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["names", "names-transformer"])
def test_what_is_typed_is_copied_and_scored(eyeline: Command, toys: ToyRuns, tmp_path: Path, name: str) -> None:
    given = "".join(f"{source}\n" for source in ["my name is Zürich", *(source for source, _ in named(5, 7))]).encode()
    said = [json.loads(line) for line in eyeline("predict", toys.path(name), "--format", "jsonl", stdin=given).well().lines]
    assert said[0]["text"] == "hello Zürich"
    assert said[0]["tokens"] == ["hello", "Zürich", "</s>"]
    table = write_pairs(tmp_path / "said.tsv", [(one["source"], one["text"]) for one in said])
    for line, one in zip(eyeline("score", toys.path(name), table, "--format", "jsonl").well().lines, said, strict=True):
        value = json.loads(line)
        assert value["score"] == pytest.approx(one["score"], abs=1e-5)
        assert value["tokens"] == one["tokens"]
        assert len(value["p_gen"]) == len(value["tokens"])
        if one["text"].startswith("hello"):
            assert value["p_gen"][0] > 0.5 > value["p_gen"][1], "a greeting is generated, a name is copied"
    result = json.loads(eyeline("evaluate", toys.path(name), table, "--json", "-").well().out)
    assert result["metrics"]["exact_match"]["score"] == 100
    assert result["unknown_rate"]["target"] == 0 < result["unknown_rate"]["source"]
    assert eyeline("predict", toys.path(name), "--beam-size", "1", stdin=given).lines == [one["text"] for one in said]
