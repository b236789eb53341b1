"""What a user may ask of predictions in Python: prefixes, constraints, samples, ensembles, alternatives, unknown words
replaced."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eyeline
from eyeline.errors import ConfigError, DataError, UserError
from eyeline.metrics.chrf_pairs import chrf_pairs
from eyeline.predictor import SearchOptions, Term
from eyeline.predictor.inputs import resolve, sampled_from
from eyeline.predictor.terms import check_terms, read_terms
from toy_runs import ToyRuns

LINES = ["a b c", "d", "f e d c b a f", "a"]


def texts(answers: list[Any]) -> list[str]:
    return [answer.text for answer in answers]


# ---- prefixes, constraints, lengths -------------------------------------------------------------------------------------


def test_prefixes_of_any_length_in_one_call(toys: ToyRuns) -> None:
    model, prefixes = toys.predictor("luong"), ["f f", "", "a b c d e f a b c d e f", "b"]
    answers = model.predict(LINES, prefixes=prefixes)
    for answer, prefix, line in zip(answers, prefixes, LINES, strict=True):
        assert answer.text.startswith(prefix)
        assert model.predict([line], prefixes=[prefix])[0].text == answer.text
    assert answers[1].text == "d"
    scored = model.score([(answer.source, answer.text) for answer in answers])
    assert [one.score for one in scored] == pytest.approx([answer.score for answer in answers], abs=1e-4)


@pytest.mark.parametrize(
    ("prefixes", "named"), [(["a"], "there are 1 prefixes"), (["a"] * 5, "there are 4 sources"), ("a", "list")]
)
def test_a_prefix_for_each_source(toys: ToyRuns, prefixes: Any, named: str) -> None:
    with pytest.raises(UserError, match=named):
        toys.predictor("luong").predict(LINES, prefixes=prefixes)


def test_what_is_unknown_in_a_prefix_stands_as_it_was_typed(toys: ToyRuns) -> None:
    (answer,) = toys.predictor("luong").predict(["a b"], prefixes=["Zyx123 b"])
    assert answer.text.startswith("Zyx123 b")


def test_a_terminology_holds_where_its_terms_stand(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    terms = [{"source": "d", "require": "f f"}, {"source": "a b", "forbid": ["c b", "d"]}, {"line": 4, "require": ["e e", "b"]}]
    answers = model.predict(LINES, constraints=terms, max_length=12)
    assert "f f" in answers[1].text
    assert "f f" in answers[2].text
    assert "f f" not in answers[0].text
    assert "c b" not in answers[0].text
    assert "e e" in answers[3].text
    assert "b" in answers[3].text
    assert model.predict(["a"], constraints=terms)[0].text == "a"  # it is the first line here
    plain = model.predict(LINES, constraints=[{"source": "no such", "require": "b"}])
    assert texts(plain) == texts(model.predict(LINES))


@pytest.mark.parametrize(
    ("terms", "named"),
    [
        ([{"require": "Zyx123"}], r"does not hold what is required: Zyx123 \(sources:1\)"),
        ([{"require": "a b"}, {"source": "a", "forbid": "b"}], "what is required is forbidden: a b"),
        ([{"requires": "a"}], r"not a key of a term: requires \(constraints\[0\]\); did you mean 'require'"),
        ([{"source": "a"}], "requires or forbids something"),
        ([{"require": ""}], "a phrase is a string"),
        ([{"require": "a", "line": 0}], "a line is a number from 1"),
        (["a"], "an object is wanted"),
    ],
)
def test_constraints_that_cannot_be(toys: ToyRuns, terms: Any, named: str) -> None:
    with pytest.raises(UserError, match=named):
        toys.predictor("luong").predict(LINES, constraints=terms)


def test_terms_are_read_from_columns_and_json(tmp_path: Path) -> None:
    columns, objects = tmp_path / "terms.tsv", tmp_path / "terms.jsonl"
    columns.write_text("Haus\thouse\n\nKatze*\tcat\trequire\n\tdog\tforbid\n")
    objects.write_text('{"source": "Haus", "require": "house", "line": 2}\n{"forbid": ["dog", "hound"]}\n')
    assert read_terms(columns) == [Term("Haus", ("house",)), Term("Katze*", ("cat",)), Term("", (), ("dog",))]
    assert check_terms(str(objects)) == [Term("Haus", ("house",), (), 2), Term("", (), ("dog", "hound"))]
    for bad in ("Haus\n", "a\tb\tc\n", "a\t\n", "a\tb\tforbid\td\n"):
        columns.write_text("x\ty\n" + bad)
        with pytest.raises(DataError, match=r"terms\.tsv:2"):
            read_terms(columns)


@pytest.mark.parametrize(
    ("term", "text", "held"),
    [
        ("Haus", "ein Haus, da", True),
        ("Haus", "ein Hausboot", False),
        ("Haus", "ein Bauhaus Haus", True),
        ("Haus*", "ein Hausboot", True),
        ("Haus*", "Bauhaus", False),
        ("rotes Haus", "ein rotes Haus", True),
        ("집", "집", True),
        ("집*", "집에", True),
        ("C++", "in C++ and C", True),
        ("C++", "in C and D", False),
    ],
)
def test_terms_are_whole_words(term: str, text: str, held: bool) -> None:
    assert Term(term, ("x",)).matches(text, 1) is held


def test_bounds_by_the_length_of_the_source(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    for answer, line in zip(model.predict(LINES, max_length_ratio=0.5), LINES, strict=True):
        assert len(answer.text.split()) <= max(1, len(line.split()) // 2)
    for answer, line in zip(model.predict(LINES, min_length_ratio=1.5), LINES, strict=True):
        assert len(answer.text.split()) >= math.ceil(1.5 * len(line.split()))
    both = model.predict(LINES, min_length_ratio=3.0, max_length=4)
    assert [len(answer.text.split()) for answer in both] == [4, 3, 4, 3]
    with pytest.raises(ConfigError, match="min_length_ratio 2 is more than max_length_ratio 1"):
        model.predict(LINES, min_length_ratio=2, max_length_ratio=1)


def test_a_wu_penalty_ranks_and_score_says_the_same(toys: ToyRuns) -> None:
    model, options = toys.predictor("luong"), {"length_normalization": "wu", "length_penalty": 0.7}
    answers = model.predict(LINES, n_best=4, **options)
    for answer in answers:
        length = len(answer.tokens)
        assert answer.normalized_score == pytest.approx(answer.score / ((5 + length) / 6) ** 0.7)
    scored = model.score([(answer.source, answer.text) for answer in answers], **options)
    assert [one.normalized_score for one in scored] == pytest.approx([a.normalized_score for a in answers], abs=1e-4)
    with pytest.raises(ConfigError, match="length_normalization"):
        model.predict(LINES, length_normalization="wo")


def test_groups_reach_the_search(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    (plain,), (groups,) = (model.predict(["a b c d"], beam_size=4, n_best=4, diverse_groups=g, diversity=9.0) for g in (1, 4))
    assert len({one.tokens[0] for one in groups.n_best}) == 4 > len({one.tokens[0] for one in plain.n_best})
    with pytest.raises(ConfigError, match="diverse_groups=3, beam_size=4"):
        model.predict(LINES, beam_size=4, diverse_groups=3)


# ---- samples ------------------------------------------------------------------------------------------------------------


def test_samples_follow_from_seed_and_source_alone(toys: ToyRuns) -> None:
    model, options = toys.predictor("bahdanau"), {"sampling": "temperature=3", "max_length": 9}
    together = model.predict([*LINES, "", "a"], seed=5, **options)
    for line, answer in zip([*LINES, "", "a"], together, strict=True):
        assert model.predict([line], seed=5, **options)[0].tokens == answer.tokens
    several = model.predict(LINES, seed=5, n_best=6, batch_tokens=10, **options)
    assert [one.n_best[0].tokens for one in several] == [one.tokens for one in together[:4]]
    assert texts(model.predict(LINES, seed=6, **options)) != texts(together[:4])
    assert texts(model.predict(LINES, sampling="top-k=1")) == texts(model.predict(LINES, beam_size=1))
    best = several[0]
    assert model.score([("a b c", best.text)])[0].score == pytest.approx(best.score, abs=1e-4) or not best.finished


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("top-q=3", "did you mean 'top-"),
        ("top-k", "not a way of sampling"),
        ("top-k=x", "a number is wanted"),
        ("typical=2", "typical"),
    ],
)
def test_ways_of_sampling_that_are_none(text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        sampled_from(text)


def test_samples_do_not_go_with_beams(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    with pytest.raises(ConfigError, match="beam_size=4"):
        model.predict(LINES, sampling="", beam_size=4)
    with pytest.raises(ConfigError, match="n_best=5, mbr=3"):
        model.predict(LINES, mbr=3, n_best=5)
    with pytest.raises(ConfigError, match="want a beam"):
        model.predict(LINES, sampling="", constraints=[{"require": "a"}])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc d", max_size=12), min_size=1, max_size=5))
def test_chrf_of_pairs_is_that_of_sacrebleu(several: list[str]) -> None:
    from sacrebleu.metrics import CHRF

    scorer, ours = CHRF(), chrf_pairs(several)
    for i, one in enumerate(several):
        for j, other in enumerate(several):
            same = "".join(one.split()) == "".join(other.split())
            assert ours[i, j] == pytest.approx(100.0 if same else scorer.sentence_score(one, [other]).score, abs=1e-9)


def test_the_least_risk_is_that_of_the_samples(toys: ToyRuns) -> None:
    model, options = toys.predictor("bahdanau"), {"sampling": "temperature=2", "seed": 3, "max_length": 8}
    samples = model.predict(["a b c d"], n_best=20, **options)[0].n_best
    (chosen,) = model.predict(["a b c d"], mbr=20, n_best=3, **options)
    worth = chrf_pairs([one.text for one in samples]).mean(1)
    finished = [value if one.finished else -1 for value, one in zip(worth, samples, strict=True)]
    assert chosen.text == samples[finished.index(max(finished))].text
    assert len({tuple(one.tokens) for one in chosen.n_best}) == 3


# ---- ensembles ----------------------------------------------------------------------------------------------------------


def test_an_ensemble_says_the_mean_and_scores_agree(toys: ToyRuns) -> None:
    first, again = toys.path("luong"), toys.path("luong-again")
    pairs = [("a b c", "c b a"), ("d", "e")]
    alone = [[one.token_scores for one in toys.predictor(name).score(pairs)] for name in ("luong", "luong-again")]
    both = eyeline.load(first, ensemble=[again], ensemble_mean="arithmetic")
    for one, left, right in zip(both.score(pairs), *alone, strict=True):
        mean = [math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(left, right, strict=True)]
        assert one.token_scores == pytest.approx(mean, abs=1e-4)
    for mean in ("log", "arithmetic"):
        both = eyeline.load(first, ensemble=[again], ensemble_mean=mean)
        for options in ({"beam_size": 1}, {"n_best": 4}):
            answers = both.predict(LINES, **options)
            assert texts(answers) == ["c b a", "d", "f a b c d e f", "a"]
            scored = both.score([(answer.source, answer.text) for answer in answers])
            assert [one.score for one in scored] == pytest.approx([answer.score for answer in answers], abs=1e-4)
            assert answers[0].alignment is not None
    twice = eyeline.load(first, ensemble=[first])
    for mine, theirs in zip(twice.predict(LINES, n_best=3), toys.predictor("luong").predict(LINES, n_best=3), strict=True):
        assert mine.tokens == theirs.tokens
        assert mine.score == pytest.approx(theirs.score, abs=1e-4)


def test_ensembles_that_cannot_be(toys: ToyRuns) -> None:
    for other, named in (("strangers", "the source vocabularies differ: symbol 4 is"), ("letters", "outputs are")):
        with pytest.raises(ConfigError, match=named):
            eyeline.load(toys.path("luong"), ensemble=[toys.path(other)])
    with pytest.raises(ConfigError, match=r"ensemble_mean=lag\); did you mean 'log'"):
        eyeline.load(toys.path("luong"), ensemble=[toys.path("luong")], ensemble_mean="lag")


# ---- unknown words (O08) ------------------------------------------------------------------------------------------------


def test_unknown_words_are_replaced_by_what_was_looked_at(toys: ToyRuns) -> None:
    model, long = toys.predictor("strangers"), " ".join(["Zyx123", *["and"] * 39])
    plain = model.predict(["Zyx123 and McAdam", long])
    assert "<unk>" in plain[0].text
    for sources in (["Zyx123 and McAdam"], ["Zyx123 and McAdam", long]):
        answer = model.predict(sources, replace_unknown=True)[0]
        for before, after in zip(plain[0].text.split(), answer.text.split(), strict=True):
            assert after == before if before != "<unk>" else after in ("Zyx123", "and", "McAdam")
        assert answer.score == pytest.approx(plain[0].score, abs=1e-4)
    silent = model.predict(["Zyx123 and McAdam"], replace_unknown=True, attention=False)[0]
    assert silent.text == answer.text
    assert silent.alignment is None
    assert texts(model.predict(["Zyx123 and McAdam"], attention=False)) == [plain[0].text]
    words = dict.fromkeys(("Zyx123", "and", "McAdam"), "Herr X")
    assert "Herr X" in model.predict(["Zyx123 and McAdam"], replace_unknown=True, dictionary=words)[0].text


def test_replacing_wants_attention_only_where_something_is_unknown(toys: ToyRuns) -> None:
    assert texts(toys.predictor("seq2seq").predict(["a b"], replace_unknown=True)) == texts(
        toys.predictor("seq2seq").predict(["a b"])
    )
    with pytest.raises(ConfigError, match="replace_unknown=true"):
        toys.predictor("seq2seq").predict(["a b"], replace_unknown=True, prefixes=["Zyx123"])
    with pytest.raises(ConfigError, match="replace_unknown is wanted"):
        toys.predictor("luong").predict(["a b"], dictionary={})


# ---- alternatives -------------------------------------------------------------------------------------------------------


def test_alternatives_at_a_position(toys: ToyRuns) -> None:
    model = toys.predictor("luong")
    found = model.alternatives("a b c", "c", count=4)
    assert found[0].text == "c b a"
    assert all(one.tokens[0] == "c" for one in found)
    nexts = [one.tokens[1] for one in found]
    assert len(set(nexts)) == 4
    scores = [one.token_scores[1] for one in found]
    assert scores == sorted(scores, reverse=True)
    for one in found:
        assert model.score([("a b c", one.text)])[0].score == pytest.approx(one.score, abs=1e-4) or not one.finished
    assert model.alternatives(" ") == []
    assert {tuple(one.tokens[:1]) for one in model.alternatives("a", count=50)} >= {("</s>",), ("a",)}


# ---- settings -----------------------------------------------------------------------------------------------------------


def test_a_runs_own_settings_count_where_nothing_is_asked(toys: ToyRuns) -> None:
    config = toys.predictor("luong").config
    changed = {"length_normalization": "wu", "diverse_groups": 5, "diversity": 2.0, "max_length_ratio": 2.5}
    own = config.model_copy(update={"search": config.search.model_copy(update=changed)})
    found = resolve(own, SearchOptions())
    assert {name: getattr(found, name) for name in changed} == changed
    assert resolve(own, SearchOptions(diverse_groups=1)).diverse_groups == 1
    assert json.loads(json.dumps(own.to_dict()))["search"]["length_normalization"] == "wu"
