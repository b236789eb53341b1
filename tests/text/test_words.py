"""The one rule for what separates words."""

from __future__ import annotations

import pytest
from hypothesis import given

from eyeline.text.words import is_blank, word_index, word_spans
from strategies import lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t ", []),
        ("a b", ["a", "b"]),
        ("  a\t b ", ["a", "b"]),
        ("a\u00a0b\u3000c\u2009d e\u200bf\ufeffg", ["a\u00a0b\u3000c\u2009d", "e\u200bf\ufeffg"]),
        ("a\u2028b\x85c\x1cd", ["a\u2028b\x85c\x1cd"]),
    ],
)
def test_words_stand_between_blanks_and_tabs(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == words


@pytest.mark.parametrize("text", ["", " ", "\t", "\u00a0", "\u3000", " \u2028 "])
def test_white_space_of_any_kind_is_a_blank_line(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " a", "\u200b", "\ufeff", "\u0301"])
def test_other_text_is_not(text: str) -> None:
    assert not is_blank(text)


def test_a_token_belongs_to_the_word_of_its_first_letter() -> None:
    text = "ab  cd"
    assert word_index(text, [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 6), (0, 0), (1, 5)]) == [0, 0, None, 1, 1, None, None, 0]


@given(lines())
def test_every_character_of_a_word_is_of_that_word(text: str) -> None:
    for number, (start, end) in enumerate(word_spans(text)):
        assert word_index(text, [(place, place + 1) for place in range(start, end)]) == [number] * (end - start)
