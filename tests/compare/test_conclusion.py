"""A conclusion says what intervals support and no more: each kind of evidence gets its own sentence, and only that."""

from __future__ import annotations

import re
from typing import Any

import pytest
from small_comparison import difference, report, rung

from eyeline.compare.conclusion import ahead, conclusion, facts
from eyeline.compare.words import LANGUAGES, labels, sentences


def kinds(found: dict[str, Any]) -> list[str]:
    return [fact.kind for fact in facts(found, "en")]


def test_a_lead_that_holds_over_all() -> None:
    found = report([rung("a", 90), rung("b", 50)], [difference("a", "b", 40, 0.001)])
    assert "best" in kinds(found)
    assert conclusion(found, "en")[0].startswith("a is the best here, with exact_match 90.0 [88.0, 92.0]: its lead over b holds")


def test_a_lead_that_is_not_shown() -> None:
    found = report([rung("a", 90), rung("b", 89)], [difference("a", "b", 1, 0.4)])
    assert "undecided" in kinds(found)
    assert "best" not in kinds(found)
    assert "no difference from b is shown" in conclusion(found, "en")[0]


def test_some_are_worse_and_some_are_not_shown_to_be() -> None:
    rows = [difference("a", "b", 1, 0.4), difference("a", "c", 60, 0.001), difference("b", "c", 59, 0.001)]
    found = report([rung("a", 90), rung("b", 89), rung("c", 30)], rows)
    first, second = conclusion(found, "en")[:2]
    assert first.endswith("that it is better than b is not shown.")
    assert second.startswith("c: worse than a")


def test_p_below_the_level_is_not_enough_after_correction() -> None:
    row = {**difference("a", "b", 10, 0.01), "p_holm": 0.06}
    assert ahead(report([rung("a", 90), rung("b", 80)], [row]), "a", "b") == 0


def test_an_error_rate_is_better_when_lower() -> None:
    found = {**report([rung("a", 10), rung("b", 40)], [difference("b", "a", 30, 0.001)]), "lower_is_better": True}
    assert (ahead(found, "a", "b"), ahead(found, "b", "a")) == (1, -1)


@pytest.mark.parametrize(
    ("fall", "kind"), [((50.0, 40.0, 60.0), "falls"), ((1.0, -2.0, 4.0), "holds"), ((6.0, -1.0, 13.0), "fall_unclear")]
)
def test_falling_with_length_is_said_where_the_interval_says_so(fall: tuple[float, float, float], kind: str) -> None:
    said = kinds(report([rung("a", 90, fall=fall)], []))
    assert {"falls", "holds", "fall_unclear"} & set(said) == {kind}


def test_one_seed_is_called_one() -> None:
    found = {**report([rung("a", 90), rung("b", 50)], [difference("a", "b", 40, 0.001)]), "seeds": [1]}
    assert "one_seed" in kinds(found)


def test_a_difference_that_turns_round_with_a_seed_is_told() -> None:
    found = report([rung("a", 90), rung("b", 80)], [difference("a", "b", 10, 0.001, seeds=(25, -5))])
    assert "turned" in kinds(found)


def test_a_rung_that_was_still_learning_is_named() -> None:
    young = rung("a", 90)
    young["curves"][0]["still_better"] = True
    assert "unripe" in kinds(report([young], []))


def test_failures_are_told() -> None:
    assert "failed" in kinds(report([rung("a", 90)], []))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_can_be_said(language: str) -> None:
    """No gap is left open, whatever the language."""
    found = report([rung("a", 90, fall=(50, 40, 60)), rung("b", 89), rung("c", 9)], [difference("a", "c", 81, 0.001)])
    for sentence in conclusion(found, language):
        assert not re.search(r"[{}]", sentence)


def test_the_languages_have_the_same_words_with_the_same_gaps() -> None:
    for table in (sentences, labels):
        english, korean = table("en"), table("ko")
        assert english.keys() == korean.keys()
        for name in english:
            assert set(re.findall(r"{(\w+)}", english[name])) >= set(re.findall(r"{(\w+)}", korean[name]))
