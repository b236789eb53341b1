"""The task that provokes repetition: sorted symbols, links between equal ones, the same pairs each time."""

from __future__ import annotations

from collections import Counter

import pytest

from eyeline.data.generated.tally import tally
from eyeline.errors import ConfigError
from eyeline.metrics.alignment import parse_links


def test_each_symbol_is_said_as_often_as_it_came_and_in_order() -> None:
    pairs = list(tally(300, 1))
    assert {len(pair.source.split()) for pair in pairs} == set(range(10, 31))
    assert {symbol for pair in pairs for symbol in pair.source.split()} == {"0", "1", "2"}
    for pair in pairs:
        source, target = pair.source.split(), pair.target.split()
        assert Counter(source) == Counter(target)
        assert target == sorted(target, key=int)


def test_numbers_of_two_digits_are_sorted_as_numbers() -> None:
    for pair in tally(50, 3, 12, symbols=30):
        assert pair.target.split() == sorted(pair.source.split(), key=int)


def test_links_join_equal_symbols_and_are_sure_where_there_is_one() -> None:
    for pair in tally(50, 2, (1, 9), symbols=4):
        source, target = pair.source.split(), pair.target.split()
        gold = parse_links(pair.alignment)
        equal = {(i, j) for i, one in enumerate(source) for j, other in enumerate(target) if one == other}
        assert gold.possible == equal
        assert gold.sure == {(i, j) for i, j in equal if source.count(source[i]) == 1}


def test_the_same_arguments_give_the_same_pairs_and_more_begin_with_fewer() -> None:
    assert list(tally(20, 5)) == list(tally(30, 5))[:20]
    assert list(tally(20, 5)) != list(tally(20, 6))


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="symbols=0"):
        tally(1, 1, symbols=0)
    with pytest.raises(ConfigError, match="length=9-8"):
        tally(1, 1, (9, 8))
