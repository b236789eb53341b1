"""`Predictor.stream_tokens`: one output as it grows, the same in the end as `predict` gives it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from eyeline.errors import ConfigError, UserError
from eyeline.predictor import SearchOptions, Term

if TYPE_CHECKING:
    from toy_runs import ToyRuns

SOURCES: dict[str, Any] = {
    "seq2seq": "a b c",
    "bahdanau": "a b c",
    "luong": "d e f a",
    "bpe": "the small cat eats",
    "points": [[0.5, 0.1], [0.2, 0.9], [0.7, 0.3]],
    "letters": "d a c",
    "names": "my name is Zarifo",
    "names-transformer": "my name is Zarifo",
    "guided": "a b c",
    "odd": "한국어",
}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"sampling": "top-k=4,temperature=1.5", "seed": 7},
    "bounded": {"min_length": 2, "max_length": 3, "no_repeat_ngram": 1},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("run", SOURCES)
def test_the_last_is_what_predict_says(toys: ToyRuns, run: str, way: str) -> None:
    model, options = toys.predictor(run), WAYS[way]
    grown = list(model.stream_tokens(SOURCES[run], SearchOptions(**options)))
    whole = model.predict([SOURCES[run]], **({"beam_size": 1} if "sampling" not in options else {}), **options)[0]
    last = grown[-1]
    for name, value in asdict(whole).items():
        if name not in ("alignment", "score", "normalized_score", "token_scores", "n_best"):
            assert getattr(last, name) == value, name
    assert last.score == pytest.approx(whole.score, abs=1e-4)
    assert last.normalized_score == pytest.approx(whole.normalized_score, abs=1e-4)
    assert (last.alignment is None) == (whole.alignment is None)
    for mine, theirs in zip(last.alignment or [], whole.alignment or [], strict=True):
        assert mine == pytest.approx(theirs, abs=1e-4)
    for before, after in pairwise(grown):
        assert after.tokens[: len(before.tokens)] == before.tokens
        assert len(after.tokens) - len(before.tokens) == (1 if after is not last or last.finished else 0)
        assert (before.alignment, before.finished) == (None, False)


def test_a_prefix_a_penalty_and_what_may_not_be_said(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    options = SearchOptions(coverage_penalty=0.5)
    *_, last = model.stream_tokens("a b c", options, prefix="f", terms=[Term(forbid=("c",))])
    (whole,) = model.predict(["a b c"], beam_size=1, coverage_penalty=0.5, prefixes=["f"], constraints=[{"forbid": "c"}])
    assert (last.text, last.tokens[0]) == (whole.text, "f")
    assert last.normalized_score == pytest.approx(whole.normalized_score, abs=1e-4)
    assert "c" not in last.tokens


def test_unknown_words_are_replaced_in_the_end(toys: ToyRuns) -> None:
    model = toys.predictor("strangers")
    grown = list(model.stream_tokens("my name is Zarifo", SearchOptions(replace_unknown=True)))
    assert grown[-1].text == model.predict(["my name is Zarifo"], beam_size=1, replace_unknown=True)[0].text
    assert any("<unk>" in one.tokens for one in grown[:-1])
    assert "<unk>" not in grown[-1].tokens


def test_a_blank_source_asks_no_model(toys: ToyRuns) -> None:
    (only,) = toys.predictor("luong").stream_tokens(" \t")
    assert (only.text, only.tokens, only.finished) == ("", [], True)


@pytest.mark.parametrize(
    "options", [{"beam_size": 2}, {"n_best": 2, "sampling": ""}, {"mbr": 3}, {"too_long": "split"}, {"sampling": "top-q=1"}]
)
def test_what_is_not_known_before_the_end_is_refused_at_once(toys: ToyRuns, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        toys.predictor("luong").stream_tokens("a b", SearchOptions(**options))


def test_a_source_that_is_none_is_refused_at_once(toys: ToyRuns) -> None:
    with pytest.raises(UserError):
        toys.predictor("points").stream_tokens("a b")
    with pytest.raises(UserError):
        toys.predictor("luong").stream_tokens(5)


def test_gradients_are_as_they_were_between_tokens(toys: ToyRuns) -> None:
    torch = pytest.importorskip("torch")
    for _ in toys.predictor("luong").stream_tokens("a b c"):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
