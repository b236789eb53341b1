"""Runs that copy: words that no vocabulary holds come out as typed, whatever stands beside them, and score as they came."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch

import eyeline
from eyeline.config import Config
from eyeline.contracts import UNKNOWN
from eyeline.evaluation import align_pairs, evaluate, read_for
from eyeline.predictor import Predictor
from eyeline.training.preparation import prepare
from toy_runs import QUICK, TINY, ToyRuns, named, write_pairs

NAMES = ("names", "names-transformer")
PAIRS = named(30, 7)
TYPED = [
    ("my name is Zürich", "hello Zürich"),
    ("my name is 서울특별시", "hello 서울특별시"),
    ("my name is a𝒳_1", "hello a𝒳_1"),
    ("A lives in B", "in B there is A"),
    ("A lives in A", "in A there is A"),
]
ODD = [("my name is <unk>", "hello <unk>"), ("my name is </s>", "hello </s>"), ("my name is 😀.,\u00a0!", "hello 😀.,\u00a0!")]


def data_of(model: Predictor, **data: Any) -> Predictor:
    """The same model, as if it had been trained with other data settings."""
    given = model.config.data.model_copy(update=data)
    run = type(model.run)(model.run.path, model.config.model_copy(update={"data": given}), model.run.source, model.run.target)
    return Predictor(run, model.model)


@pytest.mark.parametrize("name", NAMES)
def test_names_never_seen_are_copied(toys: ToyRuns, name: str) -> None:
    answers = toys.predictor(name).predict([source for source, _ in PAIRS])
    assert sum(answer.text == target for answer, (_, target) in zip(answers, PAIRS, strict=True)) >= 28


@pytest.mark.parametrize("name", NAMES)
def test_words_of_any_script_come_out_as_typed(toys: ToyRuns, name: str) -> None:
    typed = TYPED if name == "names" else [*TYPED, *ODD]  # its symbols are whatever stands between blanks
    answers = toys.predictor(name).predict([source for source, _ in typed])
    assert [answer.text for answer in answers] == [target for _, target in typed]
    for answer, (_, target) in zip(answers, typed, strict=True):
        assert answer.tokens == [*target.split(" "), "</s>"]
        assert answer.source_tokens == [*answer.source.split(" "), "</s>"]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_a_score_is_what_predict_printed(toys: ToyRuns, name: str, beam: int) -> None:
    model = toys.predictor(name)
    answers = model.predict([source for source, _ in [*PAIRS[:8], *TYPED]], beam_size=beam, n_best=beam)
    said = [(answer.source, entry) for answer in answers for entry in answer.n_best if entry.finished]
    # the unknown token is written `<unk>`, which as text is another thing; and what was copied may be generated too
    said = [(source, entry) for source, entry in said if "<unk>" not in entry.text]
    assert len(said) >= 12
    for (_, entry), score in zip(said, model.score([(source, entry.text) for source, entry in said]), strict=True):
        assert score.tokens == entry.tokens
        assert score.score == pytest.approx(entry.score, abs=1e-4)
        assert score.token_scores == pytest.approx(entry.token_scores, abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_sources_with_extras_of_their_own_share_a_batch(toys: ToyRuns, name: str) -> None:
    """None, one, and three words that the vocabulary lacks."""
    model = toys.predictor(name)
    sources = ["my name is hello", "my name is Zaphod", "Zaphod , Arthur and Trillian", "Arthur lives in Zaphod", "my name is my"]
    together, backwards = model.predict(sources, beam_size=3, n_best=3), model.predict(sources[::-1], beam_size=3, n_best=3)[::-1]
    for source, one, other in zip(sources, together, backwards, strict=True):
        (alone,) = model.predict([source], beam_size=3, n_best=3)
        for answer in (one, other):
            assert [entry.text for entry in answer.n_best] == [entry.text for entry in alone.n_best]
            assert answer.score == pytest.approx(alone.score, abs=1e-5)
    pairs = [(source, answer.text) for source, answer in zip(sources, together, strict=True)]
    for pair, score in zip(pairs, model.score(pairs), strict=True):
        assert score.score == pytest.approx(model.score([pair])[0].score, abs=1e-5)


def test_a_word_that_was_not_in_the_source_is_unknown_all_the_same(toys: ToyRuns) -> None:
    model = toys.predictor("names")
    copied, unknown = model.score([("my name is Zaphod", "hello Zaphod"), ("my name is Zaphod", "hello Nobody")])
    assert unknown.tokens == ["hello", "Nobody", "</s>"]
    assert copied.score > unknown.score + 1


def test_case_and_form_of_what_is_copied_are_those_of_the_line(toys: ToyRuns) -> None:
    model = data_of(toys.predictor("names"), lowercase=True)
    decomposed = unicodedata.normalize("NFD", "Zürich")
    answers = model.predict(["MY NAME IS McCoy", f"My Name Is {decomposed}", f"MCCOY lives in {decomposed}"])
    assert [answer.text for answer in answers] == ["hello McCoy", f"hello {decomposed}", f"in {decomposed} there is MCCOY"]
    for answer, score in zip(answers, model.score([(answer.source, answer.text) for answer in answers]), strict=True):
        assert score.score == pytest.approx(answer.score, abs=1e-4)
        assert score.tokens == answer.tokens


def test_a_copy_is_right_in_whatever_case_it_was_typed(toys: ToyRuns, tmp_path: Path) -> None:
    model = data_of(toys.predictor("names"), lowercase=True)
    pairs = read_for(
        model, [write_pairs(tmp_path / "t.tsv", [("My name is McCoy", "Hello MCCOY"), ("A lives in B", "in b there is a")])]
    )
    assert evaluate(model, pairs)["metrics"]["exact_match"]["score"] == 100


def test_a_long_source_is_copied_in_pieces(toys: ToyRuns) -> None:
    model = data_of(toys.predictor("names"), max_length=4)
    (answer,) = model.predict(["my name is Zaphod my name is Arthur"], too_long="split")
    assert answer.text == "hello Zaphod hello Arthur"
    (cut,) = model.predict(["my name is Zaphod Arthur"], too_long="truncate")
    assert (cut.text, cut.truncated) == ("hello Zaphod", True)


@pytest.mark.parametrize("name", NAMES)
def test_a_copying_run_is_evaluated(toys: ToyRuns, tmp_path: Path, name: str) -> None:
    model = toys.predictor(name)
    pairs = read_for(model, [write_pairs(tmp_path / "t.tsv", [*PAIRS, ("my name is Zaphod", "hello Nobody")])])
    result = evaluate(model, pairs)
    assert result["metrics"]["exact_match"]["score"] >= 100 * 28 / 31
    tokens = sum(len(model.coder.encode(source).ids) for source, _ in [*PAIRS, ("my name is Zaphod", "")])
    unknown = sum(model.coder.encode(source).ids.count(UNKNOWN) for source, _ in [*PAIRS, ("my name is Zaphod", "")])
    assert result["unknown_rate"]["source"] == pytest.approx(unknown / tokens)
    assert result["unknown_rate"]["target"] == pytest.approx(1 / sum(len(pair.target.split()) for pair in pairs))


def test_links_of_what_is_copied_lead_to_where_it_stood(toys: ToyRuns, tmp_path: Path) -> None:
    model = toys.predictor("names")
    (links,) = align_pairs(model, read_for(model, [write_pairs(tmp_path / "t.tsv", [TYPED[4]])]), words=True)
    assert {(3, 1), (0, 4)} <= links


def test_validation_sees_copies(toys: ToyRuns) -> None:
    events = (toys.path("names") / "metrics.jsonl").read_text()
    assert '"exact_match": 100.0' in events or '"exact_match": 9' in events
    assert "unknown in validation" in (toys.path("names") / "README.md").read_text()


# ---- training -----------------------------------------------------------------------------------------------------------


def settings(folder: Path, pairs: list[tuple[str, str]], **data: Any) -> Config:
    return Config.from_dict(
        {
            "data": {"train": write_pairs(folder / "train.tsv", pairs), **data},
            "tokenizer": {"kind": "word", "min_frequency": 3},
            "model": {**TINY, "architecture": "pointer-generator", "attention_size": 8},
            "training": {**QUICK, "steps": 2},
        }
    )


REPEATED = [("say Zaphod Arthur Zaphod", "Arthur Zaphod Ford"), ("say nothing", "nothing"), ("say say", "say say say")]


def test_targets_are_written_in_the_ids_of_their_own_source(tmp_path: Path) -> None:
    prepared = prepare(settings(tmp_path, REPEATED), None)
    size = prepared.target.size
    say = prepared.target.lookup(" say")
    assert prepared.train.copies == [[say, size, size + 1, size], [say, size], [say, say]]
    assert prepared.train.targets == [[size + 1, size, UNKNOWN], [size], [say, say, say]]
    batch = prepared.train.corpus().batch([0, 1])
    assert batch.source.extra == 2
    assert int(batch.outputs.max()) == size + 1
    rows = {row[0]: row[1:] for row in prepared.report.rows()}
    assert rows["unknown in training"][1] == "14.29 %", "what can be copied is not unknown"


def test_what_is_cut_off_can_no_longer_be_copied(tmp_path: Path) -> None:
    prepared = prepare(settings(tmp_path, REPEATED, max_length=2, too_long="truncate"), None)
    size = prepared.target.size
    assert prepared.train.copies is not None
    assert prepared.train.copies[0] == [prepared.target.lookup(" say"), size]
    assert prepared.train.targets[0] == [UNKNOWN, size]
    eyeline.train(settings(tmp_path, REPEATED, max_length=2, too_long="truncate"), tmp_path / "run")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", ["character", "bpe", "unigram", "word", "whitespace-symbols"])
def test_every_tokenizer_can_be_copied_from(tmp_path: Path, kind: str, shared: bool) -> None:
    config = settings(tmp_path, [*named(20, 3), *REPEATED])
    tokenizer = {"kind": kind, "shared": shared, "min_frequency": 2, "size": 60}
    eyeline.train(Config.from_dict({**config.to_dict(), "tokenizer": tokenizer}), tmp_path / "run")
    model = eyeline.load(tmp_path / "run")
    answers = model.predict(["é ü ñ", "Zaphod", "x"], beam_size=3, n_best=3)
    for answer in answers:
        for entry in answer.n_best:
            if entry.finished and "<unk>" not in entry.text:
                assert model.score([(answer.source, entry.text)])[0].score <= 0


def test_features_stand_beside_what_is_copied(tmp_path: Path) -> None:
    pairs: Any = [("walk", "walked", "V;PST"), ("ñandú", "ñandús", "N;PL")]
    config = settings(tmp_path, pairs, columns=["source", "target", "features"])
    eyeline.train(
        Config.from_dict({**config.to_dict(), "tokenizer": {"kind": "character", "min_frequency": 2}}), tmp_path / "run"
    )
    model = eyeline.load(tmp_path / "run")
    read = model.read("ñx\tN;PL")
    assert read.copies is not None
    assert read.copies[:2] == [UNKNOWN, UNKNOWN]
    assert model.coder.decode([read.copies[2], read.copies[3]], read) == "ñx"
    assert model.predict(["ñandú\tN;PL"])[0].source_tokens == ["N", "PL", *"ñandú", "</s>"]


def test_predicting_changes_nothing(toys: ToyRuns) -> None:
    model = toys.predictor("names")
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    one, other = model.predict([TYPED[4][0]]), model.predict([TYPED[4][0]])
    assert one == other
    assert all(torch.equal(weight, before[name]) for name, weight in model.model.state_dict().items())
