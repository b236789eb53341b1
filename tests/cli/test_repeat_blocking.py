"""Repeats forbidden, as users meet it: the option of `predict` and `evaluate`, the setting, and what is copied or pointed at."""

from __future__ import annotations

import json

import pytest
from cli_process import Command

from eyeline.errors import ConfigError
from eyeline.predictor.inputs import SearchOptions, resolve
from toy_runs import ToyRuns

REPEATING = ["a a a a", "b c b c b", "d"]
GIVEN = "".join(f"{line}\n" for line in REPEATING).encode()


def repeats(tokens: list[str], size: int) -> bool:
    said = [token for token in tokens if token != "</s>"]
    grams = [tuple(said[first : first + size]) for first in range(len(said) - size + 1)]
    return len(set(grams)) < len(grams)


def test_no_output_says_an_n_gram_twice(eyeline: Command, toys: ToyRuns) -> None:
    assert eyeline("predict", toys.path("luong"), stdin=GIVEN).well().lines == ["a a a a", "b c b c b", "d"]
    for size in (1, 2):
        for beam in (1, 4):
            options = ["--beam-size", str(beam), "--n-best", str(beam), "--format", "jsonl", "--no-repeat-ngram", str(size)]
            for line in eyeline("predict", toys.path("luong"), *options, stdin=GIVEN).well().lines:
                for one in json.loads(line)["n_best"]:
                    assert not repeats(one["tokens"], size)
                    assert one["score"] > -1e4
    same = eyeline("predict", toys.path("luong"), "--no-repeat-ngram", "9", stdin=GIVEN).well().lines
    assert same == ["a a a a", "b c b c b", "d"]


def test_scores_are_those_of_score(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    answers = model.predict(REPEATING, no_repeat_ngram=1)
    scored = model.score([(answer.source, answer.text) for answer in answers])
    for answer, score in zip(answers, scored, strict=True):
        assert answer.finished
        assert score.score == pytest.approx(answer.score, abs=1e-4)


def test_evaluate_takes_it_too(eyeline: Command, toys: ToyRuns) -> None:
    pairs = toys.pairs("repeating", [(line, " ".join(reversed(line.split()))) for line in REPEATING])
    free, held = (
        json.loads(eyeline("evaluate", toys.path("luong"), pairs, "--json", "-", *options).well().out)
        for options in ([], ["--no-repeat-ngram", "1"])
    )
    assert free["metrics"]["exact_match"]["score"] == 100
    assert held["metrics"]["exact_match"]["score"] == pytest.approx(100 / 3)
    assert held["loss"] == free["loss"]


def test_what_is_copied_counts_by_its_own_id(toys: ToyRuns) -> None:
    model = toys.predictor("names")
    source = "my name is Badibo"
    (free,), (held,) = model.predict([source]), model.predict([source], no_repeat_ngram=1)
    assert free.text == held.text == "hello Badibo"
    for answer in model.predict(["Badibo , Badibo and Kumoni"], beam_size=5, n_best=5, no_repeat_ngram=1)[0].n_best:
        assert not repeats(answer.tokens, 1)


def test_positions_that_come_once_already_are_not_touched(toys: ToyRuns) -> None:
    model, sources = toys.predictor("letters"), ["d a c", "b a", "h g f e"]
    for left, right in zip(model.predict(sources), model.predict(sources, no_repeat_ngram=1), strict=True):
        assert (left.text, left.score) == (right.text, right.score)


def test_the_runs_own_setting_counts_where_none_is_given(toys: ToyRuns) -> None:
    config = toys.predictor("luong").config
    own = config.model_copy(update={"search": config.search.model_copy(update={"no_repeat_ngram": 3})})
    assert resolve(own, SearchOptions()).no_repeat_ngram == 3
    assert resolve(own, SearchOptions(no_repeat_ngram=0)).no_repeat_ngram == 0
    with pytest.raises(ConfigError, match=r"search\.no_repeat_ngram=-1"):
        resolve(own, SearchOptions(no_repeat_ngram=-1))
