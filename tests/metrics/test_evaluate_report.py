"""The metric parts of `evaluate --json`: its keys, its finite plain values, and what counts as repetition and length."""

import json

import pytest

from eyeline.errors import ConfigError, UserError
from eyeline.metrics import METRICS, corpus_score, length_ratio, repeats_itself, repetition_rate, report

REFERENCES = [f"a line of {i} words or so" for i in range(30)]
HYPOTHESES = [line if i % 2 else line.replace("words", "letters") for i, line in enumerate(REFERENCES)]


def test_the_report_has_the_keys_of_the_contract_and_the_corpus_scores():
    names = sorted(METRICS)
    result = report(HYPOTHESES, REFERENCES, source_lengths=list(range(30)), metrics=names, samples=50)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["n"] == 30
    assert list(result["metrics"]) == names
    for name in names:
        expected = corpus_score(name, HYPOTHESES, REFERENCES)
        assert result["metrics"][name]["score"] == expected.score
        assert result["metrics"][name]["signature"] == expected.signature
        assert result["metrics"][name]["low"] <= expected.score <= result["metrics"][name]["high"]
    assert sum(bucket["n"] for bucket in result["by_length"]) == 30
    assert all(list(bucket) == ["min", "max", "n", "metric", "score", "low", "high"] for bucket in result["by_length"])
    assert {bucket["metric"] for bucket in result["by_length"]} == {names[0]}
    assert result["repetition_rate"] == 0
    assert result["length_ratio"] == pytest.approx(1, abs=0.1)
    assert "unknown_rate" not in result


def test_the_seed_repeats_the_report_and_unknown_rates_are_handed_on():
    def made(seed):
        return report(
            HYPOTHESES,
            REFERENCES,
            source_lengths=[3] * 30,
            metrics=["chrf"],
            seed=seed,
            samples=50,
            unknown_rate={"source": 0, "target": 0.25},
        )

    assert made(1) == made(1)
    assert made(1) != made(2)
    assert made(1)["unknown_rate"] == {"source": 0.0, "target": 0.25}


def test_outputs_that_are_all_empty_are_reported_and_do_not_fail():
    result = report(["", "", ""], ["a b", "c", ""], source_lengths=[2, 1, 0], metrics=sorted(METRICS), samples=20)
    assert result["metrics"]["bleu"]["score"] == 0
    assert result["metrics"]["wer"]["score"] == 100
    assert result["length_ratio"] == 0
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"metrics": ["blew"]}, ConfigError, "did you mean 'bleu'"),
        ({"metrics": []}, UserError, "no metric"),
        ({"source_lengths": [1, 2]}, UserError, "2 source lengths for 30 hypotheses"),
        ({"references": REFERENCES[:-1]}, UserError, "30 hypotheses and 29 references"),
    ],
)
def test_what_does_not_belong_together_is_refused(arguments, kind, said):
    given = {"hypotheses": HYPOTHESES, "references": REFERENCES, "source_lengths": [1] * 30, "metrics": ["bleu"]} | arguments
    with pytest.raises(kind, match=said):
        report(
            given["hypotheses"], given["references"], source_lengths=given["source_lengths"], metrics=given["metrics"], samples=5
        )


@pytest.mark.parametrize(
    "text", ["the the cat", "of the of the", "a b c d a b c d", "1999-01-01-01-01", "hahahahaha", "안녕 안녕"]
)
def test_a_phrase_directly_after_itself_is_repetition(text):
    assert repeats_itself(text)


@pytest.mark.parametrize("text", ["", "a", "the cat the dog", "a b c d e a b c d e", "1999-11-11", "Mississippi", "aaa"])
def test_what_comes_back_later_is_not(text):
    assert not repeats_itself(text)


def test_a_repetition_that_the_reference_has_is_not_counted():
    assert repetition_rate(["10000", "that that is", "the the end"], ["10000", "that that is", "the end"]) == pytest.approx(1 / 3)


def test_the_length_ratio_counts_characters_of_the_corpus():
    assert length_ratio(["abcd", ""], ["ab", "abcdef"]) == 0.5
    assert length_ratio(["cafe\u0301"], ["café"]) == 1
    assert length_ratio([""], [" "]) == 1
    assert length_ratio(["abc"], [""]) == 3  # finite
