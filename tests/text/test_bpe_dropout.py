"""BPE-dropout: other pieces of the same text; the tokenizer's own where nothing is left out, letters where everything is."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.contracts import UNKNOWN
from eyeline.text.bpe_dropout import BpeDropout
from eyeline.text.tokenizers import Tokenizer

TEXTS = ["the lower the newer", "newest and widest, lowest", "low low low new new wide", "a newer widest (lowest)!"] * 3


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train("bpe", TEXTS, 60, features=["back", "N"])


texts = st.one_of(st.sampled_from(TEXTS), st.text(st.sampled_from("lowernestid, ()!a  é"), max_size=30))


@given(texts)
def test_nothing_left_out_is_what_the_tokenizer_does(text: str) -> None:
    ids = tokenizer().encode(text, ["back"]).ids
    assert BpeDropout(tokenizer(), 0.0)(ids, Random(1)) == ids


@given(texts, st.floats(0.05, 0.95), st.integers())
def test_the_text_stays_and_chance_alone_decides(text: str, rate: float, seed: int) -> None:
    ids = tokenizer().encode(text, ["N", "back"]).ids
    cut = BpeDropout(tokenizer(), rate)
    other = cut(ids, Random(seed))
    assert tokenizer().decode(other) == tokenizer().decode(ids)
    assert other.count(UNKNOWN) == ids.count(UNKNOWN)
    assert other[:2] == ids[:2]
    assert len(other) >= len(ids)
    assert other == cut(ids, Random(seed))


def test_everything_left_out_is_letters() -> None:
    ids = tokenizer().encode("newest low").ids
    cut = BpeDropout(tokenizer(), 1.0)(ids, Random(1))
    assert [tokenizer().piece(number) for number in cut] == list(" newest low")


def test_shares_of_a_single_merge() -> None:
    """One merge that is possible, left out with probability p and never asked again: p of the words stay letters."""
    one = Tokenizer.train("bpe", ["xy"] * 5, 8)  # " ", x, y and one merge
    ids = one.encode("xy").ids
    cut, random = BpeDropout(one, 0.3), Random(5)
    sizes = Counter(len(cut(ids, random)) for _ in range(4000))
    assert sizes[3] / 4000 == pytest.approx(0.3, abs=0.03)
