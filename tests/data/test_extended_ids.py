"""Extended ids of sources and targets, for any strings, and through tokenizers and corpora."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eyeline.config import TokenizerKind
from eyeline.contracts import END, PAD, UNKNOWN
from eyeline.data.copying import copyable, extended
from eyeline.data.corpus import Corpus, Sequences, Sources
from eyeline.text.tokenizers import Tokenizer
from strategies import lines

V = 7
HELD = {"a": 4, "b": 5, "c": 6}
surfaces = st.lists(st.sampled_from(["a", "b", "c", "x", "y", "z", "Ä", "<unk>", "</s>", ""]))


def lookup(surface: str) -> int:
    return HELD.get(surface, UNKNOWN)


def test_the_worked_example() -> None:
    """Ids in order of appearance, the same for the same symbol; a target takes them over, and is unknown beyond them."""
    source = copyable(["x", "a", "y", "x", ""], lookup, V)
    assert source.ids == [7, 4, 8, 7, UNKNOWN]
    assert source.extra == ["x", "y"]
    assert extended(["y", "b", "x", "z", "y"], lookup, V, source.extra) == [8, 5, 7, UNKNOWN, 8]
    assert copyable([], lookup, V).ids == copyable([], lookup, V).extra == []


@given(source=surfaces)
def test_an_id_is_one_symbol_of_its_source(source: list[str]) -> None:
    found = copyable(source, lookup, V)
    assert len(found.ids) == len(source)
    assert len(set(found.extra)) == len(found.extra)
    for number, surface in zip(found.ids, source, strict=True):
        if number >= V:
            assert found.extra[number - V] == surface
            assert lookup(surface) == UNKNOWN
        else:
            assert number == (lookup(surface) if surface else UNKNOWN)
    firsts = [number for place, number in enumerate(found.ids) if number >= V and number not in found.ids[:place]]
    assert firsts == list(range(V, V + len(found.extra)))


@given(source=surfaces, target=surfaces)
def test_a_target_is_held_or_copied_or_unknown(source: list[str], target: list[str]) -> None:
    extra = copyable(source, lookup, V).extra
    ids = extended(target, lookup, V, extra)
    for number, surface in zip(ids, target, strict=True):
        assert (number == UNKNOWN) == (surface not in HELD and surface not in extra)
        assert number < V or extra[number - V] == surface
    assert extended(source, lookup, V, extra) == copyable(source, lookup, V).ids


KINDS = get_args(TokenizerKind)
TRAINED = {kind: Tokenizer.train(kind, ["the cat sat on the mat .", "my name is"] * 3, 40, features=["V"]) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(text=lines())
def test_a_target_that_repeats_its_source_is_read_back_as_it_was_typed(kind: TokenizerKind, text: str) -> None:
    tokenizer = TRAINED[kind]
    source, target = tokenizer.encode(text, ["V", "NEVER"]), tokenizer.encode(text)
    found = copyable(source.surfaces, tokenizer.lookup, tokenizer.size)
    assert found.ids[:2] == [UNKNOWN, UNKNOWN], "features are no text"
    ids = extended(target.surfaces, tokenizer.lookup, tokenizer.size, found.extra)
    assert ids == found.ids[2:]
    assert UNKNOWN not in ids
    wanted = " ".join(target.tokens) if kind == "whitespace-symbols" else text
    assert tokenizer.decode(ids, found.extra) == wanted


def test_sources_and_targets_of_a_corpus() -> None:
    """END is copied as END, padding is PAD, and `extra` is that of the source with the most words of its own."""
    texts = [["x", "a", "y"], ["b"], ["z", "z"]]
    found = [copyable(text, lookup, V) for text in texts]
    sources = Sources.of([[UNKNOWN, 4, UNKNOWN], [5], [UNKNOWN, UNKNOWN]], [each.ids for each in found], V)
    targets = Sequences.of([extended(["y"], lookup, V, found[0].extra), [5], extended(["z", "q"], lookup, V, found[2].extra)])
    batch = Corpus(sources, targets).batch([0, 1, 2])
    assert batch.source.extra == 2
    assert batch.source.copy_ids is not None
    assert batch.source.copy_ids.tolist() == [[7, 4, 8, END], [5, END, PAD, PAD], [7, 7, END, PAD]]
    assert batch.outputs.tolist() == [[8, END, PAD], [5, END, PAD], [7, UNKNOWN, END]]
    assert torch.equal(batch.inputs[:, 1:], torch.tensor([[8, PAD], [5, PAD], [7, UNKNOWN]]))
    assert Corpus(sources, targets).batch([1]).source.extra == 0
