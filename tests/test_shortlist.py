"""Shortlists: outputs chosen from what each source may turn into, and how a run learns that from where it looks."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import eyeline
from eyeline.contracts import RESERVED, Model, Source, Step
from eyeline.errors import ConfigError, RunError, UserError
from eyeline.evaluation.shortlists import exactness, make_shortlist
from eyeline.predictor import Predictor
from eyeline.predictor.shortlist import SHORTLIST, Shortlist
from eyeline.search.ensemble import Ensemble, arithmetic
from eyeline.text.records import Pair
from toy_runs import ATTENTIVE, ToyRuns, linked_copies, reversal

LINES = ["a b c", "f e d c b a", "d", "", "c c"]


def pair(source: str, target: str) -> Pair:
    return Pair(source, target, (), None, "pairs.tsv", 1)


def any_shortlist(predictor: Predictor, seed: int, likely: int = 2) -> Shortlist:
    draw = np.random.default_rng(seed)
    shape = (predictor.run.source.size, likely)
    return Shortlist(
        torch.from_numpy(draw.integers(0, predictor.run.target.size, shape, dtype=np.int32)),
        torch.from_numpy(draw.integers(len(RESERVED), predictor.run.target.size, 1, dtype=np.int32)),
    )


def whole(predictor: Predictor) -> Shortlist:
    """One that leaves nothing out."""
    always = torch.arange(len(RESERVED), predictor.run.target.size, dtype=torch.int32)
    return Shortlist(torch.zeros(predictor.run.source.size, 1, dtype=torch.int32), always)


def masked(model: Model, shortlist: Shortlist, more: tuple[int, ...] = ()) -> Any:
    """The same model with what is no candidate made impossible, over all of the vocabulary: the definition, in loops."""

    def head(step: Step, source: Source) -> Tensor:
        said = model.head(step, source)
        hypotheses = len(said) // len(source.lengths)
        possible = torch.full_like(said, -torch.inf)
        for row in range(len(said)):
            n = row // hypotheses
            own = {*range(len(RESERVED)), *shortlist.always.tolist(), *more}
            for symbol in source.ids[n, : int(source.lengths[n])].tolist():
                own |= set(shortlist.likely[symbol].tolist())
            for one in own:
                possible[row, one] = said[row, one]
        return possible.log_softmax(-1)

    return SimpleNamespace(encode=model.encode, decoder=model.decoder, head=head)


def as_masked(predictor: Predictor, shortlist: Shortlist, more: tuple[int, ...] = ()) -> Predictor:
    other = predictor.under(None)
    other.answering = masked(predictor.answering, shortlist, more)
    return other


@pytest.mark.parametrize("rung", ["seq2seq", *ATTENTIVE])
@pytest.mark.parametrize("beam_size", [1, 3])
@settings(max_examples=8)
@given(seed=st.integers(0, 1000))
def test_a_search_over_candidates_is_one_in_which_the_rest_is_impossible(
    toys: ToyRuns, rung: str, beam_size: int, seed: int
) -> None:
    predictor = toys.predictor(rung)
    shortlist = any_shortlist(predictor, seed)
    found = predictor.under(shortlist).predict(LINES, beam_size=beam_size, n_best=beam_size)
    wanted = as_masked(predictor, shortlist).predict(LINES, beam_size=beam_size, n_best=beam_size)
    for one, other in zip(found, wanted, strict=True):
        assert [each.tokens for each in one.n_best] == [each.tokens for each in other.n_best]
        assert [each.score for each in one.n_best] == pytest.approx([each.score for each in other.n_best], abs=1e-4)
        if other.alignment is not None:
            np.testing.assert_allclose(one.alignment, other.alignment, atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_shortlist_of_everything_changes_nothing(toys: ToyRuns, beam_size: int) -> None:
    predictor = toys.predictor("bahdanau")
    found = predictor.under(whole(predictor)).predict(LINES, beam_size=beam_size)
    for one, other in zip(found, predictor.predict(LINES, beam_size=beam_size), strict=True):
        assert (one.text, one.tokens, one.finished) == (other.text, other.tokens, other.finished)
        assert one.score == pytest.approx(other.score, abs=1e-4)


@pytest.mark.usefixtures("small_layers_rounded")
def test_rounded_weights_stay_rounded(toys: ToyRuns) -> None:
    """A row of weights is rounded by itself, so that fewer of them are rounded alike."""
    rounded = eyeline.load(toys.path("luong"), precision="int8")
    for one, other in zip(rounded.under(whole(rounded)).predict(LINES), rounded.predict(LINES), strict=True):
        assert one.tokens == other.tokens
        assert one.score == pytest.approx(other.score, abs=1e-4)
    plain = toys.predictor("luong")
    assert rounded.predict(["a b c"])[0].score != plain.predict(["a b c"])[0].score


def test_neighbours_do_not_matter(toys: ToyRuns) -> None:
    predictor = toys.predictor("luong")
    short = predictor.under(any_shortlist(predictor, 3))
    for line, together in zip(LINES, short.predict(LINES), strict=True):
        (alone,) = short.predict([line])
        assert alone.tokens == together.tokens
        assert alone.score == pytest.approx(together.score, abs=1e-4)


def test_what_is_demanded_is_a_candidate_and_what_is_forbidden_is_none(toys: ToyRuns) -> None:
    predictor = toys.predictor("luong")
    nothing = Shortlist(torch.zeros(predictor.run.source.size, 1, dtype=torch.int32), torch.zeros(0, dtype=torch.int32))
    short = predictor.under(nothing)
    assert short.predict(["a b c"])[0].text in ("", *["<unk> " * n for n in range(9)])  # not one symbol of its own
    assert short.predict(["a b c", "d"], prefixes=["f e", ""])[0].text.startswith("f e")
    (required,) = short.predict(["a b c"], constraints=[{"source": "b", "require": "d c"}])
    assert "d c" in required.text
    everything = predictor.under(whole(predictor))
    for given_ in (predictor, everything):
        assert "b" not in given_.predict(["a b c"], constraints=[{"source": "a", "forbid": "b"}])[0].text
    assert "b" not in short.predict(["a b c"], constraints=[{"source": "a", "forbid": "b"}])[0].text


def test_models_that_answer_together(toys: ToyRuns) -> None:
    predictor = toys.predictor("luong")
    shortlist = any_shortlist(predictor, 5)
    both = predictor.under(shortlist)
    both.answering = Ensemble([predictor.model, toys.predictor("luong-again").model], arithmetic)
    alone = predictor.under(None)
    alone.answering = Ensemble(
        [masked(model, shortlist) for model in both.answering.models],
        arithmetic,
    )
    for one, other in zip(both.predict(LINES, beam_size=2), alone.predict(LINES, beam_size=2), strict=True):
        assert one.tokens == other.tokens
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_a_run_learns_from_where_it_looks(toys: ToyRuns) -> None:
    """In copies, which symbol belongs to which is known: each symbol's likeliest output is itself."""
    predictor = toys.predictor("guided")
    pairs = [pair(source, target) for source, target, _ in linked_copies(200, 9)]
    made = make_shortlist(predictor, pairs, likely=3, always=0)
    symbols = [predictor.encode_source(symbol).ids[0] for symbol in "abcdef"]
    for symbol, own in zip("abcdef", symbols, strict=True):
        first = int(made.likely[own][0])
        assert predictor.run.target.tokens_of([first]) == [symbol]
    assert len(made.always) == 0


def test_counts_are_sums_of_attention(toys: ToyRuns) -> None:
    """Against a loop over the alignments that `score` tells."""
    predictor = toys.predictor("bahdanau")
    pairs = reversal(12, 4)
    made = make_shortlist(predictor, [pair(*each) for each in pairs], likely=2, always=1)
    names, sources = (
        {name: place for place, name in enumerate(side.tokens_of(range(side.size)))}
        for side in (predictor.run.target, predictor.run.source)
    )
    total: dict[int, dict[int, float]] = {}
    often: dict[int, int] = {}
    for score in predictor.score(pairs, attention=True):
        assert score.alignment is not None
        for token, row in zip(score.tokens[:-1], score.alignment[:-1], strict=True):
            often[names[token]] = often.get(names[token], 0) + 1
            for symbol, weight in zip(score.source_tokens, row, strict=True):
                if weight > 0.05:
                    own = total.setdefault(sources[symbol], {})
                    own[names[token]] = own.get(names[token], 0.0) + weight
    (always,) = made.always.tolist()
    assert often[always] == max(often.values())
    for source, own in total.items():
        best = sorted((one for one in own if one != always), key=lambda one: -own[one])[:2]
        assert [one for one in made.likely[source].tolist() if one] == best


def test_how_exact_it_is(toys: ToyRuns) -> None:
    predictor = toys.predictor("luong")
    found = exactness(predictor, LINES, whole(predictor))
    assert (found.lines, found.same) == (len(LINES), len(LINES))
    assert found.candidates == predictor.run.target.size
    nothing = Shortlist(torch.zeros(predictor.run.source.size, 1, dtype=torch.int32), torch.zeros(0, dtype=torch.int32))
    assert exactness(predictor, LINES, nothing).same == 1  # the blank line


def test_it_is_stored_with_the_run(toys: ToyRuns, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(toys.path("luong"), run)
    with pytest.raises(RunError, match="the run has no shortlist"):
        eyeline.load(run, shortlist=True)
    predictor = eyeline.load(run)
    made = any_shortlist(predictor, 7)
    made.save(run)
    loaded = eyeline.load(run, shortlist=True)
    assert [one.text for one in loaded.predict(LINES)] == [one.text for one in predictor.under(made).predict(LINES)]
    Shortlist(made.likely[:-1], made.always).save(run)
    with pytest.raises(RunError, match="a shortlist of other vocabularies"):
        eyeline.load(run, shortlist=True)
    (run / SHORTLIST).write_bytes(b"nothing of the kind")
    with pytest.raises(RunError, match="damaged, or no shortlist"):
        eyeline.load(run, shortlist=True)


def test_what_has_no_shortlist(toys: ToyRuns) -> None:
    for name in ("names", "points"):
        with pytest.raises(ConfigError, match="outputs that are copied or pointed at have no shortlist"):
            eyeline.load(toys.path(name), shortlist=True)
    with pytest.raises(UserError, match="attention"):
        make_shortlist(toys.predictor("seq2seq"), [pair("a b", "b a")])
    predictor = toys.predictor("luong")
    with pytest.raises(UserError, match="no target has a token"):
        make_shortlist(predictor, [pair("a b", "")])
    short = predictor.under(any_shortlist(predictor, 1))
    for options in ({"sampling": "top-k=2"}, {"mbr": 4}):
        with pytest.raises(ConfigError, match="samples are drawn from the whole vocabulary"):
            short.predict(["a"], **options)
