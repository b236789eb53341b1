"""Dates: what is written, what each character says, and that no writing means two days."""

from __future__ import annotations

import random
import sys
import unicodedata
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.data.generated.dates import FORMS, LOCALES, aligned, clear_forms, dates, iso, written
from eyeline.errors import ConfigError, MissingExtra

babel_dates = pytest.importorskip("babel.dates")
DAY = date(2024, 1, 5)
YEAR = "{0}-0 {0}p1 {0}p2 {0}p3 {1}p0 {1}-1 {1}p2 {1}p3 {2}p0 {2}p1 {2}-2 {2}p3 {3}p0 {3}p1 {3}p2 {3}-3"
days = st.dates(date(1900, 1, 1), date(2099, 12, 31))


def links(alignment: str) -> set[tuple[int, int, bool]]:
    """(source, target, sure) of each link, read by hand rather than with the package's own reader."""
    found = set()
    for link in alignment.split():
        mark = "-" if "-" in link else "p"
        i, j = link.split(mark)
        found.add((int(i), int(j), mark == "-"))
    return found


@pytest.mark.parametrize(
    ("locale", "form", "source", "alignment"),
    [
        # 2024년 1월 5일: the month's name is "1월"; 년 and 일 belong to the pattern
        ("ko", "long", "2024년 1월 5일", YEAR.format(0, 1, 2, 3) + " 6p5 6-6 7p5 7p6 9p8 9-9"),
        (
            "de",
            "long",
            "5. Januar 2024",
            "0p8 0-9 " + " ".join(f"{i}p5 {i}p6" for i in range(3, 9)) + " " + YEAR.format(10, 11, 12, 13),
        ),
        (
            "ar_EG",
            "medium",
            "٠٥\u200f/٠١\u200f/٢٠٢٤",
            "0-8 0p9 1p8 1-9 4-5 4p6 5p5 5-6 " + YEAR.format(8, 9, 10, 11),
        ),
        ("ja", "full", "2024年1月5日金曜日", YEAR.format(0, 1, 2, 3) + " 5p5 5-6 7p8 7-9"),
    ],
)
def test_links_by_hand(locale: str, form: str, source: str, alignment: str) -> None:
    pair = aligned(written(DAY, locale, form), iso(DAY))
    assert pair.source == source
    assert pair.target == "2024-01-05"
    assert pair.alignment == alignment


def test_a_name_in_another_language_is_linked_to_the_name() -> None:
    pair = aligned(written(DAY, "fi", "medium"), written(DAY, "tr", "long"))
    assert (pair.source, pair.target) == ("5.1.2024", "5 Ocak 2024")
    assert pair.alignment == "0-0 2p2 2p3 2p4 2p5 " + " ".join(
        f"{4 + i}{'-' if i == j else 'p'}{7 + j}" for i in range(4) for j in range(4)
    )


@settings(max_examples=150, deadline=None)
@given(days, st.sampled_from(LOCALES), st.sampled_from(FORMS), st.sampled_from(("iso", *LOCALES)))
def test_links_stay_inside_and_sure_ones_join_equal_digits(day: date, locale: str, form: str, target: str) -> None:
    pair = aligned(written(day, locale, form), iso(day) if target == "iso" else written(day, target, "long"))
    found = links(pair.alignment)
    assert len(found) == len({(i, j) for i, j, _ in found}) == len(pair.alignment.split())
    for i, j, sure in found:
        assert 0 <= i < len(pair.source)
        assert 0 <= j < len(pair.target)
        if sure:
            assert unicodedata.decimal(pair.source[i]) == unicodedata.decimal(pair.target[j])
    # each digit of the year is sure, and so is everything that both sides write in digits
    assert sum(sure for _, _, sure in found) >= 4
    assert {j for _, j, _ in found} >= {j for j, c in enumerate(pair.target) if c.isdecimal()}


@settings(max_examples=100, deadline=None)
@given(days, st.sampled_from(LOCALES), st.sampled_from(FORMS))
def test_a_writing_is_babels_own(day: date, locale: str, form: str) -> None:
    text = "".join(piece for piece, _ in written(day, locale, form))
    ascii_digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    assert ascii_digits == unicodedata.normalize("NFC", babel_dates.format_date(day, form, locale=locale))
    assert unicodedata.is_normalized("NFC", text)
    assert text.isascii() or locale not in ("en",)


def test_arabic_is_written_with_its_own_digits_and_invisible_marks() -> None:
    pairs = dates(60, 3, locales=["ar_EG"])
    assert not any(c.isascii() and c.isdigit() for pair in pairs for c in pair.source)
    assert any("\u200f" in pair.source for pair in pairs)


def test_no_writing_means_two_days() -> None:
    days_of_some_years = [date(year, 1, 1) + timedelta(n) for year in (1911, 2004, 2012) for n in range(365)]
    meanings: dict[str, date] = {}
    for locale, form in clear_forms(LOCALES):
        for day in days_of_some_years:
            text = "".join(piece for piece, _ in written(day, locale, form))
            assert meanings.setdefault(text, day) == day, f"{text} means {day} and {meanings[text]}"


def test_the_chosen_locales_keep_all_their_forms() -> None:
    assert len(LOCALES) == 12
    assert len(clear_forms(LOCALES)) == len(LOCALES) * len(FORMS)


def test_clashing_forms_are_left_out() -> None:
    # Panama writes 01/05/2024 for the fifth of January, Portugal for the first of May
    assert set(clear_forms(("es_PA", "pt_PT"))) == {(locale, form) for locale in ("es_PA", "pt_PT") for form in ("full", "long")}
    assert ("es_PA", "medium") in clear_forms(("es_PA", "ko"))


def test_same_arguments_same_pairs_and_other_seed_other_pairs() -> None:
    first = dates(50, 1)
    random.random()
    assert dates(50, 1) == first
    assert {pair.source for pair in dates(50, 2)} != {pair.source for pair in first}
    assert dates(20, 1) == first[:20]


def test_sources_differ_and_every_locale_and_form_takes_part() -> None:
    pairs = dates(1_500, 4)
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert all(date.fromisoformat(pair.target).isoformat() == pair.target for pair in pairs)
    assert {pair.target[:2] for pair in pairs} == {"19", "20"}
    scripts = {unicodedata.name(c).split()[0] for pair in pairs for c in pair.source if c.isalpha()}
    assert scripts >= {"LATIN", "CYRILLIC", "HANGUL", "CJK", "ARABIC", "DEVANAGARI"}


def test_taken_days_are_never_used() -> None:
    held_out = {date.fromisoformat(pair.target) for pair in dates(100, 5, years=(2000, 2000))}
    rest = {date.fromisoformat(pair.target) for pair in dates(2_000, 6, years=(2000, 2000), taken=held_out)}
    assert rest
    assert not rest & held_out


def test_to_another_language() -> None:
    pairs = dates(40, 7, locales=["en", "ko"], target="de")
    assert all(" ".join(pair.target.split()[1:]).split()[0].isalpha() for pair in pairs)
    assert any("März" in pair.target or "Mai" in pair.target or "Juli" in pair.target for pair in pairs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"locales": ["xx"]}, "babel does not know this locale (xx)"),
        ({"target": "klingon!"}, "babel does not know this locale (klingon!)"),
        ({"years": (2010, 2000)}, "years=2010-2000"),
        ({"years": (1, 10)}, "years=1-10"),
        ({"years": (2000, 2000), "locales": ["ja"]}, "only 1098 pairs can be made (count=1200)"),
    ],
)
def test_what_cannot_be_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        dates(1_200, 1, **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_set_that_is_exhausted_says_how_many_there_were() -> None:
    # the Chinese medium form is the long one, so that 366 days have 732 writings
    with pytest.raises(ConfigError, match=r"only 732 different pairs can be made \(count=800\)"):
        dates(800, 1, locales=["zh"], years=(2000, 2000))
    assert len(dates(732, 1, locales=["zh"], years=(2000, 2000))) == 732


def test_without_babel_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel.dates", None)
    with pytest.raises(MissingExtra, match=r"babel.*eyeline\[generate\]"):
        written(DAY, "en", "long")
