"""When a run ends for want of improvement, and when the plateau schedule lowers the rate: scripted scores, stops in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_runs import Listener, events, newest, settings, train

from eyeline.config import LOWER_IS_BETTER, TrainingSettings
from eyeline.training.schedules import Progress
from eyeline.training.validation import Validator

# scores by validation, patience, the validation after which it stops (None: never)
SEQUENCES: list[tuple[list[float], int, int | None]] = [
    ([5, 4, 3, 3.1, 3.2, 3.3], 3, 6),
    ([5, 5.1], 1, 2),
    ([5, 5.1, 4.9, 5, 5.1], 2, 5),
    ([5, 5, 5], 2, 3),  # a tie is no improvement
    ([5, 5, 4, 4, 4], 2, 5),
    ([5, 6, 7, 8, 9, 10, 11], 0, None),
    ([5, 6, 4, 6, 3, 6, 2], 2, None),
    ([3, 4, 3.5, 3.4, 3.3], 4, 5),  # better than the one before is not better than the best
]


def mirrored(metric: str, score: float) -> float:
    return score if metric in LOWER_IS_BETTER else 100 - score


@pytest.mark.parametrize("metric", ["loss", "ter", "bleu", "exact_match"])
@pytest.mark.parametrize(("scores", "patience", "stop"), SEQUENCES)
@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt", "linear", "plateau"])
def test_it_stops_after_the_right_validation(
    scores: list[float], patience: int, stop: int | None, metric: str, schedule: str
) -> None:
    settings = TrainingSettings.model_validate({"schedule": schedule, "metric": metric, "steps": 9})
    progress, ended = Progress(metric), None  # type: ignore[arg-type]
    for number, score in enumerate(scores, 1):
        progress.update(mirrored(metric, score), number, settings)
        if progress.exhausted(patience):
            ended = number
            break
    assert ended == stop
    seen = scores[:stop]
    assert progress.best == mirrored(metric, min(seen))
    assert progress.best_step == seen.index(min(seen)) + 1


class Script:
    """Answers validation number n (at step 2n) with the n-th score, whichever session asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scores: list[float], metric: str = "loss") -> None:
        self.asked: list[int] = []

        def call(validator: Validator, position: Any) -> float:
            self.asked.append(position.step // 2)
            return mirrored(metric, scores[position.step // 2 - 1])

        monkeypatch.setattr(Validator, "__call__", call)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("scores", "patience", "stop", "metric"),
    [(*sequence, ("loss", "bleu")[number % 2]) for number, sequence in enumerate(SEQUENCES) if sequence[2] is not None],
)
def test_a_run_ends_there_whether_killed_or_not(
    tmp_path: Path, scores: list[float], patience: int, stop: int, metric: str, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after a validation, with no time to save anything more, the run still stops where it would have."""
    script = Script(monkeypatch, scores, metric)
    training = {"steps": 40, "validate_every": 2, "checkpoint_every": 1000, "metric": metric, "patience": patience}
    config = settings(tmp_path, training=training, tokenizer={"kind": "character"}, model={"dropout": 0.0})

    def kill(step: int) -> None:
        if step == 2 * (stop - 1) + 1:
            raise ZeroDivisionError

    if killed:
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "run", reporter=Listener(kill))
    said = train(config, tmp_path / "run", resume=True)
    assert script.asked == list(range(1, stop + 1))
    assert f"done after {patience} validations in a row without improvement of {metric}" in said
    state = json.loads((newest(tmp_path / "run") / "state.json").read_bytes())
    assert state["position"]["step"] == 2 * stop
    assert state["progress"]["best_step"] == 2 * (scores.index(min(scores[:stop])) + 1)
    assert f"is finished at step {2 * stop} after {patience} validations" in train(config, tmp_path / "run", resume=True)


def test_more_steps_after_an_early_stop_count_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, [5, 6, 7, 8, 8.5, 9, 9])
    config = settings(tmp_path, training={"steps": 40, "validate_every": 2, "patience": 2})
    train(config, tmp_path / "run")
    said = train(config, tmp_path / "run", resume=True, more_steps=3)
    assert "done after 2 validations" not in said
    assert script.asked == [1, 2, 3, 4, 4], "the bound brings the last validation, at step 9"
    more = settings(tmp_path, training={"steps": 40, "validate_every": 2, "patience": 5})
    train(more, tmp_path / "run", resume=True)
    assert script.asked[5:] == [5, 6, 7]


# ---- plateau ------------------------------------------------------------------------------------------------------------


def factors(scores: list[float], **given: Any) -> list[float]:
    settings = TrainingSettings.model_validate({"schedule": "plateau", "learning_rate": 1.0, "min_learning_rate": 0.0, **given})
    progress, seen = Progress("loss"), []
    for number, score in enumerate(scores, 1):
        progress.update(score, number, settings)
        seen.append(progress.factor)
    return seen


def test_the_rate_falls_when_the_metric_rests() -> None:
    assert factors([5, 5, 5, 5, 5, 5, 5], decay_patience=2) == [1, 1, 1, 0.5, 0.5, 0.5, 0.25]
    assert factors([5, 5, 5, 4, 4, 4, 4], decay_patience=2) == [1, 1, 1, 1, 1, 1, 0.5]
    assert factors([5, 5, 5], decay_patience=0, decay=0.1) == pytest.approx([1, 0.1, 0.01])
    assert factors([5, 5, 5], decay_patience=0, min_learning_rate=0.3) == pytest.approx([1, 0.5, 0.3])
    assert factors([5, 5, 5], decay_patience=0, min_learning_rate=3.0) == [1, 1, 1], "a floor above the rate raises nothing"
    assert factors([5, 5, 5], decay_patience=0, schedule="constant") == [1, 1, 1]


def test_the_plateau_remembers_over_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates of a run that was killed twice are those of one that was not, also where the wait had begun before the stop."""
    Script(monkeypatch, [5, 5, 5, 5, 4, 5, 5, 5, 5, 5])
    training = {"steps": 20, "validate_every": 2, "schedule": "plateau", "decay_patience": 1, "learning_rate": 0.01}
    config = settings(tmp_path, training=training)
    train(config, tmp_path / "whole")
    for killed in (4, 12):

        def kill(step: int, last: int = killed) -> None:
            if step == (last if last == 4 else last - 4) + 1:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "parts", resume=True, reporter=Listener(kill))
    train(config, tmp_path / "parts", resume=True)
    rates = [event["lr"] for event in events(tmp_path / "whole", "train")]
    assert rates == pytest.approx([0.005, 0.00125])
    states = [json.loads((newest(tmp_path / name) / "state.json").read_bytes()) for name in ("whole", "parts")]
    assert states[0]["progress"] == states[1]["progress"]
    assert (newest(tmp_path / "whole") / "model.safetensors").read_bytes() == (
        newest(tmp_path / "parts") / "model.safetensors"
    ).read_bytes()
