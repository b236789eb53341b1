"""Numbers in words: the library's own text, each word tied to the digits that it says."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.data.generated.numerals import LANGUAGES, LARGEST, RULES, aligned, numerals, spelled
from eyeline.errors import ConfigError, MissingExtra

library = pytest.importorskip("unicode_rbnf")


def by_word(number: int, language: str) -> list[tuple[str, str]]:
    """What each linked stretch of the source says: (word, its digits and their places as `d@j`)."""
    pair = aligned(number, spelled(number, language))
    says: dict[int, list[str]] = {}
    for link in pair.alignment.split():
        i, j = map(int, link.replace("p", "-").split("-"))
        says.setdefault(i, []).append(f"{pair.target[j]}@{j}")
    found: list[tuple[str, str]] = []
    for i, character in enumerate(pair.source):
        digits = " ".join(says.get(i, []))
        if found and found[-1][1] == digits:
            found[-1] = (found[-1][0] + character, digits)
        else:
            found.append((character, digits))
    return [(word, digits) for word, digits in found if digits]


@pytest.mark.parametrize(
    ("number", "language", "words"),
    [
        (21, "de", [("ein", "1@1"), ("zwanzig", "2@0")]),
        (365, "en", [("three", "3@0"), ("hundred", "3@0"), ("sixty", "6@1"), ("five", "5@2")]),
        (93, "fr", [("quatre", "9@0"), ("vingt", "9@0"), ("treize", "9@0 3@1")]),
        (12_045, "hi", [("बारह", "1@0 2@1"), ("हज़ार", "1@0 2@1"), ("पैंतालीस", "4@3 5@4")]),
        (2_000_007, "ru", [("два", "2@0"), ("миллиона", "2@0"), ("семь", "7@6")]),
        (301_000, "ar", [("ثلاثة", "3@0"), ("مائة", "3@0"), ("واحد", "1@2"), ("ألف", "3@0 0@1 1@2")]),
    ],
)
def test_words_by_hand(number: int, language: str, words: list[tuple[str, str]]) -> None:
    assert by_word(number, language) == words


def test_links_by_hand() -> None:
    japanese = aligned(10_342, spelled(10_342, "ja"))
    assert (japanese.source, japanese.target) == ("一万三百四十二", "10342")
    assert japanese.alignment == "0-0 1p0 2-2 3p2 4-3 5p3 6-4"  # no word says the zero
    german = aligned(21, spelled(21, "de"))
    assert german.source == "einundzwanzig"
    assert german.alignment == "0p1 1p1 2p1 6p0 7p0 8p0 9p0 10p0 11p0 12p0"
    korean = aligned(12_345, spelled(12_345, "ko"))
    assert korean.source == "만 이천삼백사십오"
    assert korean.alignment == "0p0 2-1 3p1 4-2 5p2 6-3 7p3 8-4"


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**6 - 1) | st.integers(1, LARGEST - 1), st.sampled_from(LANGUAGES))
def test_text_is_the_librarys_and_every_said_digit_is_linked(number: int, language: str) -> None:
    pair = aligned(number, spelled(number, language))
    theirs = library.RbnfEngine.for_language(language).format_number(number, ruleset_names=[RULES]).text
    assert pair.source == unicodedata.normalize("NFC", theirs)
    assert pair.target == str(number)
    linked = set()
    for link in pair.alignment.split():
        i, j = map(int, link.replace("p", "-").split("-"))
        assert 0 <= i < len(pair.source)
        assert 0 <= j < len(pair.target)
        assert not pair.source[i].isspace()
        linked.add(j)
    assert linked >= {j for j, digit in enumerate(pair.target) if digit != "0"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_different_numbers_are_said_differently(language: str) -> None:
    numbers = [*range(1, 1_200), *range(9_900, 10_200), *range(99_990, 100_120), *range(999_000, 1_000_000, 37)]
    said = Counter("".join(piece.text for piece in spelled(n, language)) for n in numbers)
    assert said.most_common(1)[0][1] == 1


def test_same_arguments_same_pairs_all_different() -> None:
    pairs = numerals(400, 1)
    assert numerals(400, 1) == pairs
    assert numerals(100, 1) == pairs[:100]
    assert {pair.source for pair in numerals(400, 2)} != {pair.source for pair in pairs}
    assert len({pair.source for pair in pairs}) == len(pairs)


def test_lengths_are_even_on_the_logarithmic_scale() -> None:
    digits = Counter(len(pair.target) for pair in numerals(1_500, 3, smallest=1_000))
    assert set(digits) == {4, 5, 6}
    assert all(400 < count < 600 for count in digits.values())


def test_limits_and_taken_numbers_hold() -> None:
    taken = range(60, 80)
    found = {int(pair.target) for pair in numerals(300, 4, smallest=50, limit=120, taken=taken)}
    assert found == set(range(50, 120)) - set(taken)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"languages": ["eng"]}, "did you mean 'en'?"),
        ({"limit": 10**13}, "limit=10000000000000"),
        ({"smallest": 0}, "smallest=0"),
        ({"limit": 7}, "only 59 different pairs could be drawn (count=100)"),  # of 60: six is French, too
        ({"languages": []}, "no language is given"),
    ],
)
def test_what_cannot_be_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        numerals(100, 1, **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unicode_rbnf.engine", None)
    with pytest.raises(MissingExtra, match=r"unicode_rbnf.*eyeline\[generate\]"):
        spelled(7, "en")
