"""Sources that take the places of finished ones: whoever is beside them, they are answered as by themselves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import TinyModel, assert_same, sources

from answers import cut, some_source
from eyeline.contracts import Hypothesis, Source
from eyeline.data.batches import Waiting
from eyeline.errors import RunError
from eyeline.nn.packing import pack
from eyeline.nn.projected_values import PROJECTED
from eyeline.search import Demands, beam_search, drawn_from, greedy, sample, search
from eyeline.search.course import LEFT, Searching
from eyeline.search.refilling import refilled
from rungs import RUNGS, make

LENGTHS = [3, 1, 9, 2, 14, 1, 5, 8, 2, 3, 6, 1]
LINES = [[4 + (row * row + place) % 8 for place in range(length)] for row, length in enumerate(LENGTHS)]
EACH = {  # what searches take for each source
    "max_length": [4, 30, 7, 25, 12, 3, 28, 9, 16, 2, 20, 11],
    "min_length": [0, 2, 0, 0, 5, 1, 0, 3, 0, 0, 0, 0],
}
PREFIXES = [(6, 6, 6), (), (11,), (4, 5, 6), (), (), (9, 9), (), (7,), (), (), (5,)]
PHRASES = [((10, 11),), (), ((4,), (5, 6)), (), ((7,),), (), (), ((8,),), (), (), ((9, 10),), ()]


def asked(way: Searching[..., Any], model: Any, lines: Source, room: int, few: int, **options: Any) -> list[Any]:
    """What is answered to the rows of `lines`, in their order, as they take each other's places."""
    waiting, taken = Waiting(lines.lengths), list[list[int]]()

    def take(free: int) -> Any:
        rows = waiting.take(free, room)
        if rows is None:
            return None
        taken.append(rows.tolist())
        own = {name: [value[row] for row in taken[-1]] if isinstance(value, list) else value for name, value in options.items()}
        if "demands" in own:
            given: Demands = own["demands"]
            parts = (given.prefixes, given.required, given.forbidden)
            own["demands"] = Demands(*([part[row] for row in taken[-1]] if part else () for part in parts))
        some = lines.select(torch.from_numpy(rows))
        some = cut(some, int(some.lengths.max()))
        return some, way.course(some, **own), int(some.lengths.max())

    answers: dict[int, Any] = {}
    for rows, found in zip(taken, refilled(model, take, room, few), strict=True):
        answers.update(zip(rows, found, strict=True))
    return [answers[row] for row in range(len(lines.lengths))]


def flat(found: list[Any]) -> list[Hypothesis]:
    return found if isinstance(found[0], Hypothesis) else list(itertools.chain.from_iterable(found))


SHORT = {"min_length": 0, "max_length": 12}
WAYS: dict[str, tuple[Searching[..., Any], dict[str, Any]]] = {
    "greedy": (greedy, {}),
    "greedy without repeats": (greedy, {"no_repeat_ngram": 2}),
    "greedy with a coverage penalty": (greedy, {"coverage_penalty": 0.3}),
    "greedy after prefixes": (greedy, {"demands": Demands(PREFIXES), **SHORT}),
    "samples": (sample, {"samples": 3, "seed": 5, "filters": drawn_from(temperature=0.7)}),
    "a beam": (search, {"beam_size": 4}),
    "an n-best list": (beam_search, {"beam_size": 4, "n_best": 4, "coverage_penalty": 0.2}),
    "a patient beam": (beam_search, {"beam_size": 3, "patience": 1.0}),
    "groups": (beam_search, {"beam_size": 4, "n_best": 2, "diverse_groups": 2}),
    "required phrases": (beam_search, {"beam_size": 4, "demands": Demands((), PHRASES), **SHORT}),
    "forbidden phrases": (
        beam_search,
        {"beam_size": 2, "demands": Demands(PREFIXES, (), PHRASES), **SHORT},
    ),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("room", "few"), [(30, 6), (16, 100), (45, 15), (1, 9), (30, 0)])
def test_answers_are_those_of_a_batch_by_itself(name: str, room: int, few: int) -> None:
    way, options = WAYS[name]
    model, lines = TinyModel(2).double(), sources(*LINES)
    options = {**EACH, **options}
    got = flat(asked(way, model, lines, room, few, **options))
    wanted = flat(way(model, lines, **options))
    assert len(got) == len(wanted)
    assert any(answer.attention for answer in wanted)
    for one, other in zip(got, wanted, strict=True):
        assert_same(one, other)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(4, 11), min_size=1, max_size=9), min_size=1, max_size=14),
    st.integers(1, 60),
    st.integers(0, 40),
    st.sampled_from([1, 3]),
    st.integers(0, 3),
)
def test_whatever_lines_and_room(lines: list[list[int]], room: int, few: int, beam: int, seed: int) -> None:
    model, batch = TinyModel(seed).double(), sources(*lines)
    got = asked(search, model, batch, room, few, beam_size=beam)
    for one, other in zip(flat(got), flat(search(model, batch, beam_size=beam)), strict=True):
        assert_same(one, other)


KINDS = [
    "seq2seq-every-step-gru-1x1",
    "bahdanau-bi-lstm-1x2",
    "luong-general-bi-fed-gru-2x2",
    "luong-local-m-concat-bi-fed-lstm-2x1",
    "pointer-network-vectors-distinct-lstm-1x1",
    "coverage-gated-luong-dot-fed-gru",
    "pointer-generator-location-bi-gru-1x1",
    "transformer-post-relu-sinusoidal",
    "transformer-pre-gelu-learned-1x2",
    "transformer-post-swiglu-rotary",
    "transformer-pre-gelu-window-alibi",
    "transformer-pre-relu-linear",
    "pointer-generator-transformer-head-0-post-window-rotary",
    "state-space-1x2-wide",
]


@pytest.mark.parametrize("rung", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_every_kind_of_rung(rung: str, beam: int) -> None:
    """In double precision, where random weights leave no near-ties."""
    model, dims = make(RUNGS[rung])
    model = model.double()
    lines = some_source(dims, (3, 6, 2, 4, 6, 1, 5, 2, 3, 6, 4))
    most = [2, 6, 5, 1, 4, 6, 3, 5, 6, 4, 5]
    least = [length // 2 for length in most]
    wanted = search(model, lines, beam_size=beam, min_length=least, max_length=most)
    assert len({len(answer.ids) for answer in flat(wanted)}) > 2, "some sources are finished before others"
    got = asked(search, model, lines, 15, 8, beam_size=beam, min_length=least, max_length=most)
    for one, other in zip(flat(got), flat(wanted), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("rung", ["bahdanau-bi-lstm-1x2", "pointer-generator-bi-lstm-1x1"])
def test_packed_decoders_whose_states_take_other_forms_after_a_step(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyeline.nn.packing.UNITS", 1)
    monkeypatch.setattr("eyeline.nn.projected_values.BYTES", 0)
    model, dims = make(RUNGS[rung])
    packed = pack(model)
    assert isinstance(packed.decoder, PROJECTED)
    lines = some_source(dims, (3, 6, 2, 4, 6, 1, 5, 2, 3, 6, 4))
    most = [2, 6, 5, 1, 4, 6, 3, 5, 6, 4, 5]
    with torch.inference_mode():
        wanted = search(packed, lines, beam_size=6, max_length=most)
        got = asked(search, packed, lines, 15, 8, beam_size=6, max_length=most)
    for one, other in zip(flat(got), flat(wanted), strict=True):
        assert_same(one, other, tolerance=1e-4)


class Counting:
    """A model that counts the rows of each step."""

    def __init__(self, model: Any) -> None:
        self.encode, self.head, self.decoder, self.inner = model.encode, model.head, self, model.decoder
        self.start = model.decoder.start
        self.rows: list[int] = []

    def step(self, token: Any, state: Any, memory: Any) -> Any:
        self.rows.append(len(token))
        return self.inner.step(token, state, memory)


def test_places_are_filled_and_no_more_than_there_are() -> None:
    lines, most = sources(*[[4, 5, 6]] * 40), [1 + 7 * (row % 5) for row in range(40)]
    steps = {}
    for few in (9, 0):
        model = Counting(TinyModel(1))
        asked(greedy, model, lines, 40, few, max_length=most, min_length=most)
        assert max(model.rows) == 10, "four places a source, and room for forty"
        wanted = sum(most) + len(most)
        assert wanted <= sum(model.rows) <= wanted / (1 - LEFT), "few that are wanted no more are stepped"
        steps[few] = len(model.rows)
    assert steps[0] == 4 * (max(most) + 1), "one batch after the other"
    assert steps[9] < 0.8 * steps[0]


def test_what_goes_wrong_in_one_batch_is_told() -> None:
    class Broken(TinyModel):
        def head(self, step: Any, source: Source) -> torch.Tensor:
            said = super().head(step, source)
            return torch.full_like(said, torch.nan) if (source.ids == 11).any() else said

    with pytest.raises(RunError, match="NaN"):
        asked(greedy, Broken(), sources([4, 5, 6], [7, 8, 9], [11, 4]), 4, 9)


def test_nothing_to_search_is_no_step() -> None:
    assert refilled(TinyModel(), lambda room: None, 10) == []
    assert search(TinyModel(), Source(torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, dtype=torch.long))) == []


@settings(max_examples=100)
@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 200), st.lists(st.integers(0, 200), max_size=30))
def test_what_waits_is_taken_once_and_fits(sizes: list[int], whole: int, rooms: list[int]) -> None:
    waiting, found = Waiting(sizes), list[int]()
    for room in [*(min(room, whole) for room in rooms), *[whole] * len(sizes)]:
        rows = waiting.take(room, whole)
        if rows is None:
            continue
        assert len(rows)
        assert len(rows) * max(1, *(sizes[row] for row in rows)) <= room or (len(rows) == 1 and room == whole)
        found += rows.tolist()
    assert found == sorted(range(len(sizes)), key=lambda row: (-sizes[row], row))
    assert waiting.take(whole, whole) is None
