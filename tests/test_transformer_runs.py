"""A Transformer from pairs to answers: it learns where things are, and says so when it is asked for more than its table holds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import eyeline
from eyeline.errors import ConfigError, DataError
from eyeline.evaluation import alignment_matrix
from eyeline.predictor import Predictor
from eyeline.training.reporting import Reporter
from toy_runs import NEVER, reversal, write_pairs

TINY: dict[str, Any] = {
    "architecture": "transformer",
    "size": 32,
    "heads": 4,
    "feedforward_size": 64,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "dropout": 0.0,
    "positions": "learned",
    "max_positions": 16,
}


def trained(folder: Path, pairs: list[tuple[str, str]], steps: int, **data: Any) -> Predictor:
    config = {
        "data": {
            "train": write_pairs(folder / "train.tsv", pairs),
            "valid": write_pairs(folder / "valid.tsv", pairs[:40]),
            **data,
        },
        "tokenizer": {"kind": "whitespace-symbols"},
        "model": TINY,
        "training": {
            "steps": steps,
            "batch_tokens": 1024,
            "learning_rate": 0.005,
            "schedule": "linear",
            "warmup_steps": 1 if steps == 1 else 20,
            "validate_every": NEVER,
            "checkpoint_every": NEVER,
            "metric": "exact_match",
        },
    }
    quiet = Reporter(-1, Console(file=io.StringIO()))
    eyeline.train(eyeline.Config.from_dict(config), folder / "run", reporter=quiet)
    return eyeline.load(folder / "run")


@pytest.fixture(scope="module")
def reverser(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return trained(tmp_path_factory.mktemp("transformer"), reversal(1000, 1), 300)


def test_it_learns_where_things_are(reverser: Predictor) -> None:
    """Reversal needs every position; the attention of a right answer runs from the end to the beginning."""
    unseen = reversal(100, 3)
    answers = reverser.predict([source for source, _ in unseen], beam_size=3)
    assert sum(answer.text == target for answer, (_, target) in zip(answers, unseen, strict=True)) >= 85
    source = "a b c d e f"
    (alone,) = reverser.predict([source])
    assert alone.text == "f e d c b a"
    matrix = alignment_matrix(reverser, source)
    heaviest = [max(range(len(row)), key=row.__getitem__) for row in matrix.weights]
    assert heaviest[:6] == [5, 4, 3, 2, 1, 0]


def test_scores_are_those_of_predictions(reverser: Predictor) -> None:
    """Teacher forcing without a cache says what stepping with one said, beams and neighbours included."""
    sources = [source for source, _ in reversal(20, 4)]
    answers = reverser.predict(sources, beam_size=4, n_best=2)
    pairs = [(answer.source, other.text) for answer in answers for other in answer.n_best]
    wanted = [other.score for answer in answers for other in answer.n_best]
    assert [found.score for found in reverser.score(pairs)] == pytest.approx(wanted, abs=1e-4)


def test_more_than_the_table_holds(reverser: Predictor) -> None:
    """16 positions: 15 symbols and END. Longer lines are refused by name and place, or cut, or parted."""
    fits, long = " ".join("abcde" * 3), " ".join("abcde" * 4)
    reverser.predict([fits])
    with pytest.raises(DataError, match=r"a source of 20 tokens is longer than model\.max_positions=16 .*\(sources:2\)"):
        reverser.predict([fits, long])
    (cut,) = reverser.predict([long], too_long="truncate")
    assert cut.truncated
    assert len(cut.source_tokens) == 16
    (parted,) = reverser.predict([long], too_long="split")
    assert not parted.truncated
    with pytest.raises(ConfigError, match=r"outputs of 16 tokens and END are more than model\.max_positions=16"):
        reverser.predict(["a b"], max_length=16)
    with pytest.raises(ConfigError, match=r"an input of 21 symbols .* \(model\.max_positions=16\)"):
        reverser.score([("a b", long)])


def test_a_pair_that_is_too_long_is_refused_before_training(tmp_path: Path) -> None:
    pairs = [*reversal(40, 1), ("a b", " ".join("abcd" * 4))]
    with pytest.raises(DataError, match=r"more than model\.max_positions=16 \(END counts\) tokens .*train.tsv:41\); raise model"):
        trained(tmp_path, pairs, 1)
    trained(tmp_path, pairs, 1, too_long="skip").predict(["a b"])
