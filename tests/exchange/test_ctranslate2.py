"""CTranslate2 in the place of our search says what our search says, for every setting that it has a kind for."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from eyeline.config import Config
from eyeline.contracts import BEGIN, PAD, Prediction
from eyeline.errors import ConfigError
from eyeline.exchange.ctranslate2 import names_of
from eyeline.exchange.ctranslate2_engine import CTranslate2Engine, export_run
from eyeline.predictor import Predictor
from toy_runs import ToyRuns, reversal

ctranslate2: Any = pytest.importorskip("ctranslate2")
PATIENT = 1000.0  # stops when nothing better can come, as our search has it
LINES = ["a b c", "f", "", "d e f a b c d", "c c c", "b a"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"norm": "post", "activation": "gelu", "tie_output": False},
    {"activation": "swiglu", "positions": "learned", "max_positions": 64},
    {"norm": "post", "activation": "swiglu", "positions": "none", "size": 24, "heads": 3},
]


def engaged(predictor: Predictor) -> Predictor:
    run, model = predictor.run, predictor.model
    return Predictor(run, model, engine=CTranslate2Engine(run, model, threads=1))


def random_pair(toys: ToyRuns, settings: dict[str, Any], seed: int) -> tuple[Predictor, Predictor]:
    """A random model behind our search, and behind CTranslate2."""
    trained = toys.predictor("guided")
    config = Config.from_dict({**trained.config.to_dict(), "model": {**trained.config.to_dict()["model"], **settings}})
    run = replace(trained.run, config=config)
    torch.manual_seed(seed)
    model = run.build().eval()
    for parameter in model.parameters():  # norms and biases begin as ones and zeros, which would hide mistakes
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.head.project.bias.data[[PAD, BEGIN]] = -30.0  # training teaches as much: no target has them
    return Predictor(run, model), engaged(Predictor(run, model))


def same(ours: list[Prediction], theirs: list[Prediction]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.tokens == other.tokens
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.normalized_score == pytest.approx(other.normalized_score, abs=1e-4)
        assert [entry.tokens for entry in one.n_best] == [entry.tokens for entry in other.n_best]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("beam", [1, 4])
def test_random_models_say_the_same(toys: ToyRuns, settings: dict[str, Any], beam: int) -> None:
    for seed in range(3):
        torches, engine = random_pair(toys, settings, seed)
        for penalty in (0.0, 1.0):
            asked: dict[str, Any] = {"beam_size": beam, "length_penalty": penalty, "max_length": 12, "attention": False}
            asked["patience"] = PATIENT
            same(torches.predict(LINES, **asked), engine.predict(LINES, **asked))


@pytest.mark.parametrize(("beam", "n_best"), [(1, 1), (4, 1), (4, 3)])
def test_a_trained_model_says_the_same(toys: ToyRuns, beam: int, n_best: int) -> None:
    trained = toys.predictor("guided")
    engine = engaged(trained)
    asked: dict[str, Any] = {"beam_size": beam, "n_best": n_best, "attention": False}
    for patience in (2.0, PATIENT):
        asked["patience"] = patience
        same(trained.predict(LINES, **asked), engine.predict(LINES, **asked))
    with_prefix = {**asked, "prefixes": ["b", "", "", "d", "", "f"]}  # lines with one are left to our search
    same(trained.predict(LINES, **with_prefix), engine.predict(LINES, **with_prefix))


def test_it_is_asked_indeed(toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = toys.predictor("guided")
    engine = engaged(trained)
    monkeypatch.setattr(type(trained.model), "encode", lambda *_: pytest.fail("our model was asked"))
    assert [one.text for one in engine.predict(LINES, attention=False)] == LINES


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"attention": True}, "attention=True"),
        ({"sampling": "top-k=3"}, "sampling=top-k=3"),
        ({"min_length": 2}, "min_length=2"),
        ({"no_repeat_ngram": 2}, "no_repeat_ngram=2"),
        ({"length_normalization": "wu"}, "length_normalization=wu"),
        ({"coverage_penalty": 0.2}, "coverage_penalty=0.2"),
    ],
)
def test_what_it_does_not_know_is_refused(toys: ToyRuns, asked: dict[str, Any], named: str) -> None:
    trained = toys.predictor("guided")
    engine = engaged(trained)
    with pytest.raises(ConfigError, match="an engine does not know this") as caught:
        engine.predict(LINES, **{"attention": False, **asked})
    assert named in str(caught.value)


def test_what_it_does_not_know_may_be_left_to_our_search(toys: ToyRuns) -> None:
    trained = toys.predictor("guided")
    run, model = trained.run, trained.model
    lenient = Predictor(run, model, engine=CTranslate2Engine(run, model, threads=1), otherwise=True)
    for asked in ({"attention": True}, {"attention": False, "min_length": 2}):
        assert list(lenient.predict(LINES, **asked)) == list(trained.predict(LINES, **asked))
    same(trained.predict(LINES, attention=False), lenient.predict(LINES, attention=False))


@pytest.mark.parametrize(
    "settings", [{"positions": "rotary"}, {"positions": "alibi"}, {"attention": "window"}, {"attention": "linear"}]
)
def test_what_cannot_be_converted_is_named(toys: ToyRuns, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="CTranslate2 cannot hold this model") as caught:
        random_pair(toys, settings, 0)
    ((name, value),) = settings.items()
    assert f"model.{name}={value}" in str(caught.value)


def test_names_are_distinct() -> None:
    assert names_of(["<pad>", "<unk>", "a", "a", "<unk>"]) == ["<pad>", "<unk>", "a", "a#3", "<unk>#4"]


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_an_export_is_used_as_any_other_model(toys: ToyRuns, tmp_path: Path, quantization: str) -> None:
    export_run(toys.predictor("guided").run, tmp_path / "out", quantization)
    translator = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    assert translator.translate_batch([["a", "b", "c"]])[0].hypotheses == [["a", "b", "c"]]
    assert {"model.bin", "config.json", "source.tokenizer.json", "target.tokenizer.json"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert json.loads((tmp_path / "out" / "config.json").read_text())["add_source_eos"] is True


def test_what_padding_has_is_not_shared_out(toys: ToyRuns) -> None:
    """Label smoothing leaves padding and begin marks a share; our search neither says them nor gives it to others."""
    trained = toys.predictor("guided")
    model = copy.deepcopy(trained.model)
    model.head.project.bias.data[[PAD, BEGIN]] = trained.model.head.project.bias.data.max() + 1.0
    lines = [line for line, _ in reversal(40, 6)]
    asked: dict[str, Any] = {"beam_size": 4, "n_best": 3, "attention": False, "patience": PATIENT}
    ours = Predictor(trained.run, model)
    assert max(1.0 - math.exp(score) for one in ours.predict(lines) for score in one.token_scores) > 0.05  # it is a share
    same(ours.predict(lines, **asked), engaged(ours).predict(lines, **asked))
