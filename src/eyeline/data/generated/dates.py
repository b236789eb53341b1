"""Dates as people of many languages write them, and the same dates in ISO 8601 or another language's long form.

The forms come from CLDR by way of babel; each string is put together from the fields of its pattern, so that it is known
which characters say the year, the month and the day. Knows nothing of files or models.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from eyeline.data.generated import GeneratedPair, Links, draws
from eyeline.errors import ConfigError, require

LOCALES = ("en", "de", "fr", "es", "ru", "ko", "ja", "ar_EG", "hi", "zh", "tr", "fi")
FORMS = ("full", "long", "medium")  # short forms have years of two digits, and 3/4 is March in one place, April in another

Pieces = list[tuple[str, str]]  # (text, what it says: "year", "month", "day" or "" for anything else)

_FIELDS = {"y": "year", "M": "month", "L": "month", "d": "day"}
_ZEROS = {"arab": "٠", "arabext": "۰", "beng": "০", "deva": "०"}  # numbering systems that babel's dates leave in ASCII digits


def dates(
    count: int,
    seed: int,
    *,
    locales: Sequence[str] = LOCALES,
    target: str = "iso",
    years: tuple[int, int] = (1900, 2099),
    taken: Collection[date] = (),
) -> list[GeneratedPair]:
    """Different dates in different writings, evenly over days, locales and forms. The same arguments give the same pairs.

    Args:
        count: how many pairs; no source comes twice.
        seed: of the draw.
        locales: where sources come from; digits are those of the locale (Arabic-Indic in ar_EG). Forms that would
            make a source mean two different dates among these locales are left out.
        target: `iso` for 2024-01-05, or a locale for its long form.
        years: first and last.
        taken: days never to use, such as those of another part of the data.

    Raises:
        ConfigError: an unknown locale, years that babel cannot write, more pairs than there are.
        MissingExtra: babel is not installed.
    """
    first, last = years
    if not 1000 <= first <= last <= 9999:
        raise ConfigError("years are two numbers between 1000 and 9999, the first not after the last", f"years={first}-{last}")
    writings = clear_forms(tuple(locales))
    start = date(first, 1, 1)
    days = (date(last, 12, 31) - start).days + 1
    if count > days * len(writings):  # known before years of trying
        raise ConfigError(f"only {days * len(writings)} pairs can be made", f"count={count}", "give more years or locales")
    chance, unusable = random.Random(seed), frozenset(taken)
    seen: set[str] = set()
    pairs: list[GeneratedPair] = []
    for number in draws(days * len(writings), chance):
        if len(pairs) == count:
            break
        day = start + timedelta(days=number // len(writings))
        locale, form = writings[number % len(writings)]
        if day in unusable:
            continue
        pair = aligned(written(day, locale, form), iso(day) if target == "iso" else written(day, target, "long"))
        if pair.source not in seen:
            seen.add(pair.source)
            pairs.append(pair)
    if len(pairs) < count:
        raise ConfigError(f"only {len(pairs)} different pairs can be made", f"count={count}", "give more years or locales")
    return pairs


def iso(day: date) -> Pieces:
    """2024-01-05, in pieces."""
    return [(f"{day.year:04}", "year"), ("-", ""), (f"{day.month:02}", "month"), ("-", ""), (f"{day.day:02}", "day")]


def written(day: date, locale: str, form: str) -> Pieces:
    """A day in a locale's full, long or medium form, in pieces that joined are what babel itself writes.

    Raises:
        ConfigError: babel does not know the locale.
    """
    babel = require("babel.dates", "generate")
    place = _locale(locale)
    fields = babel.DateTimeFormat(day, place)
    pieces = [
        (fields[value[0] * value[1]], _FIELDS.get(value[0], "")) if kind == "field" else (value, "")
        for kind, value in babel.tokenize_pattern(babel.get_date_format(form, place).pattern)
    ]
    joined = "".join(text for text, _ in pieces)
    assert joined == babel.format_date(day, form, place), f"{joined!r} is not what babel writes for {day} in {locale}"
    digits = _digits(place.default_numbering_system)
    pieces = [(unicodedata.normalize("NFC", text.translate(digits)), field) for text, field in pieces]
    joined = "".join(text for text, _ in pieces)
    assert unicodedata.is_normalized("NFC", joined), f"{joined!r} changes where its pieces meet"
    return pieces


def aligned(source: Pieces, target: Pieces) -> GeneratedPair:
    """The pair and its links: every character of a field to every character of the same field on the other side; sure
    where a digit of the number on one side is that digit of the number on the other."""
    links = Links()
    places = _places(source)
    for field, (target_text, target_start) in _places(target).items():
        text, start = places[field]
        for i in range(len(text)):
            for j in range(len(target_text)):
                links.possible(start + i, target_start + j)
        ours, theirs = _number(text), _number(target_text)
        if ours and theirs and _value(text, ours) == _value(target_text, theirs):
            for i, j in zip(reversed(ours), reversed(theirs), strict=False):  # from the ones upwards: 5 and 05
                links.sure(start + i, target_start + j)
    return GeneratedPair("".join(text for text, _ in source), "".join(text for text, _ in target), str(links))


@lru_cache
def clear_forms(locales: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(locale, form) for the forms in which, among these locales, no string means two different dates.

    A form without a year of four digits is out. What is left differs, for a given year, only in day and month, so that
    the days of one leap year show every clash; where two forms clash both are out.
    """
    days = [date(2004, 1, 1) + timedelta(days=n) for n in range(366)]
    meanings: dict[str, dict[date, set[tuple[str, str]]]] = {}
    unclear: set[tuple[str, str]] = set()
    for locale in locales:
        for form in FORMS:
            for day in days:
                pieces = written(day, locale, form)
                if not any(field == "year" and len(text) == 4 for text, field in pieces):
                    unclear.add((locale, form))
                meanings.setdefault("".join(text for text, _ in pieces), {}).setdefault(day, set()).add((locale, form))
    for meant in meanings.values():
        if len(meant) > 1:
            unclear.update(*meant.values())
    return tuple((locale, form) for locale in locales for form in FORMS if (locale, form) not in unclear)


@lru_cache
def _locale(name: str) -> Any:
    core = require("babel", "generate")
    try:
        return core.Locale.parse(name)
    except (core.UnknownLocaleError, ValueError):
        raise ConfigError("babel does not know this locale", name, f"such as: {', '.join(LOCALES)}") from None


@lru_cache
def _digits(system: str) -> dict[int, str]:
    """ASCII digits to those of a numbering system."""
    zero = _ZEROS.get(system, "0")
    return {ord("0") + n: chr(ord(zero) + n) for n in range(10)}


def _places(pieces: Pieces) -> dict[str, tuple[str, int]]:
    """The text of year, month and day, and where it begins."""
    places, start = {}, 0
    for text, field in pieces:
        if field:
            assert field not in places, f"{field} comes twice"
            places[field] = (text, start)
        start += len(text)
    return places


def _number(text: str) -> list[int]:
    """Where the digits stand, of any script."""
    return [i for i, character in enumerate(text) if character.isdecimal()]


def _value(text: str, digits: list[int]) -> int:
    return int("".join(text[i] for i in digits))
