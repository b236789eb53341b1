"""Sources of numbers and targets of positions as text: one spelling, every number kept, and what cannot be is named."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eyeline.contracts import UNKNOWN
from eyeline.errors import UserError
from eyeline.text import vectors
from eyeline.text.words import word_spans

NUMBERS = st.floats(-1e30, 1e30) | st.integers(-(10**12), 10**12)
POINTS = st.integers(1, 4).flatmap(lambda wide: st.lists(st.lists(NUMBERS, min_size=wide, max_size=wide), min_size=1, max_size=6))
SOURCES = POINTS | st.lists(NUMBERS, min_size=1, max_size=6)


def refused(given: Any) -> str:
    with pytest.raises(UserError) as caught:
        vectors.read(given) if isinstance(given, str) else vectors.written(given)
    return caught.value.what


@given(source=SOURCES)
def test_every_number_comes_back(source: list[Any]) -> None:
    text = vectors.written(source)
    assert json.loads(text) == source
    assert vectors.elements(text) == [element if isinstance(element, list) else [element] for element in source]


@given(source=SOURCES)
def test_whatever_its_blanks_a_source_has_one_text(source: list[Any]) -> None:
    text = vectors.written(source)
    for written in (json.dumps(source, indent=2), json.dumps({"target": [0], "source": source}), text, f" {text}\t"):
        assert vectors.read(written) == text


@given(source=SOURCES)
def test_an_element_is_a_token_and_a_word(source: list[Any]) -> None:
    encoded = vectors.encoded(vectors.written(source))
    assert encoded.ids == [UNKNOWN] * len(source)
    assert encoded.words == list(range(len(source)))
    assert len(word_spans(encoded.text)) == len(encoded.tokens) == len(source)
    assert [encoded.text[start:end] for start, end in encoded.spans] == encoded.surfaces


@given(source=SOURCES, most=st.integers(1, 6))
def test_the_model_reads_the_numbers_of_what_is_left(source: list[Any], most: int) -> None:
    text = vectors.written(source)
    part = vectors.encoded(text).cut(most)
    found = vectors.values(part.surfaces, vectors.width(text))
    assert found.dtype == np.float32
    assert np.array_equal(found, np.array(vectors.elements(text), dtype=np.float32)[:most])


def test_arrays_and_tensors_are_sources() -> None:
    points = [[0.5, 1.0], [2.0, 3.25]]
    for source in (np.array(points), torch.tensor(points), [np.array(row) for row in points], tuple(map(tuple, points))):
        assert vectors.written(source) == "[[0.5,1.0], [2.0,3.25]]"
    assert vectors.written(np.arange(3)) == "[0, 1, 2]"
    assert vectors.written([np.float32(0.5), 1]) == "[0.5, 1]"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("", "not a JSON list of numbers"),
        ("0.5 1", "not a JSON list of numbers: extra data at character 5"),
        ("[[1, 2]", "not a JSON list of numbers"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "9" * 5000 + "]", "not"),
        ("7", "a source of numbers is a list of elements, not int"),
        ('{"target": [0]}', "an object without a 'source'"),
        ("[[1, 2], [3]]", "element 1 has 1 number, and those before it 2"),
        ("[[1, 2], 3]", "element 1 has 1 number, and those before it 2"),
        ("[[]]", "element 0 has no numbers"),
        ("[[[1]]]", "element 0 holds a list, not a number"),
        ("[1, null]", "element 1 holds null, not a number"),
        ("[true]", "element 0 holds bool, not a number"),
        ('["a"]', "element 0 holds str, not a number"),
        ("[NaN]", "element 0 holds nan, which is not a finite number"),
        ("[[1, -Infinity]]", "element 0 holds -inf, which is not a finite number"),
        ("[1e39]", "element 0 holds 1e+39, which is not a finite number"),
        ([1, float("nan")], "element 1 holds nan, which is not a finite number"),
        (5, "a source of numbers is a list of elements, not int"),
    ],
)
def test_what_is_no_source_is_named(given: Any, what: str) -> None:
    assert what in refused(given)
    assert "\n" not in refused(given)


def test_a_source_without_elements_is_a_list_all_the_same() -> None:
    assert vectors.read("[ ]") == vectors.EMPTY
    assert vectors.encoded(vectors.EMPTY).ids == []
    assert vectors.width(vectors.EMPTY) == 0


def test_elements_of_another_width_are_not_read() -> None:
    surfaces = vectors.encoded("[[1,2], [3,4]]").surfaces
    with pytest.raises(UserError, match="elements of 2 numbers where the model reads 3"):
        vectors.values(surfaces, 3)


@pytest.mark.parametrize(
    ("text", "real"), [("[1, 2]", True), (" [[0.5]]", True), ("a b", False), ("[a] b", False), ("[1] [2]", False)]
)
def test_a_source_is_numbers_or_text(text: str, real: bool) -> None:
    assert vectors.looks_real(text) is real


@given(places=st.lists(st.integers(0, 10**9 - 1), max_size=8))
def test_positions_come_back(places: list[int]) -> None:
    assert vectors.positions(vectors.written_positions(places)) == places
    assert vectors.positions("  " + "\t".join(map(str, places))) == places


@pytest.mark.parametrize("text", ["a", "1 -2", "1.5", "1,2", "١", "0x1", "1 2 x"])
def test_text_that_is_no_positions_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a position of the source"):
        vectors.positions(text)


@pytest.mark.parametrize("given", [[1, -2], [True], [0.5], ["1"], [None], 7.5])
def test_lists_that_are_no_positions_are_refused(given: Any) -> None:
    with pytest.raises(UserError, match="is not a position"):
        vectors.written_positions(given)


def test_positions_in_arrays() -> None:
    assert vectors.written_positions(np.array([2, 0, 1])) == vectors.written_positions(torch.tensor([2, 0, 1])) == "2 0 1"
