"""`POST /predict` on models that copy, point, and read features; sentences, prefixes, terms, and tokens as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from serving_live import Live

    from toy_runs import ToyRuns


def test_pointing(service: Live, toys: ToyRuns) -> None:
    source = [[0.5, 0.1], [0.2, 0.9], [0.7, 0.3]]
    (got,) = service.predict(source, model="points")
    (expected,) = toys.predictor("points").predict([source])
    assert (got["text"], got["source"], got["tokens"]) == (expected.text, expected.source, expected.tokens)
    (written,) = service.predict(json.dumps(source), model="points")
    assert written["text"] == expected.text
    for wrong, words in (
        ([[0.5], [0.1]], "elements of 1 number"),
        ([[1, 2], [3]], "element 1"),
        ("a b", "not a JSON list"),
        ([], ""),
    ):
        refused = service.post("/predict", {"inputs": [source, wrong], "model": "points"})
        assert refused.status == 400
        assert words in refused.error
        assert "inputs[1]" in refused.error


def test_copying(service: Live, toys: ToyRuns) -> None:
    source = "my name is Zarifo"
    (got,) = service.predict(source, model="names")
    assert got["text"] == toys.predictor("names").predict([source])[0].text
    assert "Zarifo" in got["text"]


def test_features(service: Live, toys: ToyRuns) -> None:
    (got,) = service.predict("walk\tV;PST", model="features", split=None)
    assert got["text"] == toys.predictor("features").predict(["walk\tV;PST"])[0].text


def test_every_option_is_that_of_predict(service: Live, toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    ways: list[dict[str, Any]] = [
        {"length_penalty": 0.0, "beam_size": 4, "n_best": 4},
        {"length_normalization": "wu", "coverage_penalty": 0.3},
        {"no_repeat_ngram": 1, "min_length": 3, "max_length": 4},
        {"min_length_ratio": 1.5, "max_length_ratio": 2.0},
        {"diverse_groups": 2, "diversity": 0.7, "beam_size": 4, "n_best": 2},
        {"sampling": "top-p=0.9", "n_best": 3, "seed": 11},
        {"mbr": 5, "seed": 2},
        {"too_long": "truncate", "attention": False},
    ]
    for way in ways:
        got, expected = service.predict("a b c", "f e", **way), model.predict(["a b c", "f e"], **way)
        assert [[one["text"] for one in each["n_best"]] for each in got] == [
            [one.text for one in each.n_best] for each in expected
        ]
        assert [one["normalized_score"] for one in got] == pytest.approx([one.normalized_score for one in expected], abs=1e-4)
        assert [one["alignment"] is None for one in got] == [one.alignment is None for one in expected]


def test_prefixes_and_terms(service: Live) -> None:
    assert [one["tokens"][0] for one in service.predict("a b", "c d", prefix="f")] == ["f", "f"]
    assert [one["tokens"][:1] for one in service.predict("a b", "c d", prefix=["e", "f"])] == [["e"], ["f"]]
    first, second = service.predict("a b c", "a b c", constraints=[{"source": "a", "forbid": "c", "line": 2}])
    assert "c" in first["tokens"]
    assert "c" not in second["tokens"]
    (held,) = service.predict("a b", constraints=[{"source": "b", "require": "f"}], beam_size=4)
    assert "f" in held["tokens"]
    refused = service.post("/predict", {"inputs": ["a"], "constraints": [{"source": "a", "require": "xyz"}]})
    assert "vocabulary does not hold" in refused.error


def test_sentences_are_split_and_joined_with_their_white_space(service: Live) -> None:
    (whole,) = service.predict(" a b\n\n c\n", split=True)
    ab, c = (service.predict(text)[0] for text in ("a b", "c"))
    assert whole["text"] == f" {ab['text']}\n\n {c['text']}\n"
    assert whole["source"] == " a b\n\n c\n"
    assert whole["score"] == pytest.approx(ab["score"] + c["score"], abs=1e-4)
    assert whole["alignment"] is None
    (alone,) = service.predict("  a b ", split=True)
    assert (alone["text"], alone["alignment"]) == (f"  {ab['text']} ", ab["alignment"])
    assert service.predict(" \n ", split=True)[0]["text"] == ""
    assert "cannot be cut" in service.post("/predict", {"inputs": [[[0.1, 0.2]]], "model": "points", "split": True}).error


def test_tokens_as_they_come(service: Live) -> None:
    for way in ({"beam_size": 1}, {"sampling": "top-k=3", "seed": 3}):
        got = service.post("/predict", {"inputs": ["a b c"], "stream": True, **way})
        *tokens, (name, last) = got.events
        (whole,) = service.predict("a b c", **way)
        assert name == "prediction"
        assert {kind for kind, _ in tokens} == {"token"}
        assert last["model"] == "luong"
        assert last["predictions"][0]["text"] == whole["text"] == tokens[-1][1]["text"]
        assert [one["token"] for _, one in tokens] == whole["tokens"][:-1]
        assert [one["token_score"] for _, one in tokens] == pytest.approx(whole["token_scores"][:-1], abs=1e-4)


def test_streams_that_cannot_be(service: Live) -> None:
    for wrong in ({"inputs": ["a", "b"]}, {"inputs": []}, {"inputs": ["a"], "beam_size": 3}, {"inputs": ["a"], "split": True}):
        refused = service.post("/predict", {**wrong, "stream": True})
        assert refused.status == 400
        assert refused.error


def test_a_blank_input_is_streamed_too(service: Live) -> None:
    ((name, last),) = service.post("/predict", {"inputs": [" "], "stream": True}).events
    assert (name, last["predictions"][0]["text"]) == ("prediction", "")


def test_no_inputs_no_predictions(service: Live) -> None:
    assert service.predict() == []
