"""What a batch holds, against a slow loop over the lists it was made from."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.contracts import BEGIN, END, PAD
from eyeline.data.corpus import Batch, Corpus, source_batch

ids = st.lists(st.integers(4, 40_000), max_size=7)
pairs = st.lists(st.tuples(ids, ids), min_size=1, max_size=8)


def padded(rows: list[list[int]]) -> list[list[int]]:
    width = max(len(row) for row in rows)
    return [row + [PAD] * (width - len(row)) for row in rows]


@settings(max_examples=80)
@given(pairs, st.data())
def test_a_batch_is_what_a_slow_loop_makes(texts: list[tuple[list[int], list[int]]], data: st.DataObject) -> None:
    corpus = Corpus.of((s for s, _ in texts), (t for _, t in texts))
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=10))
    batch = corpus.batch(chosen)
    sources, targets = [texts[i][0] for i in chosen], [texts[i][1] for i in chosen]
    assert batch.source.ids.tolist() == padded([[*s, END] for s in sources])
    assert batch.source.lengths.tolist() == [len(s) + 1 for s in sources]
    assert batch.inputs.tolist() == padded([[BEGIN, *t] for t in targets])
    assert batch.outputs.tolist() == padded([[*t, END] for t in targets])
    width = batch.outputs.shape[1]
    assert batch.target_mask.tolist() == [[j > len(t) for j in range(width)] for t in targets]
    assert batch.rows.tolist() == chosen
    assert batch.target_tokens == sum(len(t) + 1 for t in targets)
    assert {t.dtype for t in (batch.source.ids, batch.source.lengths, batch.inputs, batch.outputs, batch.rows)} == {torch.long}
    assert batch.target_mask.dtype == torch.bool


@given(pairs)
def test_lengths_count_the_end(texts: list[tuple[list[int], list[int]]]) -> None:
    corpus = Corpus.of([s for s, _ in texts], [t for _, t in texts])
    assert len(corpus) == len(texts)
    assert corpus.source_lengths.tolist() == [len(s) + 1 for s, _ in texts]
    assert corpus.target_lengths.tolist() == [len(t) + 1 for _, t in texts]


def test_a_batch_does_not_share_memory_with_the_corpus_or_the_indices() -> None:
    corpus = Corpus.of([[5, 6], [7]], [[8], [9, 10]])
    chosen = torch.tensor([1, 0]).numpy()
    batch = corpus.batch(chosen)
    batch.source.ids.fill_(11)
    batch.outputs.fill_(11)
    batch.inputs.fill_(11)
    chosen[:] = 0
    assert batch.rows.tolist() == [1, 0]
    again = corpus.batch([1, 0])
    assert again.source.ids.tolist() == [[7, END, PAD], [5, 6, END]]
    assert again.outputs.tolist() == [[9, 10, END], [8, END, PAD]]
    assert again.inputs.tolist() == [[BEGIN, 9, 10], [BEGIN, 8, PAD]]


def test_ids_take_four_bytes() -> None:
    corpus = Corpus.of([[4] * 99] * 100, [[5] * 9] * 100)
    assert corpus.sources.ids.flat.nbytes + corpus.targets.flat.nbytes == 4 * 100 * (100 + 10)


def test_moving_a_batch_keeps_its_rows_and_count() -> None:
    batch = Corpus.of([[5, 6]], [[7]]).batch([0])
    moved = batch.to("cpu")
    assert isinstance(moved, Batch)
    for name in ("inputs", "outputs", "target_mask", "rows"):
        assert torch.equal(getattr(moved, name), getattr(batch, name))
    assert torch.equal(moved.source.ids, batch.source.ids)
    assert moved.target_tokens == batch.target_tokens == 2


@pytest.mark.parametrize("wrong", [[], [2], [-1]])
def test_indices_outside_the_corpus_are_an_internal_error(wrong: list[int]) -> None:
    corpus = Corpus.of([[5], [6]], [[7], [8]])
    with pytest.raises(AssertionError):
        corpus.batch(wrong)


def test_sides_of_unequal_number_are_an_internal_error() -> None:
    with pytest.raises(AssertionError, match="2 sources, 1 targets"):
        Corpus.of([[5], [6]], [[7]])


def test_sources_alone() -> None:
    source = source_batch([[5, 6, 7], [], [8]])
    assert source.ids.tolist() == [[5, 6, 7, END], [END, PAD, PAD, PAD], [8, END, PAD, PAD]]
    assert source.lengths.tolist() == [4, 1, 2]
    assert source.mask.tolist() == [[False] * 4, [False, True, True, True], [False, False, True, True]]
