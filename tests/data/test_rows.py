"""Rows in one piece, in several, and mapped from a file are the same rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eyeline.data.corpus import Batch, Corpus, Links, Sequences, Sources
from eyeline.data.rows import Joined, Rows

lists = st.lists(st.lists(st.integers(0, 60_000), max_size=5), min_size=1, max_size=12)


@given(lists, st.data())
def test_pieces_are_as_good_as_one(rows: list[list[int]], data: st.DataObject) -> None:
    one = Rows.of(rows, np.uint16)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    edges = [0, *cuts, len(rows)]
    pieces = Joined([Rows.of(rows[start:end], np.uint16) for start, end in pairwise(edges)])
    wanted = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)), dtype=np.int64)
    assert len(pieces) == len(one) == len(rows)
    assert pieces.lengths.tolist() == one.lengths.tolist() == [len(row) for row in rows]
    assert pieces.lengths_of(wanted).tolist() == one.lengths_of(wanted).tolist() == [len(rows[row]) for row in wanted]
    for column in (one, pieces):
        taken = column.take(wanted)
        assert [taken.flat[a:b].tolist() for a, b in pairwise(taken.offsets)] == [rows[row] for row in wanted]
        width = max((len(rows[row]) for row in wanted), default=0)
        assert taken.padded(np.int64).tolist() == [rows[row] + [0] * (width - len(rows[row])) for row in wanted]


def test_rows_of_vectors() -> None:
    rows = Rows.of([[[1, 2], [3, 4]], [], [[5, 6]]], np.float32, (2,))
    assert rows.take(np.array([2, 0])).padded(np.float32).tolist() == [[[5, 6], [0, 0]], [[1, 2], [3, 4]]]


def test_a_checksum_sees_every_id_and_every_border() -> None:
    same = [Rows.of([[1, 2], [3]], np.int32).checksum() for _ in range(2)]
    others = [Rows.of(rows, np.int32).checksum() for rows in ([[1], [2, 3]], [[1, 2], [4]], [[1, 2]], [[1, 2], [3], []])]
    assert same[0] == same[1]
    assert len({same[0], *others}) == 5


def everything() -> Corpus:
    """A corpus whose pairs have all there is to have."""
    ids = [[5, 6, 7], [8], [9, 10], [], [5]]
    sources = Sources.of(
        ids, [[20, 6, 21], [8], [20, 10], [], [5]], 20, [np.arange(2 * len(row), dtype=np.float32).reshape(-1, 2) for row in ids]
    )
    links = Links.of([[(0, 1), (2, 0)], [], [(1, 0)], [], [(0, 0)]])
    return Corpus(sources, Sequences.of([[20, 5], [6], [7, 8, 20], [9], []]), links)


def in_two(corpus: Corpus, at: int) -> Corpus:
    """The same in two pieces, the second of which has ids of two bytes."""

    def split(rows: Rows, small: type | None) -> Joined:
        first, second = rows.take(np.arange(at)), rows.take(np.arange(at, len(rows)))
        return Joined([first, second if small is None else replace(second, flat=second.flat.astype(small))])

    sources = corpus.sources
    assert corpus.links is not None
    assert sources.copies is not None
    assert sources.values is not None
    columns = split(sources.ids, np.uint16), split(sources.copies, np.uint16), 20, split(sources.values, None)  # type: ignore[arg-type]
    return Corpus(Sources(*columns), split(corpus.targets, np.uint16), split(corpus.links, None))  # type: ignore[arg-type]


def same_batch(one: Batch, other: Batch) -> None:
    for name in ("inputs", "outputs", "target_mask", "rows", "links"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
        assert getattr(one, name).dtype == getattr(other, name).dtype
    for name in ("ids", "lengths", "copy_ids", "values"):
        assert torch.equal(getattr(one.source, name), getattr(other.source, name)), name
    assert (one.source.extra, one.target_tokens, one.epoch) == (other.source.extra, other.target_tokens, other.epoch)


@pytest.mark.parametrize("at", [1, 2, 4])
def test_copies_values_and_links_in_pieces(at: int) -> None:
    one = everything()
    two = in_two(one, at)
    for rows in ([0], [4, 0, 2], [3, 3, 1], [0, 1, 2, 3, 4]):
        same_batch(one.batch(rows), two.batch(rows))
        same_batch(one.take(np.array(rows)).batch(range(len(rows))), replace(one.batch(rows), rows=torch.arange(len(rows))))
    assert one.batch([0, 1]).links is not None
    assert one.batch([0]).links.tolist() == [[[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]]  # type: ignore[union-attr]


def test_a_corpus_mapped_from_a_file_is_the_same_corpus(tmp_path: Path) -> None:
    one = everything()
    flat = np.memmap(tmp_path / "ids", dtype=np.uint16, mode="w+", shape=one.targets.take(np.arange(5)).flat.shape)
    flat[:] = one.targets.take(np.arange(5)).flat
    flat.flush()
    mapped = Rows(np.memmap(tmp_path / "ids", dtype=np.uint16, mode="r"), one.targets.take(np.arange(5)).offsets)
    same_batch(one.batch([2, 0]), replace(one, targets=mapped).batch([2, 0]))
