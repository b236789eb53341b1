"""What a validation measures: every pair, whatever the batches; outputs as a user sees them; and nothing it meets ends a run."""

from __future__ import annotations

import math
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import Listener, events, reversal, settings, train, write_pairs

import eyeline
from eyeline.contracts import END
from eyeline.ladder import Seq2Seq
from eyeline.runs import open_run
from eyeline.training.journal import Journal
from eyeline.training.preparation import prepare
from eyeline.training.state import Position
from eyeline.training.validation import Validator


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("valid")
    train(settings(folder, training={"steps": 30, "label_smoothing": 0.1, "validate_every": 30}), folder / "run")
    return folder / "run"


def validated(run: Path, listener: Listener, journal: Journal, **sections: Any) -> float:
    config = settings(run.parent, **sections)
    opened = open_run(run)
    prepared = prepare(config, opened)
    assert prepared.valid is not None
    validator = Validator(opened.load(), prepared.valid, prepared.coder, config, journal, listener, torch.device("cpu"))
    return validator(Position(step=30))


@pytest.mark.parametrize("batch_tokens", [1, 9, 36, 10_000])
def test_the_value_does_not_depend_on_the_batches(run: Path, tmp_path: Path, batch_tokens: int) -> None:
    journal = Journal(tmp_path, 0)
    value = validated(run, Listener(), journal, training={"batch_tokens": batch_tokens}, search={"batch_tokens": batch_tokens})
    journal.close()
    (event,) = events(tmp_path, "valid")
    assert value == pytest.approx(events(run, "valid")[-1]["loss"], abs=1e-5)
    assert event["n"] == 7
    assert event["perplexity"] == pytest.approx(math.exp(event["loss"]), rel=1e-5)


def test_the_loss_is_that_of_the_scores(run: Path) -> None:
    """exp(-mean log-probability of a token, END counted) of `score` is the perplexity, at label smoothing 0.1."""
    scores = eyeline.load(run).score(reversal(7, seed=4))
    mean = -sum(score.score for score in scores) / sum(len(score.token_scores) for score in scores)
    assert events(run, "valid")[-1]["loss"] == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "exact_match", "symbol_error_rate", "wer", "cer"])
def test_every_metric_decides_and_is_logged_with_its_signature(run: Path, tmp_path: Path, metric: str) -> None:
    """The value is what a greedy prediction scores."""
    from eyeline.metrics import corpus_score

    journal, listener = Journal(tmp_path, 0), Listener()
    value = validated(run, listener, journal, training={"metric": metric})
    journal.close()
    (event,) = events(tmp_path, "valid")
    pairs = reversal(7, seed=4)
    outputs = [answer.text for answer in eyeline.load(run).predict([source for source, _ in pairs], beam_size=1)]
    wanted = corpus_score(metric, outputs, [target for _, target in pairs])
    assert value == pytest.approx(wanted.score)
    assert event[metric] == pytest.approx(wanted.score, rel=1e-5)
    assert event["signature"] == wanted.signature
    assert f"{metric} {wanted.score:.2f} [{wanted.signature}]" in listener.text


@pytest.mark.parametrize("metric", ["loss", "bleu", "chrf", "ter", "exact_match", "symbol_error_rate", "wer", "cer"])
def test_empty_outputs_do_not_end_a_run(tmp_path: Path, metric: str) -> None:
    """As in the first steps of many runs: END is the likeliest token everywhere."""

    def build(self: Any) -> Seq2Seq:
        model = real(self)
        with torch.no_grad():
            for name, parameter in model.head.named_parameters():
                parameter.zero_()
                if name.endswith("bias"):
                    parameter[END] = 5.0
        return model

    from eyeline.runs import Run

    real = Run.build
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "build", build)
        training = {"steps": 2, "validate_every": 1, "metric": metric, "learning_rate": 1e-9}
        said = train(settings(tmp_path, training=training), tmp_path / "run")
    assert "✗ c a f d →   (reference d f a c)" in said
    assert len(events(tmp_path / "run", "valid")) == 2
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_another_unicode_form_or_case_in_the_file_is_no_error(tmp_path: Path) -> None:
    """A perfect output of a model that was taught NFC and lower case scores 100 against `É` decomposed."""
    letters = {"a": "É", "b": "é", "c": "Ö"}
    pairs = [
        (" ".join(source), unicodedata.normalize("NFD", "".join(letters[s] for s in source))) for source in ["a", "b", "c"] * 4
    ]
    for name in ("train.tsv", "valid.tsv"):
        write_pairs(tmp_path / name, pairs)
    config = settings(
        tmp_path,
        data={"lowercase": True},
        tokenizer={"kind": "character"},
        model={"dropout": 0.0},
        training={"steps": 60, "validate_every": 60, "metric": "exact_match", "learning_rate": 0.05},
    )
    said = train(config, tmp_path / "run")
    assert events(tmp_path / "run", "valid")[-1]["exact_match"] == 100.0
    assert "✓ a → é" in said


def test_a_shown_example_is_marked_right_or_wrong(run: Path, tmp_path: Path) -> None:
    journal, listener = Journal(tmp_path, 0), Listener()
    validated(run, listener, journal)
    journal.close()
    shown = [line for line in listener.text.split("\n") if "→" in line]
    assert len(shown) == 3
    for line, (source, target) in zip(shown, reversal(7, seed=4), strict=False):
        assert line.startswith(f"  ✓ {source} → {target}") or line.endswith(f"(reference {target})")


def test_the_last_step_is_validated_whatever_the_interval(tmp_path: Path) -> None:
    train(settings(tmp_path, training={"steps": 7, "validate_every": 3}), tmp_path / "run")
    assert [event["step"] for event in events(tmp_path / "run", "valid")] == [3, 6, 7]
