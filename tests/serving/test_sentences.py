"""Texts in parts: nothing of the white space is lost, and a sentence is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.serving.markup import document
from eyeline.serving.sentences import ENDS, lines, sentences

TEXT = st.text(st.sampled_from(list("aA1 \t\n\u3000\u00a0한。.!?\"')»") + list(ENDS)), max_size=40)


@given(st.one_of(TEXT, st.text(max_size=30)))
def test_filled_with_its_own_parts_a_text_is_itself(text: str) -> None:
    for parted in (lines(text), sentences(text)):
        assert parted.filled(parted.parts) == text
        assert all(part == part.strip() != "" for part in parted.parts)
        assert len(parted.between) == len(parted.parts) + 1
        assert not "".join(parted.between).strip()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("He said: “Go.” She went.", ["He said: “Go.”", "She went."]),
        (
            "Dr. Lee came on 26. Januar, z. B. by train. Then he left.",
            ["Dr. Lee came on 26. Januar, z. B. by train.", "Then he left."],
        ),
        ("“Really?” she asked. Yes.", ["“Really?” she asked.", "Yes."]),
        ("Wait ... what? No...", ["Wait ... what?", "No..."]),
        ("3.14 is not 3. 15", ["3.14 is not 3. 15"]),
        ("今日は。明日は！", ["今日は。", "明日は！"]),
        ("「行く。」と言った。", ["「行く。」", "と言った。"]),
        ("안녕하세요. 반갑습니다.", ["안녕하세요.", "반갑습니다."]),
        ("पहला। दूसरा।", ["पहला।", "दूसरा।"]),
        ("كيف حالك؟ بخير.", ["كيف حالك؟", "بخير."]),
        ("a line\nanother one", ["a line", "another one"]),
        ("www.example.org is up. Good", ["www.example.org is up.", "Good"]),
        (" \n\t", []),
        ("", []),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert list(sentences(text).parts) == parts


def test_white_space_between_is_kept() -> None:
    parted = sentences("  Aa.\t\tBb.\n\n C ")
    assert parted.filled(["x", "y", "z"]) == "  x\t\ty\n\n z "


@given(st.text(st.sampled_from(list("ab<>/!-\"'= \n")), max_size=60))
def test_markup_filled_with_its_own_texts_says_the_same(text: str) -> None:
    """But for a < and > in a text, which are then written as what they are."""
    parted = document(text)
    assert len(parted.markup) == len(parted.texts) + 1
    again = document(parted.filled(parted.texts))
    assert again.texts == parted.texts
    assert again.markup == parted.markup


@pytest.mark.parametrize(
    ("text", "texts", "filled"),
    [
        ('<p class="a>b">Hello <b>world</b></p>', ["Hello ", "world"], '<p class="a>b">1<b>2</b></p>'),
        ("needs <= 4.4.6 & more", ["needs <= 4.4.6 & more"], "1"),
        ("a &lt;b&gt; &amp; c", ["a <b> & c"], "1"),
        ("<script>if (a < b) {}</script>x<!-- y --> ", ["x"], "<script>if (a < b) {}</script>1<!-- y --> "),
        ("<br>\n<br>", [], "<br>\n<br>"),
        ("<P>x</P >", ["x"], "<P>1</P >"),
    ],
)
def test_markup(text: str, texts: list[str], filled: str) -> None:
    parted = document(text)
    assert list(parted.texts) == texts
    assert parted.filled([str(number) for number in range(1, len(texts) + 1)]) == filled


def test_a_translation_is_no_markup() -> None:
    assert document("<p>x</p>").filled(["<img src=x onerror=alert(1)>"]) == "<p>&lt;img src=x onerror=alert(1)&gt;</p>"
