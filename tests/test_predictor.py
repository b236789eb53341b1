"""A run in use from Python: an answer is the same whatever stands beside it, scores agree, and what cannot be is refused."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eyeline
from eyeline.contracts import Prediction
from eyeline.errors import ConfigError, DataError, RunError, UserError
from eyeline.predictor import Predictor, SearchOptions
from eyeline.predictor.pieces import pieces
from strategies import CONTROL_LOOKALIKES, lines
from toy_runs import ATTENTIVE, RUNGS, ToyRuns

# one symbol, three, forty, seven, and the first again (O11)
LINES = ["a", "b c d", " ".join("abcdef" * 6 + "abcd"), "f e d c b a f", "a"]
WAYS = [(beam, penalty) for beam in (1, 4) for penalty in (0.0, 1.0)]


def same(one: Prediction, other: Prediction) -> None:
    """Asserts that two answers are the same but for rounding."""
    assert one.tokens == other.tokens
    assert one.text == other.text
    assert one.score == pytest.approx(other.score, abs=1e-4)
    assert one.normalized_score == pytest.approx(other.normalized_score, abs=1e-4)
    assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)
    assert (one.alignment is None) == (other.alignment is None)
    for row, partner in zip(one.alignment or [], other.alignment or [], strict=True):
        assert row == pytest.approx(partner, abs=1e-4)


# ---- neighbours ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(("beam", "penalty"), WAYS)
def test_neighbours_and_order_change_nothing(toys: ToyRuns, rung: str, beam: int, penalty: float) -> None:
    model = toys.predictor(rung)

    def predict(sources: list[str]) -> list[Prediction]:
        return model.predict(sources, beam_size=beam, length_penalty=penalty, n_best=beam)

    alone = [predict([line])[0] for line in LINES]
    together, backwards = predict(LINES), predict(LINES[::-1])[::-1]
    for lonely, one, other in zip(alone, together, backwards, strict=True):
        for answer in (one, other):
            same(answer, lonely)
            for mine, theirs in zip(answer.n_best, lonely.n_best, strict=True):
                assert mine.score == pytest.approx(theirs.score, abs=1e-4)


@pytest.mark.parametrize("rung", RUNGS)
def test_batch_size_and_attention_change_nothing(toys: ToyRuns, rung: str) -> None:
    model = toys.predictor(rung)
    whole = model.predict(LINES)
    for budget in (1, 30, 300):
        for one, other in zip(model.predict(LINES, batch_tokens=budget, attention=False), whole, strict=True):
            assert one.alignment is None
            assert one.tokens == other.tokens
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_a_batch_holds_its_budget_of_padded_tokens_hypotheses_counted(toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = toys.predictor("luong"), []
    encode = type(model.model).encode

    def counted(self: Any, source: Any) -> Any:
        seen.append(tuple(source.ids.shape))
        return encode(self, source)

    monkeypatch.setattr(type(model.model), "encode", counted)
    model.predict(LINES * 4, beam_size=4, batch_tokens=400)
    assert len(seen) > 2
    assert all(rows * width * 4 <= 400 for rows, width in seen)
    assert max(rows * width * 4 for rows, width in seen) > 200  # and it is filled


def test_the_same_answers_after_training_mode_was_left(toys: ToyRuns) -> None:
    path = toys.path("luong")
    model = eyeline.load(path)
    before = model.predict(LINES)
    model.model.train()
    model.model.eval()
    for one, other in zip(model.predict(LINES), before, strict=True):
        same(one, other)


def test_threads_get_the_answers_of_one(toys: ToyRuns) -> None:
    model = toys.predictor("bahdanau")
    requests = [LINES, LINES[::-1], LINES[:2], [*LINES, ""]] * 3
    expected = [model.predict(request, beam_size=4) for request in requests]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda request: model.predict(request, beam_size=4), requests))
    for answer, wanted in zip(answers, expected, strict=True):
        for one, other in zip(answer, wanted, strict=True):
            same(one, other)


# ---- what is blank, odd, long -------------------------------------------------------------------------------------------


def test_white_space_is_answered_with_nothing_and_the_model_is_not_asked(toys: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    model = toys.predictor("luong")
    monkeypatch.setattr(type(model.model), "encode", lambda *_: pytest.fail("the model was asked"))
    blanks = ["", " ", "\t", "\u00a0", "\u3000", "\u2028", " \t\u2009"]
    for answer, blank in zip(model.predict(blanks, n_best=3), blanks, strict=True):
        assert answer.source == blank
        assert (answer.text, answer.score, answer.tokens, answer.finished) == ("", 0.0, [], True)
        assert [entry.text for entry in answer.n_best] == ["", "", ""]


def test_no_sources_no_predictions(toys: ToyRuns) -> None:
    assert toys.predictor("luong").predict([]) == []
    assert toys.predictor("luong").score([]) == []


@given(line=lines())
@settings(max_examples=40)
def test_any_line_of_text_is_answered(toys: ToyRuns, line: str) -> None:
    model = toys.predictor("odd")
    (answer,) = model.predict([line], beam_size=2)
    assert answer.source == line
    assert answer.score <= 0
    assert bool(answer.tokens) == (not (not line or line.isspace()))
    assert len(answer.tokens) == len(answer.token_scores) == len(answer.alignment or answer.tokens)


@pytest.mark.parametrize("name", ["luong", "odd"])
@pytest.mark.parametrize("typed", CONTROL_LOOKALIKES)
def test_typed_control_symbols_are_text(toys: ToyRuns, name: str, typed: str) -> None:
    model = toys.predictor(name)
    ids = model.encode_source(f"a {typed} b").ids
    assert not {0, 2, 3} & set(ids)  # PAD, BEGIN and END; the unknown symbol may stand for what was typed
    long, short = model.predict([f"a {typed} b a", "a"])
    assert long.source_tokens != short.source_tokens
    assert long.score != pytest.approx(short.score, abs=1e-6)


def longer(model: Predictor, limit: int) -> Predictor:
    """The same model, as if it had been trained with `data.max_length: limit`."""
    data = model.config.data.model_copy(update={"max_length": limit})
    run = type(model.run)(model.run.path, model.config.model_copy(update={"data": data}), model.run.source, model.run.target)
    return Predictor(run, model.model)


def test_a_source_that_is_too_long_is_refused_cut_or_parted_as_asked(toys: ToyRuns) -> None:
    model = longer(toys.predictor("luong"), 4)
    source = "a b c d e f a"
    with pytest.raises(
        DataError, match=r"7 tokens is longer than data\.max_length=4 \(sources:2\); --too-long truncate or split"
    ):
        model.predict(["a", source], too_long="error")
    whole, cut, parted = (model.predict([source], too_long=choice)[0] for choice in (None, "truncate", "split"))
    assert (whole.truncated, cut.truncated, parted.truncated) == (False, True, False)
    assert len(whole.source_tokens) == 8
    same(cut, model.predict(["a b c d"])[0].__class__(**{**vars(model.predict(["a b c d"])[0]), "source": source}))
    first, second = model.predict(["a b c d", "e f a"])
    assert parted.source == source
    assert parted.text == f"{first.text} {second.text}"
    assert parted.tokens == first.tokens + second.tokens
    assert parted.source_tokens == first.source_tokens + second.source_tokens
    assert parted.score == pytest.approx(first.score + second.score, abs=1e-4)
    assert parted.normalized_score == pytest.approx(parted.score / len(parted.tokens), abs=1e-4)
    assert parted.alignment is None


def test_parts_have_as_many_alternatives_as_were_asked_for(toys: ToyRuns) -> None:
    model = longer(toys.predictor("luong"), 3)
    (answer,) = model.predict(["a b c d e"], too_long="split", n_best=3)
    assert len(answer.n_best) == 3
    assert answer.n_best[0].score >= answer.n_best[1].score


def test_other_lines_are_left_alone_when_one_is_parted(toys: ToyRuns) -> None:
    model = longer(toys.predictor("bahdanau"), 3)
    sources = ["a b", "", "f e d c b a", "c", ""]
    answers = model.predict(sources, too_long="split")
    assert [answer.source for answer in answers] == sources
    for place in (0, 1, 3, 4):
        same(answers[place], model.predict([sources[place]])[0])


@given(text=lines(40, blank=False), most=st.integers(1, 12))
@settings(max_examples=60)
def test_parts_hold_every_token_but_blanks_at_the_cuts(toys: ToyRuns, text: str, most: int) -> None:
    for name in ("odd", "bpe"):
        encoded = toys.predictor(name).encode_source(text)
        parts = pieces(encoded, 0, most)
        assert all(1 <= len(part.ids) <= most for part in parts)
        in_words = [number for number, word in zip(encoded.ids, encoded.words, strict=True) if word is not None]
        kept = [number for part in parts for number, word in zip(part.ids, part.words, strict=True) if word is not None]
        assert kept == in_words
        assert all(part.words[0] is not None and part.words[-1] is not None for part in parts)


def test_cuts_fall_between_words_where_they_can(toys: ToyRuns) -> None:
    model = toys.predictor("odd")
    encoded = model.encode_source("ab ba abababab a b")
    assert ["".join(part.tokens) for part in pieces(encoded, 0, 6)] == ["ab ba", "ababab", "ab a b"]


def test_pieces_of_a_word_stay_together_where_the_word_fits(toys: ToyRuns) -> None:
    model = toys.predictor("bpe")
    encoded = model.encode_source("the small cat eats the apple")
    longest = max(encoded.words.count(word) for word in set(encoded.words))
    assert longest > 1
    for most in (longest, longest + 1, longest + 3):
        parts = pieces(encoded, 0, most)
        assert len(parts) > 1
        assert sum(len(set(part.words)) for part in parts) == 6


def test_features_stand_before_every_part(toys: ToyRuns) -> None:
    model = toys.predictor("features")
    encoded = model.encode_source("walk talk\tV;PST")
    parts = pieces(encoded, 2, 7)
    assert [part.tokens for part in parts] == [["V", "PST", *"walk"], ["V", "PST", *"talk"]]
    answer = longer(model, 7).predict(["walk talk\tV;PST"], too_long="split")[0]
    first, second = model.predict(["walk\tV;PST", "talk\tV;PST"])
    assert answer.text == f"{first.text} {second.text}"


def test_an_output_ends_within_what_training_has_seen_unless_asked_otherwise(toys: ToyRuns) -> None:
    model = longer(toys.predictor("seq2seq"), 5)

    def length(max_length: int | None, min_length: int | None) -> int:
        (answer,) = model.predict([LINES[2]], max_length=max_length, min_length=min_length, beam_size=1)
        return len(answer.tokens) - answer.finished

    assert length(None, None) <= 5
    assert length(None, 9) == 9  # a minimum above it lifts it
    assert length(12, 10) in (10, 11, 12)
    assert len(toys.predictor("seq2seq").predict([LINES[2]], beam_size=1)[0].tokens) > 6  # without the bound it says more


def test_five_thousand_symbols_are_answered(toys: ToyRuns) -> None:
    source = " ".join("abcde" * 1000)
    for rung in RUNGS:
        (answer,) = toys.predictor(rung).predict([source], attention=False)
        assert len(answer.source_tokens) == 5001
        assert len(answer.tokens) <= 1001


def test_lines_are_answered_in_portions_of_bounded_size(toys: ToyRuns) -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield "a b"

    answers = toys.predictor("luong").stream(endless(), SearchOptions(beam_size=1), at_once=10)
    assert [next(answers).source for _ in range(11)] == ["a b"] * 11
    assert taken == 20


def test_long_lines_make_small_portions() -> None:
    from eyeline.predictor.inputs import chunks

    short, long = [("x" * 10, "")] * 50, [("x" * 1500, "")] * 5
    assert [len(chunk) for chunk in chunks([*short, *long], 40, attention=True)] == [40, 12, 2, 1]
    assert [len(chunk) for chunk in chunks([*short, *long], 40, attention=False)] == [40, 15]


# ---- search options -----------------------------------------------------------------------------------------------------


def test_a_longer_list_than_the_beam_is_refused_and_without_a_beam_widens_it(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    with pytest.raises(ConfigError, match="n_best=3, beam_size=2"):
        model.predict(["a"], beam_size=2, n_best=3)
    (answer,) = model.predict(["a b c"], n_best=8)
    assert len({tuple(entry.tokens) for entry in answer.n_best}) == 8
    scores = [entry.normalized_score for entry in answer.n_best]
    assert scores == sorted(scores, reverse=True)
    same(answer, model.predict(["a b c"], beam_size=8)[0])


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("beam_size", 0, "search.beam_size=0"),
        ("beam_size", True, "search.beam_size"),
        ("beam_size", 2.5, "search.beam_size"),
        ("n_best", 0, "n_best=0"),
        ("length_penalty", -1, "search.length_penalty=-1"),
        ("length_penalty", math.nan, "search.length_penalty"),
        ("min_length", -1, "search.min_length=-1"),
        ("max_length", 0, "search.max_length=0"),
        ("batch_tokens", 0, "search.batch_tokens=0"),
        ("too_long", "cut", "too_long=cut"),
    ],
)
def test_options_that_cannot_be_are_refused_even_for_blank_sources(toys: ToyRuns, option: str, value: Any, named: str) -> None:
    for sources in (["a"], [""]):
        with pytest.raises(ConfigError) as caught:
            toys.predictor("luong").predict(sources, **{option: value})
        assert named in str(caught.value)


def test_a_minimum_above_the_maximum_names_both(toys: ToyRuns) -> None:
    with pytest.raises(ConfigError, match="min_length 9 is more than max_length 3"):
        toys.predictor("luong").predict(["a"], min_length=9, max_length=3)


@pytest.mark.parametrize("sources", ["a b", b"a b", None, 5, ["a", None], ["a", b"b"], [["a"]], ["\ud800"]])
def test_sources_that_are_no_texts_are_refused(toys: ToyRuns, sources: Any) -> None:
    with pytest.raises(UserError) as caught:
        toys.predictor("luong").predict(sources)
    assert "\n" not in str(caught.value)


def test_any_iterable_of_texts_will_do(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    assert [answer.text for answer in model.predict(line for line in ("a b", "c"))] == ["b a", "c"]


@pytest.mark.parametrize("pairs", ["ab", None, 5, ["ab"], [("a",)], [("a", "b", "c")], [("a", None)], [(b"a", "b")]])
def test_pairs_that_are_no_pairs_are_refused(toys: ToyRuns, pairs: Any) -> None:
    with pytest.raises(UserError):
        toys.predictor("luong").score(pairs)


# ---- scores -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(("beam", "penalty"), WAYS)
def test_a_score_is_what_the_search_reported(toys: ToyRuns, rung: str, beam: int, penalty: float) -> None:
    model = toys.predictor(rung)
    answers = model.predict(LINES, beam_size=beam, length_penalty=penalty)
    ended = [answer for answer in answers if answer.finished]
    assert len(ended) >= 4
    for batch_tokens in (1, 20, 4096):
        pairs = [(answer.source, answer.text) for answer in ended]
        scores = model.score(pairs, length_penalty=penalty, attention=True, batch_tokens=batch_tokens)
        for score, answer in zip(scores, ended, strict=True):
            assert score.tokens == answer.tokens
            assert score.score == pytest.approx(answer.score, abs=1e-4)
            assert score.score <= 0
            assert score.normalized_score == pytest.approx(answer.score / len(answer.tokens) ** penalty, abs=1e-4)
            assert score.normalized_score == pytest.approx(answer.normalized_score, abs=1e-4)
            assert score.token_scores == pytest.approx(answer.token_scores, abs=1e-4)
            assert (score.alignment is None) == (rung == "seq2seq")
            for row, partner in zip(score.alignment or [], answer.alignment or [], strict=True):
                assert row == pytest.approx(partner, abs=1e-4)


def test_the_silence_of_a_blank_source_is_certain_and_any_other_answer_is_finite(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    nothing, something, silent = model.score([("", " "), ("\u3000", "a b"), ("a b", "")])
    assert (nothing.score, nothing.tokens, nothing.token_scores) == (0.0, [], [])
    assert nothing.score == model.predict([""])[0].score
    assert -1000 < something.score < 0
    assert len(something.tokens) == 3
    assert silent.tokens == ["</s>"]
    assert -1000 < silent.score < 0


# ---- attention ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", ATTENTIVE)
def test_rows_are_output_tokens_and_columns_source_tokens(toys: ToyRuns, rung: str) -> None:
    source = "a b c d e"
    alone = toys.predictor(rung).predict([source])[0]
    beside = toys.predictor(rung).predict([LINES[2], source, "a"])[1]
    assert alone.tokens == ["e", "d", "c", "b", "a", "</s>"]
    assert alone.source_tokens == ["a", "b", "c", "d", "e", "</s>"]
    for answer in (alone, beside):
        weights = answer.alignment
        assert weights is not None
        assert len(weights) == 6
        assert all(len(row) == 6 and sum(row) == pytest.approx(1, abs=1e-5) for row in weights)
        peaks = [row.index(max(row)) for row in weights[:5]]
        assert (peaks[0], peaks[-1]) == (4, 0)  # the target is the source backwards: the first row looks at the last symbol
        assert peaks == sorted(peaks, reverse=True)
    same(alone, beside)


def test_repeated_symbols_keep_their_columns_and_unequal_sides_their_shape(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    (answer,) = model.predict(["a a a"])
    assert answer.source_tokens == ["a", "a", "a", "</s>"]
    (score,) = model.score([("a b", "a b c d e")], attention=True)
    assert score.alignment is not None
    assert [len(score.alignment), len(score.alignment[0])] == [6, 3]


def test_the_rung_without_attention_has_none(toys: ToyRuns) -> None:
    answer = toys.predictor("seq2seq").predict(["a b"])[0]
    assert answer.alignment is None
    assert toys.predictor("seq2seq").score([("a b", "b a")], attention=True)[0].alignment is None


# ---- runs that travel ---------------------------------------------------------------------------------------------------


def test_a_run_is_moved_packed_and_loaded_without_its_data(toys: ToyRuns, tmp_path: Path) -> None:
    expected = toys.predictor("luong").predict(LINES)
    packed, moved = tmp_path / "run.zip", tmp_path / "another place" / "läuft 한"
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("config.yaml", "model.safetensors", "source.tokenizer.json", "target.tokenizer.json"):
            archive.write(toys.path("luong") / name, name)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(moved)
    for one, other in zip(eyeline.load(moved).predict(LINES), expected, strict=True):
        same(one, other)


def test_a_new_process_says_and_scores_the_same(toys: ToyRuns, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(toys.path("bahdanau"), copy)
    answers = toys.predictor("bahdanau").predict(LINES[:2])
    program = (
        "import eyeline, json\n"
        f"model = eyeline.load({str(copy)!r})\n"
        f"lines = {LINES[:2]!r}\n"
        "answers = model.predict(lines)\n"
        "scores = model.score([(a.source, a.text) for a in answers])\n"
        "print(json.dumps([(a.text, a.score, s.score) for a, s in zip(answers, scores)]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for (text, score, again), answer in zip(json.loads(done.stdout), answers, strict=True):
        assert text == answer.text
        assert score == pytest.approx(answer.score, abs=1e-4)
        assert again == pytest.approx(answer.score, abs=1e-4)


def test_what_is_no_run_is_refused(toys: ToyRuns, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such run directory"):
        eyeline.load(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"it has no config\.yaml"):
        eyeline.load(tmp_path)
    with pytest.raises(ConfigError, match="not a device"):
        eyeline.load(toys.path("luong"), "gpu9")
