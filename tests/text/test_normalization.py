"""Forms of spelling, and what people are shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.config import Normalization
from eyeline.text.normalization import normalize, restore
from strategies import lines

FORMS = st.sampled_from(["nfc", "nfd", "jamo", "none"])


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("nfc", "e\u0301 한", "é 한"),
        ("nfd", "é 한", "e\u0301 \u1112\u1161\u11ab"),
        ("jamo", "e\u0301 한국", "é \u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("jamo", "\u1112\u1161\u11ab", "\u1112\u1161\u11ab"),
        ("jamo", "ㅎㅏㄴ", "ㅎㅏㄴ"),  # compatibility letters are what somebody typed, not a syllable
        ("none", "e\u0301 한", "e\u0301 한"),
        ("nfc", "︰…ŉﬁ  x", "︰…ŉﬁ  x"),
        ("jamo", "︰…ŉﬁ  x", "︰…ŉﬁ  x"),
    ],
)
def test_forms(form: Normalization, text: str, expected: str) -> None:
    assert normalize(text, form) == expected


def test_every_syllable_is_spelt_and_composed_again() -> None:
    syllables = "".join(map(chr, range(0xAC00, 0xD7A4)))
    letters = normalize(syllables, "jamo")
    assert len(set(letters)) == 67
    assert restore(letters, "jamo") == syllables


@given(lines(), FORMS, st.booleans())
def test_normalising_twice_changes_nothing(text: str, form: Normalization, lowercase: bool) -> None:
    once = normalize(text, form, lowercase)
    assert normalize(once, form, lowercase) == once


@given(lines(), FORMS)
def test_what_is_shown_is_the_composed_text(text: str, form: Normalization) -> None:
    shown = restore(normalize(text, form), form)
    assert shown == (text if form == "none" else unicodedata.normalize("NFC", text))


def test_lower_case_comes_out_in_the_form_asked_for() -> None:
    assert normalize("İSTANBUL", "nfc", lowercase=True) == "i\u0307stanbul"
    assert normalize("ÉA\u0301", "nfc", lowercase=True) == "éá"
    assert normalize("ΟΔΟΣ", "nfc", lowercase=True) == "οδος"
