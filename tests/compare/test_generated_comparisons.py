"""Comparisons that make their own pairs: what is long, what is held out, and that their settings hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyeline.cli.compare import GENERATED
from eyeline.compare import tasks
from eyeline.compare.preparing import points
from eyeline.config_compare import Comparison
from eyeline.data.generated.long_numerals import long_numerals
from eyeline.errors import ConfigError
from eyeline.metrics import parse_links
from eyeline.text.pairs import read_pairs


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("PAIRS", 60), ("VALID", 10), ("TEST_OF_A_LENGTH", 5)):
        monkeypatch.setattr(tasks, name, count)


def test_the_command_knows_all_of_them() -> None:
    assert set(GENERATED) == set(tasks.TASKS)


@pytest.mark.parametrize("name", GENERATED)
def test_training_is_short_and_tests_are_even_over_their_lengths(tmp_path: Path, name: str) -> None:
    task = tasks.TASKS[name]
    comparison = Comparison.from_dict(tasks.task_settings(name, tmp_path, None, None)).checked()
    parts = {
        part: list(read_pairs(getattr(comparison.data, part), comparison.data.columns)) for part in ("train", "valid", "test")
    }
    size = {
        part: [len(pair.source.split()) if name == "reversal" else len(pair.source) for pair in pairs]
        for part, pairs in parts.items()
    }
    assert max(size["train"]) <= task.train_max_length
    assert max(size["valid"]) <= task.train_max_length
    for below, edge in zip([0, *task.test_lengths], task.test_lengths, strict=False):
        assert sum(below < length <= edge for length in size["test"]) == 5
    assert all(pair.alignment for pair in parts["test"])
    assert not points(comparison)
    if name == "numerals":
        held_out = {pair.target for pair in parts["test"] + parts["valid"]}
        assert not held_out & {pair.target for pair in parts["train"]}
        assert {len(pair.target) for pair in parts["train"]} >= set(range(3, 13)), "short sources have long numbers too"


def test_pairs_that_are_there_are_kept(tmp_path: Path) -> None:
    tasks.task_settings("reversal", tmp_path, None, None)
    path = tmp_path / "data" / "reversal.train.tsv"
    before = path.stat().st_mtime_ns
    tasks.task_settings("reversal", tmp_path, None, None)
    assert path.stat().st_mtime_ns == before


def test_other_lengths(tmp_path: Path) -> None:
    values = tasks.task_settings("reversal", tmp_path, 4, [2, 4, 8])
    assert (values["train_max_length"], values["test_lengths"]) == (4, [2, 4, 8])
    lengths = [len(pair.source.split()) for pair in read_pairs(values["data"]["test"], ["source", "target", "-"])]
    assert sorted(lengths)[-5:] > [4] * 5


def test_long_numerals_keep_to_their_lengths_and_leave_out_what_is_taken() -> None:
    pairs = long_numerals(40, 1, languages=("en", "de"), shortest=30, longest=50)
    assert all(30 <= len(pair.source) <= 50 for pair in pairs)
    assert len({pair.source for pair in pairs}) == 40
    assert pairs == long_numerals(40, 1, languages=("en", "de"), shortest=30, longest=50)
    taken = {int(pair.target) for pair in pairs}
    others = long_numerals(40, 1, languages=("en", "de"), shortest=30, longest=50, taken=taken)
    assert not taken & {int(pair.target) for pair in others}
    for pair in pairs:
        links = parse_links(pair.alignment).possible
        assert all(i < len(pair.source) and j < len(pair.target) for i, j in links)


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(ConfigError, match="only 0 different pairs could be drawn"):
        long_numerals(1, 1, languages=("en",), shortest=1000, longest=2000)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "replications" / "compare").glob("*.yaml")), ids=lambda p: p.stem
)
def test_the_comparisons_of_the_replications_can_be_run(path: Path) -> None:
    files = [f"data.{part}={part}.tsv" for part in ("train", "valid", "test")]
    Comparison.from_yaml(path, files).with_ladder(False).checked()


def test_the_rungs_of_a_task_are_of_like_sizes(tmp_path: Path) -> None:
    comparison = Comparison.from_dict(tasks.task_settings("reversal", tmp_path, None, None)).checked()
    models = {rung.name: comparison.config(rung, 1).model.model_dump() for rung in comparison.chosen()}
    assert (models["seq2seq"]["encoder_size"], models["bahdanau"]["encoder_size"], models["transformer"]["size"]) == (128, 64, 64)
    assert {model["dropout"] for model in models.values()} == {0.1}
