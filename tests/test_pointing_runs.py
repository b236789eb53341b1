"""Runs whose outputs are positions: numbers or symbols in, positions out, whatever stands beside them; all else is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import eyeline
from eyeline.config import Config
from eyeline.errors import ConfigError, DataError, UserError
from eyeline.evaluation import align_pairs, alignment_matrix, describe, evaluate, read_for
from eyeline.runs import open_run
from toy_runs import QUICK, TINY, ToyRuns, letters_to_be_sorted, to_be_sorted

HELD_OUT = to_be_sorted(40, 7)
SOURCES = [pair["source"] for pair in HELD_OUT]
WANTED = [" ".join(map(str, pair["target"])) for pair in HELD_OUT]


def write(path: Path, pairs: Any) -> str:
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return str(path)


def config(folder: Path, pairs: Any, data: Any = (), tokenizer: Any = (), model: Any = (), **training: Any) -> Config:
    values = {
        "data": {"train": write(folder / "train.jsonl", pairs), **dict(data)},
        "model": {**TINY, "architecture": "pointer-network", "attention_size": 8, **dict(model)},
        "training": {**QUICK, "steps": 2, **training},
    }
    return Config.from_dict({**values, "tokenizer": dict(tokenizer)} if tokenizer else values)


# ---- numbers ------------------------------------------------------------------------------------------------------------


def test_points_are_sorted(toys: ToyRuns) -> None:
    answers = toys.predictor("points").predict(SOURCES)
    assert sum(answer.text == wanted for answer, wanted in zip(answers, WANTED, strict=True)) >= 34
    for answer, source in zip(answers, SOURCES, strict=True):
        assert answer.finished
        assert answer.tokens == [*answer.text.split(), "</s>"]
        assert len(answer.source_tokens) == len(source) + 1
        assert answer.alignment is not None
        for row, token in zip(answer.alignment[:-1], answer.tokens, strict=False):
            assert int(np.argmax(row)) == int(token), "attention is where it points"


def test_a_source_is_text_lists_arrays_or_tensors(toys: ToyRuns) -> None:
    points = SOURCES[0]
    forms = [
        points,
        np.array(points),
        torch.tensor(points, dtype=torch.float64),
        json.dumps(points),
        json.dumps({"source": points}),
    ]
    answers = toys.predictor("points").predict(forms)
    for answer in answers:
        assert answer.text == answers[0].text
        assert answer.score == pytest.approx(answers[0].score, abs=1e-6)
        assert answer.source_tokens == answers[0].source_tokens
    assert answers[0].source_tokens[0] == f"({points[0][0]:.3g}, {points[0][1]:.3g})"


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", ["points", "letters"])
def test_neighbours_and_batches_change_nothing_and_scores_are_those_of_the_search(toys: ToyRuns, name: str, beam: int) -> None:
    model = toys.predictor(name)
    sources: list[Any] = SOURCES[:12] if name == "points" else [source for source, _ in letters_to_be_sorted(12, 7)]
    together = model.predict(sources, beam_size=beam, n_best=beam)
    alone = [model.predict([source], beam_size=beam, n_best=beam)[0] for source in sources]
    few = model.predict(sources, beam_size=beam, n_best=beam, batch_tokens=5)
    for one, two, three in zip(together, alone, few, strict=True):
        assert (
            [entry.text for entry in one.n_best] == [entry.text for entry in two.n_best] == [entry.text for entry in three.n_best]
        )
        assert one.score == pytest.approx(two.score, abs=1e-5)
    given = [
        (source, entry.text) for source, one in zip(sources, together, strict=True) for entry in one.n_best if entry.finished
    ]
    said = [entry for one in together for entry in one.n_best if entry.finished]
    for score, entry in zip(model.score(given), said, strict=True):
        assert score.score == pytest.approx(entry.score, abs=1e-5)
        assert score.tokens == entry.tokens


def test_targets_may_be_lists(toys: ToyRuns) -> None:
    model = toys.predictor("points")
    given = [
        (SOURCES[0], HELD_OUT[0]["target"]),
        (np.array(SOURCES[0]), np.array(HELD_OUT[0]["target"])),
        (SOURCES[0], WANTED[0]),
    ]
    one, two, three = model.score(given)
    assert one.score == pytest.approx(two.score, abs=1e-6) == pytest.approx(three.score, abs=1e-6)


def test_blank_lines_stay_blank(toys: ToyRuns) -> None:
    answers = toys.predictor("points").predict(["", SOURCES[0], " \t"])
    assert [bool(answer.text) for answer in answers] == [False, True, False]
    assert toys.predictor("points").score([("", "")])[0].score == 0


def test_longer_sources_than_training_saw_are_answered(toys: ToyRuns) -> None:
    (answer,) = toys.predictor("points").predict([np.random.default_rng(1).random((12, 2))])
    assert sorted(map(int, answer.text.split())) == list(range(12)), "every position once, since they are distinct"


def test_a_run_of_numbers_goes_on(tmp_path: Path) -> None:
    """The width that the pairs decided is in its config, and a config without it is the same."""
    given = config(tmp_path, to_be_sorted(20, 1))
    eyeline.train(given, tmp_path / "run")
    assert open_run(tmp_path / "run").config.numbers == 2
    assert "element_size: 2" in (tmp_path / "run" / "config.yaml").read_text()
    longer = config(tmp_path, to_be_sorted(20, 1), steps=4)
    run = eyeline.train(longer, tmp_path / "run", resume=True)
    assert run.config.numbers == 2
    assert describe(tmp_path / "run")["steps"] == 4
    again = Config.from_yaml(tmp_path / "run" / "config.yaml")
    eyeline.train(again, tmp_path / "run", resume=True, more_steps=1)
    assert describe(tmp_path / "run")["steps"] == 5


def test_what_a_run_of_numbers_is(toys: ToyRuns) -> None:
    facts = describe(toys.path("points"))
    assert facts["tokenizer"] == {"source": "vectors of 2", "target": "positions"}
    card = (toys.path("points") / "README.md").read_text()
    assert "source vectors of 2, target positions" in card
    assert "unknown in training    -                -" in card


# ---- symbols ------------------------------------------------------------------------------------------------------------


def test_letters_are_sorted(toys: ToyRuns) -> None:
    pairs = letters_to_be_sorted(40, 7)
    answers = toys.predictor("letters").predict([source for source, _ in pairs])
    assert sum(answer.text == target for answer, (_, target) in zip(answers, pairs, strict=True)) >= 36
    assert answers[0].source_tokens == [*pairs[0][0].split(), "</s>"]


def test_symbols_are_cut_at_blanks_unless_asked_otherwise(toys: ToyRuns, tmp_path: Path) -> None:
    assert toys.predictor("letters").run.source.kind == "whitespace-symbols"
    pairs = [{"source": "cab", "target": [1, 2, 0]}, {"source": "ba", "target": [1, 0]}]
    run = eyeline.train(config(tmp_path, pairs, tokenizer={"kind": "character"}), tmp_path / "run")
    assert run.source.kind == "character"
    assert len(eyeline.load(tmp_path / "run").predict(["abc"], attention=True)[0].source_tokens) == 4


# ---- measured -----------------------------------------------------------------------------------------------------------


def test_a_pointing_run_is_evaluated(toys: ToyRuns, tmp_path: Path) -> None:
    model = toys.predictor("points")
    pairs = read_for(model, [write(tmp_path / "test.jsonl", HELD_OUT)])
    result = evaluate(model, pairs, geometry="tsp")
    assert result["n"] == 40
    assert list(result["metrics"]) == ["exact_match", "symbol_error_rate"]
    right = sum(a.text == b for a, b in zip(model.predict(SOURCES), WANTED, strict=True))
    assert result["metrics"]["exact_match"]["score"] == pytest.approx(100 * right / 40)
    assert result["unknown_rate"] == {"source": 0.0, "target": 0.0}
    assert result["unfinished"] == 0
    tour = result["geometry"]["metrics"]
    assert tour["invalid"]["score"] == 0
    assert tour["exact_match"]["score"] == result["metrics"]["exact_match"]["score"]
    assert sum(bucket["n"] for bucket in result["by_length"]) == 40
    assert result["by_length"][0]["min"] == 2


def test_geometry_is_of_numbers(toys: ToyRuns) -> None:
    with pytest.raises(ConfigError, match="geometry is measured where positions of numbers are pointed at"):
        evaluate(toys.predictor("letters"), [], geometry="sorting")
    with pytest.raises(ConfigError, match=r"no such task \(geometry=hull\); "):
        evaluate(toys.predictor("points"), [], geometry="hull")


def test_pointing_is_an_alignment(toys: ToyRuns, tmp_path: Path) -> None:
    for name, pairs in (("points", HELD_OUT), ("letters", [{"source": s, "target": t} for s, t in letters_to_be_sorted(9, 7)])):
        model = toys.predictor(name)
        read = read_for(model, [write(tmp_path / "pairs.jsonl", pairs)])
        links = align_pairs(model, read, words=True)
        pointed = [frozenset((int(place), row) for row, place in enumerate(pair.target.split())) for pair in read]
        assert sum(mine == theirs for mine, theirs in zip(links, pointed, strict=True)) >= 0.8 * len(read)
    matrix = alignment_matrix(toys.predictor("points"), json.dumps(SOURCES[0]))
    assert len(matrix.source_tokens) == len(SOURCES[0]) + 1
    given = alignment_matrix(toys.predictor("points"), json.dumps(SOURCES[0]), "1 0")
    assert list(given.target_tokens) == ["1", "0", "</s>"]


# ---- what cannot be -----------------------------------------------------------------------------------------------------

GOOD = {"source": [[1, 2], [3, 4]], "target": [1, 0]}


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"source": [[1, 2]], "target": [1]}, "position 1 is beyond a source of 1 elements"),
        ({"source": [[1, 2], [1, 2]], "target": [0, 0]}, "position 0 comes twice, and model.distinct=true forbids it"),
        ({"source": [1, 2], "target": [0]}, "elements of 1 number where the model reads 2"),
        ({"source": [[1, 2], [3]], "target": [0]}, "element 1 has 1 number, and those before it 2"),
        ({"source": [[1, float("nan")]], "target": [0]}, "element 0 holds nan"),
        ({"source": [], "target": [0]}, "an empty source has no positions"),
        ({"source": "a b", "target": [0]}, "not a JSON list of numbers"),
        ({"source": [[1, 2]], "target": "zero"}, "'zero' is not a position"),
        ({"source": [[1, 2]], "target": [0], "features": ["V"]}, "features"),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_pair_that_cannot_be_is_named_or_counted(tmp_path: Path, bad: Any, what: str, first: bool) -> None:
    pairs = [bad, GOOD] if first else [GOOD, bad]
    given = config(tmp_path, pairs, model={"distinct": True, "element_size": 2})
    place = rf"train\.jsonl:{1 if first else 2}\)"
    with pytest.raises(DataError, match=rf"{what}.*{place}; --on-bad-line skip".replace("'", ".")):
        eyeline.train(given, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    given = config(tmp_path, pairs, data={"on_bad_line": "skip"}, model={"distinct": True, "element_size": 2})
    run = eyeline.train(given, tmp_path / "run")
    assert "| training pairs | 1 from" in (run.path / "README.md").read_text()


def test_pairs_that_cannot_be_measured_are_named_or_left_out(toys: ToyRuns, tmp_path: Path) -> None:
    model, path = toys.predictor("points"), write(tmp_path / "p.jsonl", [GOOD, {"source": [[1, 2]], "target": [3]}])
    with pytest.raises(DataError, match=r"position 3 is beyond a source of 1 elements \(.*p\.jsonl:2\)"):
        read_for(model, [path])
    told: list[str] = []
    assert len(read_for(model, [path], on_bad_line="skip", warn=told.append)) == 1
    assert len(told) == 1


def test_empty_targets_are_left_out_of_training(tmp_path: Path) -> None:
    run = eyeline.train(config(tmp_path, [GOOD, {"source": [[1, 2]], "target": []}]), tmp_path / "run")
    assert "left out, empty target: 1" in (run.path / "README.md").read_text()


@pytest.mark.parametrize(
    ("data", "tokenizer", "what"),
    [
        ({"lowercase": True}, {}, "data.lowercase makes no sense with sources of numbers"),
        ({"normalization": "jamo"}, {}, "data.normalization: jamo makes no sense with sources of numbers"),
        ({}, {"source": {"kind": "bpe"}}, "tokenizer.source makes no sense with sources of numbers"),
        ({}, {"target": {"kind": "bpe"}}, "tokenizer.target makes no sense with outputs that are positions"),
        ({}, {"shared": True}, "tokenizer.shared makes no sense"),
        ({"too_long": "truncate"}, {}, "data.too_long: truncate makes no sense"),
        ({"columns": "source,target,features"}, {}, "data.columns: features makes no sense"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, data: Any, tokenizer: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        eyeline.train(config(tmp_path, [GOOD], data=data, tokenizer=tokenizer), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_lengths_of_pointing(toys: ToyRuns, tmp_path: Path) -> None:
    pairs = [GOOD, {"source": [[0, 0]] * 5, "target": [4]}]
    with pytest.raises(DataError, match=r"more than data\.max_length=4 tokens .*:2\); raise data\.max_length, or set .* to skip"):
        eyeline.train(config(tmp_path, pairs, data={"max_length": 4}), tmp_path / "run")
    eyeline.train(config(tmp_path, pairs, data={"max_length": 4, "too_long": "skip"}), tmp_path / "run")
    model = eyeline.load(tmp_path / "run")
    with pytest.raises(DataError, match=r"5 tokens is longer than data\.max_length=4 \(sources:1\)"):
        model.predict([pairs[1]["source"]], too_long="error")
    (cut,) = model.predict([pairs[1]["source"]], too_long="truncate")
    assert cut.truncated
    assert len(cut.source_tokens) == 5
    assert all(int(place) < 4 for place in cut.text.split())
    with pytest.raises(ConfigError, match=r"cannot be found piece by piece \(too_long=split\)"):
        model.predict([pairs[1]["source"]], too_long="split")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("0.5 1", r"not a JSON list of numbers: .* \(sources:1\)"),
        ("[[1]]", r"elements of 1 number where the model reads 2 \(sources:1\)"),
        ([[1, 2], [3]], r"element 1 has 1 number, and those before it 2 \(sources\[0\]\)"),
        ([], r"an empty source has no positions \(sources:1\)"),
        (7, r"a source of numbers is a list of elements, not int \(sources\[0\]\)"),
    ],
)
def test_a_source_that_cannot_be_is_named(toys: ToyRuns, source: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        toys.predictor("points").predict([source])


def test_a_pair_that_cannot_be_scored_is_named(toys: ToyRuns) -> None:
    for name, source in (("points", [[1, 2]]), ("letters", "a")):
        with pytest.raises(UserError, match=r"position 1 is beyond a source of 1 elements \(pairs\[1\]\)"):
            toys.predictor(name).score([(source, "0"), (source, "1")])
    with pytest.raises(UserError, match=r"0\.5 is not a position \(pairs\[0\]\[1\]\)"):
        toys.predictor("points").score([([[1, 2]], [0.5])])
    with pytest.raises(UserError, match=r"a string is wanted, not list \(sources\[0\]\)"):
        toys.predictor("letters").predict([["a", "b"]])
