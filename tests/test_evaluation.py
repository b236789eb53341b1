"""A run measured: what the figures mean, blank sides, and alignments against gold links. Knows runs from Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from eyeline.contracts import Prediction
from eyeline.errors import ConfigError, DataError, UserError
from eyeline.evaluation import (
    align_pairs,
    alignment_against_gold,
    alignment_matrix,
    describe,
    evaluate,
    links_words,
    read_for,
    render,
)
from eyeline.predictor import SearchOptions
from eyeline.text.records import Pair
from toy_runs import ATTENTIVE, INFLECTED, RUNGS, ToyRuns, reversal, write_pairs

METRICS = {"exact_match", "symbol_error_rate", "wer", "cer", "bleu", "chrf", "ter", "rougeL"}
Write = Callable[[Sequence[Sequence[str]]], list[str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda pairs: [write_pairs(tmp_path / "pairs.tsv", pairs)]


# ---- evaluate -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS)
def test_the_figures_of_the_contract(toys: ToyRuns, write: Write, rung: str) -> None:
    model = toys.predictor(rung)
    pairs = read_for(model, write(reversal(30, 5)))
    result = evaluate(model, pairs)
    assert list(result)[:4] == ["n", "loss", "perplexity", "metrics"]
    assert {"by_length", "unknown_rate", "repetition_rate", "length_ratio", "speed"} <= set(result)
    assert result["n"] == 30
    assert set(result["metrics"]) == METRICS
    for score in result["metrics"].values():
        assert score["signature"]
        assert score["low"] <= score["score"] <= score["high"]
    assert sum(bucket["n"] for bucket in result["by_length"]) == 30
    assert set(result["by_length"][0]) == {"min", "max", "n", "metric", "score", "low", "high"}
    assert result["by_length"][0]["metric"] == "exact_match"
    assert result["unknown_rate"] == {"source": 0.0, "target": 0.0}
    assert set(result["speed"]) == {"sentences_per_s", "target_tokens_per_s"}
    assert all(speed > 0 for speed in result["speed"].values())
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    outputs = [answer.text for answer in model.predict([pair.source for pair in pairs])]
    right = sum(output == pair.target for output, pair in zip(outputs, pairs, strict=True))
    assert result["metrics"]["exact_match"]["score"] == pytest.approx(100 * right / 30)


@pytest.mark.parametrize("rung", RUNGS)  # bahdanau was trained with label smoothing
def test_perplexity_is_that_of_the_scores_whatever_the_batches(toys: ToyRuns, write: Write, rung: str) -> None:
    model = toys.predictor(rung)
    pairs = read_for(model, write(reversal(7, 6)))
    scores = model.score([(pair.source, pair.target) for pair in pairs])
    tokens = [token for score in scores for token in score.token_scores]
    expected = math.exp(-sum(tokens) / len(tokens))
    for batch_tokens in (1, 24, 56):
        result = evaluate(model, pairs, SearchOptions(batch_tokens=batch_tokens))
        assert result["perplexity"] == pytest.approx(expected, rel=1e-5)
        assert math.log(result["perplexity"]) == pytest.approx(result["loss"], rel=1e-5)


def test_pairs_with_blank_sides_keep_their_place_and_are_defined(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("luong")
    pairs = read_for(model, write([("a b", "b a"), ("", "a"), (" ", " "), ("c", ""), ("e f", "f e")]))
    result = evaluate(model, pairs)
    assert result["n"] == 5
    assert result["metrics"]["exact_match"]["score"] == pytest.approx(60)  # two reversals and the blank pair
    assert math.isfinite(result["loss"])
    scores = model.score([(pair.source, pair.target) for pair in pairs])
    tokens = [token for score in scores for token in score.token_scores]
    assert result["loss"] == pytest.approx(-sum(tokens) / len(tokens), rel=1e-5)


@pytest.mark.parametrize("pairs", [[("", "")], [("", "a b")], [("a b", "")]])
def test_nothing_but_blank_sides(toys: ToyRuns, write: Write, pairs: list[tuple[str, str]]) -> None:
    result = evaluate(toys.predictor("luong"), read_for(toys.predictor("luong"), write(pairs)))
    assert result["n"] == 1
    json.dumps(result, allow_nan=False)
    assert "1 pairs" in render(result)


def test_unknown_symbols_are_counted_a_side(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("luong")
    result = evaluate(model, read_for(model, write([("a b x y", "b a"), ("a b c d", "z a b c")])))
    assert result["unknown_rate"] == {"source": 2 / 8, "target": 1 / 6}


def test_references_are_composed_as_outputs_are(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("odd")
    (output,) = [answer.text for answer in model.predict(["é ß"])]
    assert output == "ß é"
    result = evaluate(model, read_for(model, write([("e\u0301 ß", "ß e\u0301")])))
    for metric in ("exact_match", "bleu", "chrf"):
        perfect = evaluate(model, read_for(model, write([("é ß", "ß é")])))["metrics"][metric]["score"]
        assert result["metrics"][metric]["score"] == perfect


def test_a_target_left_as_it_came_is_compared_as_it_came(toys: ToyRuns, write: Write) -> None:
    from eyeline.predictor import Predictor

    made = toys.predictor("odd")
    data = made.config.data.model_copy(update={"normalization": "none"})
    run = type(made.run)(made.run.path, made.config.model_copy(update={"data": data}), made.run.source, made.run.target)
    model = Predictor(run, made.model)
    result = evaluate(model, read_for(model, write([("é ß", "ß e\u0301")])))
    assert result["metrics"]["exact_match"]["score"] == 100  # which composes both sides itself
    assert result["unknown_rate"]["target"] > 0  # the decomposed letter is another


def test_features_are_given_to_the_model(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("features")
    result = evaluate(model, read_for(model, write(INFLECTED)))
    assert result["metrics"]["exact_match"]["score"] == 100
    bare = evaluate(model, read_for(model, write([(lemma, form, "") for lemma, form, _ in INFLECTED])))
    assert bare["metrics"]["exact_match"]["score"] < 100


def test_predictions_can_be_watched(toys: ToyRuns, write: Write) -> None:
    model, seen = toys.predictor("luong"), []

    def watch(coming: Iterator[Prediction]) -> Iterator[Prediction]:
        for one in coming:
            seen.append(one.text)
            yield one

    evaluate(model, read_for(model, write([("a", "a"), ("b", "b")])), watch=watch)
    assert seen == ["a", "b"]


# ---- reading ------------------------------------------------------------------------------------------------------------


def test_what_was_left_out_is_told(toys: ToyRuns, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_bytes(b"a\ta\nno target\nb\tb\n\xff\tb\n")
    told: list[str] = []
    pairs = read_for(toys.predictor("luong"), [str(file)], on_bad_line="skip", warn=told.append)
    assert [pair.source for pair in pairs] == ["a", "b"]
    assert len(told) == 2
    assert f"left out, missing column: 1 ({file}:2)" in told
    with pytest.raises(DataError, match=f"{file}:2"):
        read_for(toys.predictor("luong"), [str(file)])
    with pytest.raises(ConfigError, match="--on-bad-line maybe"):
        read_for(toys.predictor("luong"), [str(file)], on_bad_line="maybe")


def test_a_column_of_links_may_be_absent(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("luong")
    data = model.config.data.model_copy(update={"columns": ["source", "target", "alignment"]})
    run = type(model.run)(model.run.path, model.config.model_copy(update={"data": data}), model.run.source, model.run.target)
    linked = type(model)(run, model.model)
    assert read_for(linked, write([("a", "b")]))[0].alignment is None
    assert read_for(linked, write([("a", "b", "0-0")]), alignment=True)[0].alignment == "0-0"
    assert read_for(linked, write([("a", "b")]), alignment=True)[0].alignment is None
    with pytest.raises(DataError, match="2 columns where 3 are wanted"):
        read_for(linked, write([("a", "b", "0-0"), ("a", "b")]), alignment=True)
    with pytest.raises(DataError, match="no such file"):
        read_for(linked, ["nowhere.tsv"], alignment=True)


# ---- alignments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", ATTENTIVE)
def test_reversed_symbols_are_linked_backwards(toys: ToyRuns, write: Write, rung: str) -> None:
    model = toys.predictor(rung)
    pairs = read_for(model, write([("a b c d e", "e d c b a")]))
    for words in (True, False):  # a symbol is a word
        (links,) = align_pairs(model, pairs, words=words)
        assert (4, 0) in links
        assert (0, 4) in links
        assert len(links) == 5


def test_blank_sides_have_no_links(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("luong")
    pairs = read_for(model, write([("", "a b"), ("a b", ""), ("", "")]))
    for words in (True, False):
        assert align_pairs(model, pairs, words=words) == [frozenset()] * 3


def test_words_of_pieces_are_linked_once_each(toys: ToyRuns, write: Write) -> None:
    model = toys.predictor("bpe")
    pairs = read_for(model, write([("the small cat eats", "le petit chat mange")]))
    (words,), (tokens,) = align_pairs(model, pairs, words=True), align_pairs(model, pairs, words=False)
    score = model.score([("the small cat eats", "le petit chat mange")])[0]
    assert len(score.target_words) > 4  # words are cut
    assert sorted(target for _, target in words) == [0, 1, 2, 3]
    assert {source for source, _ in words} <= {0, 1, 2, 3}
    assert sorted(target for _, target in tokens) == list(range(len(score.target_words)))


def test_links_against_gold_ones() -> None:
    def pair(alignment: str | None) -> Pair:
        return Pair("a b", "b a", (), alignment, "gold.tsv", 1)

    made = [frozenset({(0, 1), (1, 0)})]
    perfect = alignment_against_gold(made, [pair("0-1 1-0")])
    assert perfect is not None
    assert (perfect.precision, perfect.recall, perfect.f1, perfect.aer) == (100, 100, 100, 0)
    partly = alignment_against_gold(made, [pair("0-1")])
    assert partly is not None
    assert (partly.precision, partly.recall) == (50, 100)
    only = alignment_against_gold(made, [pair("0-1")], linked_only=True)
    assert only is not None
    assert (only.precision, only.recall) == (100, 100)
    assert alignment_against_gold(made, [pair(None)]) is None
    with pytest.raises(DataError, match=r"gold\.tsv:1"):
        alignment_against_gold(made, [pair("0:1")])


def test_links_that_reach_beyond_the_words_are_not_between_words() -> None:
    assert links_words([Pair("ab c", "d ef", (), "0-1 1-0", "", 1)])
    assert not links_words([Pair("ab c", "d ef", (), "2-0", "", 1)])
    assert not links_words([Pair("ab c", "d ef", (), "0p2", "", 1)])


@pytest.mark.parametrize("target", [None, "c b a"])
def test_a_matrix_has_its_tokens_and_says_where_it_comes_from(toys: ToyRuns, target: str | None) -> None:
    matrix = alignment_matrix(toys.predictor("luong"), "a b c", target)
    assert matrix.source_tokens == ("a", "b", "c", "</s>")
    assert matrix.target_tokens == ("c", "b", "a", "</s>")
    assert matrix.weights[0].argmax() == 2
    assert matrix.weights.sum(axis=1) == pytest.approx([1, 1, 1, 1], abs=1e-5)
    assert matrix.title == "a b c → c b a"
    assert matrix.note.startswith("luong (luong): " + ("predicted" if target is None else "given"))


def test_there_is_no_matrix_of_nothing_or_without_attention(toys: ToyRuns) -> None:
    for target in (None, "b a"):
        with pytest.raises(UserError, match="white space"):
            alignment_matrix(toys.predictor("luong"), " \u3000", target)
        with pytest.raises(UserError, match=r"no attention to show \(model\.architecture=seq2seq\); train bahdanau or luong"):
            alignment_matrix(toys.predictor("seq2seq"), "a b", target)
    with pytest.raises(UserError, match="white space"):
        alignment_matrix(toys.predictor("features"), "\tV;PST")


def test_what_a_run_is(toys: ToyRuns) -> None:
    facts = describe(toys.path("features"))
    assert facts["architecture"] == "bahdanau"
    assert facts["parameters"] == sum(parameter.numel() for parameter in toys.predictor("features").model.parameters())
    assert facts["features"] == 4
    assert facts["steps"] == 60
    assert facts["source_vocabulary"] == toys.predictor("features").run.source.size
    assert facts["settings"] == toys.predictor("features").config.to_dict()
    json.dumps(facts, allow_nan=False)
