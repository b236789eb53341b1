"""`score`, `evaluate`, `align` and `attend`: what they print is what the run is. Knows files of pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_process import Command

from toy_runs import ATTENTIVE, INFLECTED, SENTENCES, ToyRuns, reversal, write_pairs


@pytest.fixture
def pairs(toys: ToyRuns) -> str:
    return toys.pairs("measured", reversal(12, 8))


@pytest.mark.parametrize("rung", ["seq2seq", *ATTENTIVE])
def test_score_is_what_predict_printed(eyeline: Command, toys: ToyRuns, tmp_path: Path, rung: str) -> None:
    given = "".join(f"{source}\n" for source, _ in reversal(10, 9)).encode()
    for options in (["--beam-size", "1"], ["--beam-size", "4", "--length-penalty", "0"], ["--beam-size", "4"]):
        predicted = eyeline("predict", toys.path(rung), *options, "--format", "jsonl", stdin=given)
        said = [json.loads(line) for line in predicted.lines]
        file = write_pairs(tmp_path / "said.tsv", [(one["source"], one["text"]) for one in said])
        penalty = options[2:] if len(options) > 2 else []
        for more in ([], ["--batch-tokens", "8"]):
            scored = eyeline("score", toys.path(rung), file, *penalty, *more, "--format", "jsonl").well().lines
            for line, one in zip(scored, said, strict=True):
                value = json.loads(line)
                assert list(value) == ["source", "target", "score", "normalized_score", "tokens", "token_scores"]
                assert value["tokens"] == one["tokens"]
                assert value["score"] == pytest.approx(one["score"], abs=1e-4)
                assert value["normalized_score"] == pytest.approx(one["normalized_score"], abs=1e-4)
        plain = eyeline("score", toys.path(rung), file).lines
        assert [float(line) for line in plain] == pytest.approx([one["score"] for one in said], abs=1e-4)


def test_the_perplexity_of_evaluate_is_that_of_score(eyeline: Command, toys: ToyRuns, pairs: str) -> None:
    lines = eyeline("score", toys.path("bahdanau"), pairs, "--format", "jsonl").lines
    tokens = [score for line in lines for score in json.loads(line)["token_scores"]]
    result = json.loads(eyeline("evaluate", toys.path("bahdanau"), pairs, "--json", "-").well().out)
    assert result["perplexity"] == pytest.approx(math.exp(-sum(tokens) / len(tokens)), rel=1e-5)


def test_evaluate_prints_a_table_and_writes_json(eyeline: Command, toys: ToyRuns, pairs: str, tmp_path: Path) -> None:
    done = eyeline("evaluate", toys.path("luong"), pairs, "--json", tmp_path / "new" / "result.json").well()
    result = json.loads((tmp_path / "new" / "result.json").read_bytes())
    assert result["n"] == 12
    assert done.lines[0].startswith("12 pairs   loss ")
    for name, score in result["metrics"].items():
        assert any(line.startswith(name) and score["signature"] in line for line in done.lines)
    assert "written" in done.err
    once = json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-", "--seed", "4").out)
    again = json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-", "--seed", "4").out)
    assert [once[key] for key in ("metrics", "by_length")] == [again[key] for key in ("metrics", "by_length")]


def test_evaluate_takes_search_options(eyeline: Command, toys: ToyRuns, pairs: str) -> None:
    cut = json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-", "--max-length", "1", "--beam-size", "1").out)
    assert cut["length_ratio"] < 0.5
    assert cut["unfinished"] > 0


def test_groups_of_lengths_end_where_they_are_asked_to(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", [(" ".join("abcab"[:length]), "a") for length in (1, 2, 3, 4, 4, 5)])
    result = json.loads(eyeline("evaluate", toys.path("luong"), file, "--json", "-", "--test-lengths", "2,4").well().out)
    assert [(one["min"], one["max"], one["n"]) for one in result["by_length"]] == [(1, 2, 2), (3, 4, 3), (5, 5, 1)]
    assert "rise" in eyeline("evaluate", toys.path("luong"), file, "--test-lengths", "4,2").error


def test_files_of_unequal_length_give_both_counts(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    source, target = tmp_path / "test.src", tmp_path / "test.tgt"
    source.write_text("a b\nc\nd\n")
    target.write_text("b a\nc\n")
    for command in ("evaluate", "score", "align"):
        error = eyeline(command, toys.path("luong"), source, target).error
        assert f"{source} has 3 and {target} has 2" in error
    target.write_text("b a\nc\nd\n")
    assert (
        eyeline("score", toys.path("luong"), source, target).well().lines
        == eyeline("score", toys.path("luong"), f"{tmp_path}/test.{{src,tgt}}").lines
    )


def test_no_lines_and_bad_lines(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "test.tsv"
    file.write_bytes(b"")
    for command in ("evaluate", "score", "align"):
        assert str(file) in eyeline(command, toys.path("luong"), file).error
    file.write_bytes(b"a\ta\nno target\nb\tb\n")
    assert f"{file}:2" in eyeline("evaluate", toys.path("luong"), file).error
    done = eyeline("score", toys.path("luong"), file, "--on-bad-line", "skip")
    assert len(done.lines) == 2
    assert done.err == f"warning: left out, missing column: 1 ({file}:2)\n"


def test_quotation_marks_and_separators_are_text(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "odd.tsv"
    file.write_bytes(b'a\tb\n"c\td\ne\tf"\ng\th\xe2\x80\xa8i\xc2\x85\x0c\n"\t"\n')
    assert len(eyeline("score", toys.path("luong"), file).lines) == 5
    assert json.loads(eyeline("evaluate", toys.path("luong"), file, "--json", "-").out)["n"] == 5


def test_other_columns_and_features(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    swapped = write_pairs(tmp_path / "swapped.tsv", [("b a", "x", "a b")])
    (line,) = eyeline("score", toys.path("luong"), swapped, "--columns", "target,-,source", "--format", "jsonl").lines
    assert (json.loads(line)["source"], json.loads(line)["target"]) == ("a b", "b a")
    assert "'sauce'" in eyeline("score", toys.path("luong"), swapped, "--columns", "sauce,target").error
    result = json.loads(eyeline("evaluate", toys.path("features"), toys.pairs("inflected.train", INFLECTED), "--json", "-").out)
    assert result["metrics"]["exact_match"]["score"] == 100


def test_json_lines_of_pairs(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"source": "a b", "target": "b a"}\n{"src": "c", "tgt": "c"}\n{"translation": {"de": "d", "en": "d"}}\n')
    assert len(eyeline("score", toys.path("luong"), file).lines) == 3


# ---- align --------------------------------------------------------------------------------------------------------------


def test_align_prints_a_pharaoh_line_a_pair(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", [("a b c", "c b a"), ("", "a"), ("d", "d")])
    assert eyeline("align", toys.path("luong"), file).well().lines == ["0-2 1-1 2-0", "", "0-0"]
    eyeline("align", toys.path("luong"), file, "-o", tmp_path / "out.align").well()
    assert (tmp_path / "out.align").read_bytes() == b"0-2 1-1 2-0\n\n0-0\n"


def test_align_links_words_or_tokens(eyeline: Command, toys: ToyRuns) -> None:
    file = toys.pairs("sentences.train", SENTENCES)
    words, tokens = eyeline("align", toys.path("bpe"), file).lines, eyeline("align", toys.path("bpe"), file, "--tokens").lines
    for by_word, by_token, (source, target) in zip(words, tokens, SENTENCES, strict=True):
        links = [tuple(map(int, link.split("-"))) for link in by_word.split()]
        assert sorted(link[1] for link in links) == list(range(len(target.split())))
        assert all(link[0] < len(source.split()) for link in links)
        assert len(by_token.split()) > len(links)


def test_align_measures_against_gold_links(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "gold.tsv", [("a b c", "c b a", "0-2 1-1 2-0")])
    done = eyeline("align", toys.path("luong"), file, "--columns", "source,target,alignment").well()
    assert done.lines == ["0-2 1-1 2-0"]
    assert "precision 100.00  recall 100.00  F1 100.00  AER 0.00" in done.err
    letters = write_pairs(tmp_path / "letters.tsv", [("ab", "ba", "0-1 1-0")])
    for options, said in (([], "--tokens measures against them"), (["--tokens"], "precision ")):
        assert said in eyeline("align", toys.path("odd"), letters, "--columns", "source,target,alignment", *options).err


# ---- attend -------------------------------------------------------------------------------------------------------------


def test_attend_writes_what_the_run_looked_at(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    eyeline("attend", toys.path("luong"), "--source", "a b c", "-o", out).well()
    value = json.loads(out.read_bytes())
    assert value["source_tokens"] == ["a", "b", "c", "</s>"]
    assert value["target_tokens"] == ["c", "b", "a", "</s>"]
    assert [row.index(max(row)) for row in value["weights"][:3]] == [2, 1, 0]
    assert [sum(row) for row in value["weights"]] == pytest.approx([1] * 4, abs=1e-5)
    eyeline("attend", toys.path("luong"), "--source", "a b", "--target", "a b c d e", "-o", out).well()
    value = json.loads(out.read_bytes())
    assert (len(value["weights"]), len(value["weights"][0])) == (6, 3)


def test_attend_draws(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    eyeline("attend", toys.path("luong"), "--source", "a <s> $x$", "-o", tmp_path / "a.svg").well()
    assert b"&lt;s&gt;" in (tmp_path / "a.svg").read_bytes()
    ElementTree.parse(tmp_path / "a.svg")
    eyeline("attend", toys.path("luong"), "--source", "a b", "-o", tmp_path / "a.png").well()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_rung_without_attention_says_so(eyeline: Command, toys: ToyRuns, pairs: str, tmp_path: Path) -> None:
    for arguments in (["attend", "--source", "a b", "-o", tmp_path / "a.json"], ["align", pairs]):
        error = eyeline(arguments[0], toys.path("seq2seq"), *arguments[1:]).error
        assert error == (
            "this architecture looks at its source once and has no attention to show (model.architecture=seq2seq); "
            "train bahdanau or luong"
        )
    assert not (tmp_path / "a.json").exists()
    assert "white space" in eyeline("attend", toys.path("luong"), "--source", " ", "-o", tmp_path / "a.json").error
