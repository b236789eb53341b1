"""Coverage as users meet it: the penalty of `predict`, `score` and `evaluate`, and the picture of `attend`."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from cli_process import Command

from eyeline.errors import ConfigError
from eyeline.predictor import Predictor
from eyeline.predictor.inputs import SearchOptions, resolve
from eyeline.search.coverage import LEAST_LOOK
from toy_runs import ATTENTIVE, ToyRuns, reversal, write_pairs

LINES = [source for source, _ in reversal(8, 9)]
GIVEN = "".join(f"{line}\n" for line in LINES).encode()


def penalty(alignment: list[list[float]], beta: float) -> float:
    """β Σ_j log min(Σ_t α_tj, 1), from the matrix that `predict` prints, its END row and column included."""
    return beta * sum(math.log(min(1.0, max(LEAST_LOOK, sum(column)))) for column in zip(*alignment, strict=True))


@pytest.mark.parametrize("rung", ATTENTIVE)
def test_the_normalised_score_has_the_penalty_and_score_prints_the_same(
    eyeline: Command, toys: ToyRuns, tmp_path: Path, rung: str
) -> None:
    for size in ("1", "4"):
        options = ["--beam-size", size, "--coverage-penalty", "0.3", "--format", "jsonl"]
        said = [json.loads(line) for line in eyeline("predict", toys.path(rung), *options, stdin=GIVEN).well().lines]
        for one in said:
            bare = one["score"] / len(one["tokens"])
            assert one["finished"]
            assert one["normalized_score"] == pytest.approx(bare + penalty(one["alignment"], 0.3), abs=1e-5)
        assert any(one["normalized_score"] < one["score"] / len(one["tokens"]) - 1e-4 for one in said)
        file = write_pairs(tmp_path / "said.tsv", [(one["source"], one["text"]) for one in said])
        scored = eyeline("score", toys.path(rung), file, "--coverage-penalty", "0.3", "--format", "jsonl").well().lines
        for line, one in zip(scored, said, strict=True):
            value = json.loads(line)
            assert value["score"] == pytest.approx(one["score"], abs=1e-4)
            assert value["normalized_score"] == pytest.approx(one["normalized_score"], abs=1e-4)


def test_attention_that_is_not_printed_is_counted_all_the_same(eyeline: Command, toys: ToyRuns) -> None:
    options = ["--n-best", "3", "--coverage-penalty", "2"]
    whole = eyeline("predict", toys.path("luong"), *options, "--format", "nbest", stdin=GIVEN).well().lines
    for line in eyeline("predict", toys.path("luong"), *options, "--format", "jsonl", stdin=GIVEN).well().lines:
        best = json.loads(line)["n_best"]
        worths = [one["normalized_score"] for one in best]
        assert worths == sorted(worths, reverse=True)
        for one in best:
            printed = whole.pop(0).split(" ||| ")
            assert (printed[1], float(printed[3])) == (one["text"], pytest.approx(one["normalized_score"], abs=1e-5))


def test_the_best_of_one_is_the_best_of_five(toys: ToyRuns) -> None:
    model = toys.predictor("bahdanau")
    for beta in (0.2, 2.0):
        for one, five in zip(
            model.predict(LINES, beam_size=5, coverage_penalty=beta),
            model.predict(LINES, beam_size=5, n_best=5, coverage_penalty=beta),
            strict=True,
        ):
            assert one.text == five.n_best[0].text
            assert one.normalized_score == pytest.approx(five.n_best[0].normalized_score, abs=1e-5)


def test_a_source_in_pieces_has_the_penalties_of_its_pieces(toys: ToyRuns) -> None:
    trained = toys.predictor("luong")
    config = trained.config
    short = config.model_copy(update={"data": config.data.model_copy(update={"max_length": 3})})
    model = Predictor(replace(trained.run, config=short), trained.model)
    whole = model.predict(["a b c d e"], too_long="split", coverage_penalty=0.5)[0]
    parts = [model.predict([text], coverage_penalty=0.5, length_penalty=1.0)[0] for text in ("a b c", "d e")]
    bare = sum(part.score for part in parts) / sum(len(part.tokens) for part in parts)
    taken_off = sum(part.normalized_score - part.score / len(part.tokens) for part in parts)
    assert taken_off < -1e-3
    assert whole.normalized_score == pytest.approx(bare + taken_off, abs=1e-4)


def test_evaluate_takes_the_penalty_and_keeps_its_loss(eyeline: Command, toys: ToyRuns) -> None:
    pairs = toys.pairs("covered", reversal(12, 8))
    with_it, without = (
        json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-", *options).well().out)
        for options in (["--coverage-penalty", "5"], [])
    )
    assert with_it["loss"] == without["loss"]


@pytest.mark.parametrize("command", ["predict", "score", "evaluate"])
def test_a_run_without_attention_is_refused_by_the_option(eyeline: Command, toys: ToyRuns, command: str) -> None:
    pairs = [] if command == "predict" else [toys.pairs("covered", reversal(12, 8))]
    done = eyeline(command, toys.path("seq2seq"), *pairs, "--coverage-penalty", "0.2", stdin=GIVEN)
    assert "search.coverage_penalty=0.2 needs attention" in done.error
    assert "seq2seq" in done.error


def test_the_runs_own_setting_counts_where_none_is_given(toys: ToyRuns) -> None:
    config = toys.predictor("luong").config
    own = config.model_copy(update={"search": config.search.model_copy(update={"coverage_penalty": 0.4})})
    assert resolve(own, SearchOptions()).coverage_penalty == 0.4
    assert resolve(own, SearchOptions(coverage_penalty=0.0)).coverage_penalty == 0.0
    with pytest.raises(ConfigError, match=r"search\.coverage_penalty=-1"):
        resolve(own, SearchOptions(coverage_penalty=-1.0))


def test_attend_draws_coverage_over_time(eyeline: Command, toys: ToyRuns, tmp_path: Path) -> None:
    given = ["attend", toys.path("luong"), "--source", "a b c a"]
    eyeline(*given, "-o", tmp_path / "attention.json").well()
    eyeline(*given, "--coverage", "-o", tmp_path / "coverage.json").well()
    looks = json.loads((tmp_path / "attention.json").read_bytes())
    values = json.loads((tmp_path / "coverage.json").read_bytes())
    assert values["target_tokens"] == looks["target_tokens"]
    for row, sums in enumerate(values["coverage"]):
        assert sums == pytest.approx([sum(column) for column in zip(*looks["weights"][: row + 1], strict=True)])
    assert sum(values["coverage"][-1]) == pytest.approx(len(values["target_tokens"]), abs=1e-3)
    eyeline(*given, "--coverage", "-o", tmp_path / "coverage.svg").well()
    assert (tmp_path / "coverage.svg").read_bytes().startswith(b"<?xml")
