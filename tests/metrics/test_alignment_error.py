"""Alignments: Pharaoh lines there and back, numbers worked out by hand, attention to links, and real gold files."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyeline.errors import DataError, UserError
from eyeline.metrics import (
    alignment_scores,
    attention_between_words,
    format_links,
    links_between_words,
    links_from_attention,
    parse_alignment,
    parse_links,
)

LINKS = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)


# Pharaoh lines


def test_sure_and_possible_links_are_told_apart():
    sure, possible = parse_links("0-0 2p1 10-3")
    assert sure == {(0, 0), (10, 3)}
    assert possible == {(0, 0), (2, 1), (10, 3)}
    assert parse_links("  ") == (frozenset(), frozenset())


def test_a_link_given_both_ways_is_sure():
    assert parse_links("1p1 1-1").sure == {(1, 1)}


@given(sure=LINKS, possible=LINKS)
def test_written_links_are_read_back(sure, possible):
    assert parse_links(format_links(sure, possible)) == (sure, sure | possible)


def test_links_are_written_in_order():
    assert format_links([(10, 0), (2, 5), (2, 1)], [(3, 3), (2, 5)]) == "2-1 2-5 3p3 10-0"


@pytest.mark.parametrize("part", ["1", "1-", "-1", "1-2-3", "a-b", "1--2", "1:2", "１-２", "1-2,", "0x1-2"])
def test_what_is_no_link_is_named_with_file_and_line(part):
    with pytest.raises(DataError) as error:
        parse_alignment(["0-0", "", f"0-0 {part} 1-1"], "gold.txt")
    assert str(error.value).startswith(f"'{part}' is not an alignment link (gold.txt:3)")


# scores


def test_scores_by_hand_with_possible_links():
    # line 1: A = {00, 11, 12}, S = {00, 11}, P adds 21; line 2: A = {00, 10}, S = {00, 21}, P adds 10
    hypotheses = [{(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 0)}]
    sure = [{(0, 0), (1, 1)}, {(0, 0), (2, 1)}]
    possible = [{(2, 1)}, {(1, 0)}]
    scores = alignment_scores(hypotheses, sure, possible)
    assert scores.precision == pytest.approx(100 * 4 / 5)
    assert scores.recall == pytest.approx(100 * 3 / 4)
    assert scores.aer == pytest.approx(100 * (1 - (3 + 4) / (5 + 4)))
    assert (scores.links, scores.sure) == (5, 4)


@given(lines=st.lists(st.tuples(LINKS, LINKS), min_size=1, max_size=4))
def test_with_sure_links_alone_the_error_rate_is_what_f1_leaves(lines):
    scores = alignment_scores([a for a, _ in lines], [s for _, s in lines])
    assert scores.aer == pytest.approx(100 - scores.f1)
    assert 0 <= scores.precision <= 100
    assert 0 <= scores.recall <= 100


def test_scores_are_pooled_and_not_a_mean_of_lines():
    scores = alignment_scores([{(0, 0)}, {(0, 0), (1, 1), (2, 2)}], [{(0, 0)}, {(0, 0), (3, 3), (4, 4)}])
    assert scores.precision == pytest.approx(50)  # 2 of 4; the mean of lines would be 67


def test_nothing_made_is_worst_and_nothing_asked_is_no_fault():
    nothing_made = alignment_scores([set()], [{(0, 0)}])
    assert (nothing_made.precision, nothing_made.recall, nothing_made.f1, nothing_made.aer) == (0, 0, 0, 100)
    nothing_asked = alignment_scores([set()], [set()])
    assert (nothing_asked.precision, nothing_asked.recall, nothing_asked.f1, nothing_asked.aer) == (100, 100, 100, 0)
    too_many = alignment_scores([{(0, 0)}], [set()])
    assert (too_many.f1, too_many.aer) == (0, 100)
    only_possible = alignment_scores([{(0, 0)}], [set()], [{(0, 0)}])
    assert (only_possible.f1, only_possible.aer) == (100, 0)


def test_unequal_counts_of_lines_are_named():
    with pytest.raises(UserError, match=r"2 lines of alignment, 1 lines of gold and 3 of possible"):
        alignment_scores([set(), set()], [set()], [set(), set(), set()])


# attention to links


def test_each_target_row_is_linked_to_its_heaviest_real_column():
    weights = [
        [0.1, 0.7, 0.2, 0.0],
        [0.3, 0.1, 0.2, 0.4],  # END is heaviest: the heaviest real column is linked
        [0.0, 0.0, 0.0, 1.0],  # the row of END itself makes no link
    ]
    assert links_from_attention(weights, source_length=3, target_length=2) == {(1, 0), (0, 1)}


def test_padding_is_never_looked_at_and_the_first_of_equals_wins():
    weights = np.full((3, 5), 0.25)
    weights[:, 3:] = np.nan
    assert links_from_attention(weights, 3, 2) == {(0, 0), (0, 1)}
    assert links_from_attention(np.zeros((2, 1)), 0, 1) == frozenset()
    assert links_from_attention([], 0, 0) == frozenset()


def test_a_reversal_links_backwards():
    assert links_from_attention(np.eye(4)[::-1], 4, 4) == {(3, 0), (2, 1), (1, 2), (0, 3)}


def test_token_links_become_word_links():
    # source `ab c`: a b blank c; target `x yz`: x blank y z
    source, target = [0, 0, None, 1], [0, None, 1, 1]
    links = {(0, 0), (1, 0), (2, 1), (3, 2), (1, 3)}
    assert links_between_words(links, source, target) == {(0, 0), (1, 1), (0, 1)}


def test_word_attention_sums_over_source_tokens_and_averages_over_target_tokens():
    source, target = [0, 0, None, 1], [0, None, 1, 1]
    weights = np.array([[0.3, 0.3, 0.0, 0.4, 0.0], [0.2] * 5, [0.1, 0.0, 0.1, 0.8, 0.0], [0.3, 0.3, 0.1, 0.2, 0.1], [0.2] * 5])
    words = attention_between_words(weights, source, target)  # the last row and column are END's
    assert words == pytest.approx(np.array([[0.6, 0.4], [0.35, 0.5]]))
    # no single token of word 0 is heaviest in row 0, but the word is
    assert links_from_attention(words, 2, 2) == {(0, 0), (1, 1)}
    assert attention_between_words(weights, [None] * 4, [None] * 4).shape == (0, 0)


# real gold files


@pytest.mark.skipif(not os.environ.get("EYELINE_DATA"), reason="EYELINE_DATA names no folder of data sets")
@pytest.mark.parametrize("language", ["es", "hu", "nl"])
def test_real_gold_alignments_agree_with_an_independent_count(language):
    path = Path(os.environ["EYELINE_DATA"]) / "xl-wa" / f"{language}_test.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    gold = parse_alignment([row[2] for row in rows], path)
    assert len(gold) == 245
    for (source, target, text), line in zip(rows, gold, strict=True):
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in line.sure)
        assert set(format_links(line.sure).split()) == set(text.split())
    diagonal = [{(i, i) for i in range(min(len(s.split()), len(t.split())))} for s, t, _ in rows]
    scores = alignment_scores(diagonal, [line.sure for line in gold])
    parts = [set(text.split()) for _, _, text in rows]
    hits = sum(f"{i}-{i}" in line for line, links in zip(parts, diagonal, strict=True) for i, _ in links)
    made, wanted = sum(map(len, diagonal)), sum(map(len, parts))
    assert scores.precision == pytest.approx(100 * hits / made)
    assert scores.recall == pytest.approx(100 * hits / wanted)
    assert scores.aer == pytest.approx(100 * (1 - 2 * hits / (made + wanted)))
    assert alignment_scores([line.sure for line in gold], [line.sure for line in gold]).aer == 0
