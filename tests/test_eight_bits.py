"""Runs that predict with weights of 8 bits."""

from __future__ import annotations

import pytest
import torch

import eyeline
from eyeline.errors import ConfigError
from eyeline.nn.packed import RoundedLinear
from eyeline.predictor.precision import check_precision
from toy_runs import ToyRuns

LINES = ["a b c", "f e d c b a", "d", ""]


@pytest.mark.usefixtures("small_layers_rounded")
@pytest.mark.parametrize("rung", ["bahdanau", "luong"])
def test_rounded_weights_say_nearly_the_same(toys: ToyRuns, rung: str) -> None:
    plain, rounded = eyeline.load(toys.path(rung)), eyeline.load(toys.path(rung), precision="int8")
    assert any(isinstance(module, RoundedLinear) for module in rounded.model.modules())
    pairs = [(answer.source, answer.text) for answer in plain.predict(LINES)]
    for one, other in zip(plain.score(pairs), rounded.score(pairs), strict=True):
        assert one.score == pytest.approx(other.score, abs=0.5)
    assert [one.score for one in plain.score(pairs)] != [one.score for one in rounded.score(pairs)]


@pytest.mark.usefixtures("small_layers_rounded")
def test_score_agrees_with_predict_when_weights_are_rounded(toys: ToyRuns) -> None:
    """To the size of a rounding: a number in the middle between two integers may fall to either, by the last bit before it."""
    rounded = eyeline.load(toys.path("luong"), precision="int8")
    answers = rounded.predict(LINES)
    for answer, alone in zip(answers, [rounded.predict([line])[0] for line in LINES], strict=True):
        assert answer.text == alone.text
        assert answer.score == pytest.approx(alone.score, abs=0.02)
    for answer, score in zip(answers, rounded.score([(each.source, each.text) for each in answers]), strict=True):
        assert answer.score == pytest.approx(score.score, abs=0.02)


def test_a_precision_that_is_none(toys: ToyRuns) -> None:
    with pytest.raises(ConfigError, match="not a precision of prediction"):
        eyeline.load(toys.path("luong"), precision="int4")
    with pytest.raises(ConfigError, match="8-bit weights are for CPUs"):
        check_precision("int8", torch.device("cuda:0"))
