"""Which pairs are left out, and that exact duplicates are found whatever the chunks they come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.text import filters
from eyeline.text.filters import Filters, Seen, letters, script
from eyeline.text.records import Pair
from eyeline.text.tally import Tally


def pair(source: str, target: str, line: int = 1, features: tuple[str, ...] = ()) -> Pair:
    return Pair(source, target, features, None, "a.tsv", line)


@pytest.mark.parametrize(
    ("settings", "source", "target", "expected"),
    [
        ({}, "a", "b", None),
        ({"min_characters": 3}, "abc", "abc", None),
        ({"min_characters": 3}, "abc", "ab", "too few characters"),
        ({"max_characters": 3}, "abcd", "abc", "too many characters"),
        ({"max_characters": 3}, "abc", "abc", None),
        ({"max_ratio": 2.0}, "abcd", "ab", None),
        ({"max_ratio": 2.0}, "ab", "abcde", "too unequal lengths"),
        ({"min_letters": 0.5}, "ab 12", "ab1", None),
        ({"min_letters": 0.5}, "ab", "a123", "too few letters"),
        ({"scripts": {"source": ("hangul",)}}, "한국 KBS 방송국", "x", None),
        ({"scripts": {"source": ("hangul",)}}, "Korea 한국", "x", "another script in the source"),
        ({"scripts": {"target": ("latin", "cyrillic")}}, "x", "да yes", None),
        ({"scripts": {"target": ("latin",)}}, "x", "100 %", None),
    ],
)
def test_bounds(settings: dict[str, object], source: str, target: str, expected: str | None) -> None:
    assert Filters(**settings).fault(pair(source, target)) == expected  # type: ignore[arg-type]


def test_letters_and_scripts() -> None:
    assert letters("é e\u0301 1") == pytest.approx(3 / 4)
    assert letters(" ") == 0.0
    assert [script(character) for character in "aжガ한漢1 "] == ["latin", "cyrillic", "katakana", "hangul", "cjk", "", ""]


def test_what_is_left_out_is_counted_with_its_place() -> None:
    tally = Tally()
    pairs = [pair("a", "b", 1), pair("abc", "abc", 2), pair("abc", "ab", 3)]
    assert [kept.line for kept in Filters(min_characters=2).kept(pairs, tally)] == [2, 3]
    assert tally.rows() == [("too few characters", 1, "a.tsv:1")]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("ab"), st.sampled_from(["", "N"])), max_size=60))
def test_only_the_first_of_equal_pairs_is_kept(texts: list[tuple[str, str, str]]) -> None:
    pairs = [pair(s, t, line, (f,) if f else ()) for line, (s, t, f) in enumerate(texts, 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "CHUNK", 4)
        seen, tally = Seen(), Tally()
        half = len(pairs) // 2
        kept = [*seen.first_only(pairs[:half], tally), *seen.first_only(pairs[half:], tally)]
    assert [one.line for one in kept] == [line for line, text in enumerate(texts, 1) if text not in texts[: line - 1]]
    assert tally.total == len(pairs) - len(kept)


def test_sides_do_not_run_together() -> None:
    pairs = [pair("ab", "c"), pair("a", "bc"), pair("a", "b", 1, ("c",)), pair("a", "b")]
    assert list(Seen().first_only(pairs, Tally())) == pairs


def test_memory_is_eight_bytes_a_pair() -> None:
    seen = Seen()
    assert sum(1 for _ in seen.first_only((pair(str(n), "x") for n in range(35_000)), Tally())) == 35_000
    assert sum(run.nbytes for run in seen._runs) == 8 * 35_000
    assert len(seen._runs) <= 3
