"""Averages of weights: what they are the mean of, that they are judged and kept, and that training does not notice them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_runs import checkpoint_names, events, newest, same_run, same_tensors, settings, train, train_and_stop
from torch import nn

import eyeline
from eyeline.errors import ConfigError, RunError
from eyeline.runs import open_run
from eyeline.training.averaging import MovingAverage, judged, mean_of_files
from eyeline.training.optimizers import ScheduleFree
from eyeline.training.snapshots import Snapshots

KINDS: dict[str, dict[str, Any]] = {
    "ema": {"average": "ema", "ema_decay": 0.9},
    "last": {"average": "last-3"},
    "best": {"average": "best-2"},
    "schedule-free": {"optimizer": "schedule-free", "warmup_steps": 5, "weight_decay": 0.01},
}
OFTEN = {"steps": 20, "validate_every": 4, "checkpoint_every": 5, "accumulate": 2}


def card(run: Path) -> str:
    return (run / "README.md").read_text(encoding="utf-8")


def metadata(run: Path) -> dict[str, Any]:
    from eyeline.runs import weights_metadata

    return weights_metadata(run / "model.safetensors")


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_and_resumed_is_the_same_run(tmp_path: Path, kind: str) -> None:
    config = settings(tmp_path, training={**OFTEN, **KINDS[kind]})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 7)
    train_and_stop(config, tmp_path / "parts", 6, resume=True)
    train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")
    assert eyeline.load(tmp_path / "parts").predict(["a b c"])


@pytest.mark.parametrize("kind", ["ema", "last", "best"])
def test_training_does_not_notice(tmp_path: Path, kind: str) -> None:
    """The weights that are trained are those of a run without it, whatever is judged."""
    for name, more in (("plain", {}), ("averaged", KINDS[kind])):
        train(settings(tmp_path, training={**OFTEN, **more}), tmp_path / name)
    plain, averaged = (newest(tmp_path / name) / "model.safetensors" for name in ("plain", "averaged"))
    same_tensors(plain, averaged)
    assert events(tmp_path / "plain", "train") == events(tmp_path / "averaged", "train")


@pytest.mark.parametrize("kind", KINDS)
def test_n_steps_and_n_more_are_twice_n(tmp_path: Path, kind: str) -> None:
    """An average kept at the first end is not in the way of the second."""
    training = {**OFTEN, **KINDS[kind]}
    train(settings(tmp_path, training={**training, "steps": 12}), tmp_path / "parts")
    train(settings(tmp_path, training={**training, "steps": 24}), tmp_path / "parts", resume=True)
    train(settings(tmp_path, training={**training, "steps": 24}), tmp_path / "whole")
    same_tensors(tmp_path / "whole" / "model.safetensors", tmp_path / "parts" / "model.safetensors")


# ---- moving average -----------------------------------------------------------------------------------------------------


def test_a_moving_average_is_the_sum_that_it_is() -> None:
    """w̄ after three updates, by hand, in float64; short at the start, where chance still is in it."""
    model = nn.Linear(2, 1).double()
    average, values = MovingAverage(model, 0.999), [model.weight.detach().clone()]
    for _ in range(3):
        with torch.no_grad():
            model.weight += torch.rand(1, 2, dtype=torch.float64)
        average.after_update()
        values.append(model.weight.detach().clone())
    wanted = values[0]
    for update, value in enumerate(values[1:], 1):
        stays = (1 + update) / (10 + update)
        wanted = stays * wanted + (1 - stays) * value
    assert torch.allclose(dict(average.tensors())["weight"], wanted, rtol=0, atol=1e-12)
    trained = model.weight.detach().clone()
    with judged(average):
        assert torch.equal(model.weight, average.tensors()["weight"])
    assert torch.equal(model.weight, trained), "bit for bit"
    for _ in range(20_000):
        average.after_update()
    assert torch.allclose(average.tensors()["weight"], trained, atol=1e-6)


def test_what_is_validated_and_kept_is_the_moving_average(tmp_path: Path) -> None:
    config = settings(tmp_path, training={**OFTEN, **KINDS["ema"]})
    train(config, tmp_path / "run")
    stored = load_file(newest(tmp_path / "run") / "optimizer.safetensors")
    kept, raw = load_file(tmp_path / "run" / "model.safetensors"), load_file(newest(tmp_path / "run") / "model.safetensors")
    assert metadata(tmp_path / "run")["step"] == 20, "the newest is the best here"
    for name, value in kept.items():
        assert torch.equal(value, stored[f"average.{name}"])
    assert any(not torch.equal(value, raw[name]) for name, value in kept.items())
    assert "moving average, decay 0.9" in card(tmp_path / "run")


def test_a_moving_average_asked_for_later_begins_there(tmp_path: Path) -> None:
    train_and_stop(settings(tmp_path, training=OFTEN), tmp_path / "run", 8)
    train(settings(tmp_path, training={**OFTEN, **KINDS["ema"]}), tmp_path / "run", resume=True)
    assert load_file(newest(tmp_path / "run") / "optimizer.safetensors")["average.updates"] == 12


# ---- the last or the best validations -----------------------------------------------------------------------------------


def scored(tmp_path: Path, rule: Any, metric: Any, scores: list[float], most: int = 2) -> list[int]:
    """Which steps count after validations of these scores, at steps 1, 2, 3…"""
    snapshots, model, kept = Snapshots(tmp_path, rule, most, metric), nn.Linear(2, 2), []
    for step, score in enumerate(scores, 1):
        kept = snapshots.take(model, step, score, kept)
        snapshots.prune([kept])
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"step-{step}.safetensors" for step, _ in kept)
    return [step for step, _ in kept]


@pytest.mark.parametrize(
    ("rule", "metric", "scores", "steps"),
    [
        ("last", "loss", [1.0, 2.0, 3.0, 4.0], [3, 4]),
        ("best", "loss", [3.0, 1.0, 2.0, 4.0], [2, 3]),
        ("best", "bleu", [3.0, 1.0, 2.0, 4.0], [1, 4]),
        ("best", "loss", [1.0, 1.0, 1.0], [1, 2]),
        ("best", "bleu", [1.0], [1]),
    ],
)
def test_which_count(tmp_path: Path, rule: str, metric: str, scores: list[float], steps: list[int]) -> None:
    assert scored(tmp_path, rule, metric, scores) == steps


@pytest.mark.parametrize("kind", ["last", "best"])
def test_the_mean_is_scored_at_the_end_and_the_better_kept(tmp_path: Path, kind: str) -> None:
    said = train(settings(tmp_path, training={**OFTEN, **KINDS[kind]}), tmp_path / "run")
    state = json.loads((newest(tmp_path / "run") / "state.json").read_bytes())
    steps = [step for step, _ in state["snapshots"]]
    assert len(steps) == {"last": 3, "best": 2}[kind]
    files = [tmp_path / "run" / "snapshots" / f"step-{step}.safetensors" for step in steps]
    mean = mean_of_files(files)
    (event,) = events(tmp_path / "run", "average")
    single = state["progress"]["best"]
    kept = load_file(tmp_path / "run" / "model.safetensors")
    assert f"the mean of {len(steps)}: steps {', '.join(map(str, steps))}" in said
    if event["loss"] < single:
        assert metadata(tmp_path / "run")["average"] == steps
        assert f"the mean of {len(steps)}" in card(tmp_path / "run")
        for name, value in kept.items():
            assert torch.equal(value, mean[name]), name
    else:
        assert "the best single weights stay" in said
        assert kept.keys() == mean.keys()
    loss = min(event["loss"], single)
    pairs = [tuple(line.split("\t")) for line in (tmp_path / "valid.tsv").read_text().split("\n")[:-1]]
    scores = eyeline.load(tmp_path / "run").score(pairs)
    nll = -sum(score.score for score in scores) / sum(len(score.token_scores) for score in scores)
    assert nll == pytest.approx(loss, abs=1e-5), "the weights on the disk are those with the better of the two scores"


def test_a_worse_mean_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the mean of an earlier end goes, too, when it is no longer the better one."""
    from eyeline.training import finishing

    monkeypatch.setattr(finishing, "fill", lambda model, tensors: [p.data.zero_() for p in model.parameters()])
    said = train(settings(tmp_path, training={**OFTEN, **KINDS["best"]}), tmp_path / "run")
    assert "is not better than" in said
    best = load_file(tmp_path / "run" / "snapshots" / "best.safetensors")
    for name, value in load_file(tmp_path / "run" / "model.safetensors").items():
        assert torch.equal(value, best[name])
    assert "| weights | of one step |" in card(tmp_path / "run")


def test_without_validation_the_mean_of_the_last_is_kept(tmp_path: Path) -> None:
    config = settings(tmp_path, data={"valid": []}, training={**OFTEN, "average": "last-2"})
    train(config, tmp_path / "run")
    assert metadata(tmp_path / "run") == {"step": 20, "average": [15, 20], "version": 1}
    files = [tmp_path / "run" / "snapshots" / f"step-{step}.safetensors" for step in (15, 20)]
    for name, value in load_file(tmp_path / "run" / "model.safetensors").items():
        assert torch.equal(value, mean_of_files(files)[name])


def test_snapshots_that_are_gone_are_left_out_and_said(tmp_path: Path) -> None:
    config = settings(tmp_path, training={**OFTEN, **KINDS["last"]})
    train_and_stop(config, tmp_path / "run", 13)
    (tmp_path / "run" / "snapshots" / "step-8.safetensors").write_bytes(b"cut")
    said = train(config, tmp_path / "run", resume=True)
    assert "left out: " in said
    assert "step-8.safetensors" in said


def test_snapshots_of_an_older_checkpoint_are_still_there(tmp_path: Path) -> None:
    """The newest damaged, the one before is gone on from, with its own snapshots."""
    config = settings(tmp_path, training={**OFTEN, "average": "last-2", "checkpoint_every": 100, "keep_checkpoints": 2})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "run", 12)
    assert checkpoint_names(tmp_path / "run") == ["step-12", "step-8"]
    (newest(tmp_path / "run") / "state.json").write_bytes(b"")
    said = train(config, tmp_path / "run", resume=True)
    assert "left out" not in said
    same_run(tmp_path / "whole", tmp_path / "run")


# ---- schedule-free ------------------------------------------------------------------------------------------------------


def test_schedule_free_is_the_algorithm_of_the_paper() -> None:
    """Defazio et al. 2024, algorithm 1, by loops over three sequences in float64, weight decay and warm-up included."""
    torch.manual_seed(0)
    target, rates = torch.randn(3, dtype=torch.float64), [0.01, 0.02, 0.03, 0.03, 0.03, 0.03]
    weight = nn.Parameter(torch.randn(3, dtype=torch.float64))
    x = z = weight.detach().clone()
    v, total = torch.zeros(3, dtype=torch.float64), 0.0
    optimizer = ScheduleFree([{"params": [weight], "weight_decay": 0.1}], 0.03, (0.9, 0.99))
    for t, rate in enumerate(rates, 1):
        y = 0.1 * z + 0.9 * x
        assert torch.allclose(weight, y, rtol=0, atol=1e-6)
        gradient = 2 * (y - target)
        v = 0.99 * v + 0.01 * gradient**2
        gamma = rate * (1 - 0.99**t) ** 0.5
        z = z - gamma * gradient / (v.sqrt() + 1e-8) - gamma * 0.1 * y
        total += gamma**2
        x = (1 - gamma**2 / total) * x + gamma**2 / total * z
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        ((weight - target) ** 2).sum().backward()
        optimizer.step()
    ((parameter, average),) = optimizer.averages()
    assert parameter is weight
    assert torch.allclose(average, x, rtol=0, atol=1e-6)


def test_schedule_free_weights_that_are_kept_are_the_averages(tmp_path: Path) -> None:
    train(settings(tmp_path, training={**OFTEN, **KINDS["schedule-free"]}), tmp_path / "run")
    kept, raw = load_file(tmp_path / "run" / "model.safetensors"), load_file(newest(tmp_path / "run") / "model.safetensors")
    assert any(not torch.equal(value, raw[name]) for name, value in kept.items())
    assert "the mean that the schedule-free optimiser keeps" in card(tmp_path / "run")


def test_its_average_is_another_optimisers_no_more(tmp_path: Path) -> None:
    train_and_stop(settings(tmp_path, training=OFTEN), tmp_path / "run", 8)
    with pytest.raises(ConfigError, match=r"training\.optimizer=schedule-free.*begun with adam"):
        train(settings(tmp_path, training={**OFTEN, "optimizer": "schedule-free"}), tmp_path / "run", resume=True)


# ---- the mean of files --------------------------------------------------------------------------------------------------


def test_a_mean_of_files_is_taken_in_double_precision(tmp_path: Path) -> None:
    values = torch.rand(4, 3, 3)
    for number, value in enumerate(values):
        save_file({"a": value, "n": torch.tensor(3)}, str(tmp_path / f"{number}.safetensors"))
    mean = mean_of_files([tmp_path / f"{number}.safetensors" for number in range(4)])
    assert torch.equal(mean["a"], (values.double().sum(0) / 4).float())
    assert mean["n"] == 3
    assert mean["n"].dtype == torch.int64


def test_what_cannot_be_averaged_is_named(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, str(tmp_path / "one"))
    save_file({"b": torch.ones(2)}, str(tmp_path / "other"))
    save_file({"a": torch.ones(3)}, str(tmp_path / "wider"))
    (tmp_path / "cut").write_bytes(b"\0")
    for name, said in (("other", "other weights"), ("wider", "other shapes"), ("cut", "damaged"), ("absent", "damaged")):
        with pytest.raises(RunError, match=said):
            mean_of_files([tmp_path / "one", tmp_path / name])


@pytest.mark.parametrize(
    ("training", "named"),
    [
        ({"average": "last-1"}, r"training\.average=last-1"),
        ({"average": "mean"}, r"none, ema, last-N or best-N"),
        ({"optimizer": "schedule-free", "average": "ema"}, "averages by itself"),
        ({"optimizer": "schedule-free", "schedule": "cosine"}, "needs no schedule"),
        ({"ema_decay": 1.0}, r"training\.ema_decay"),
    ],
)
def test_settings_that_contradict_each_other(tmp_path: Path, training: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        settings(tmp_path, training=training)


def test_the_best_need_validation_pairs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.average=best-3 needs validations"):
        settings(tmp_path, data={"valid": []}, training={"average": "best-3"})


def test_killed_when_the_mean_was_scored_it_is_scored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card is the last file: without it the end is made again, and told once."""
    import eyeline.training as training

    config = settings(tmp_path, training={**OFTEN, **KINDS["last"]})
    train(config, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(training, "write_card", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            train(config, tmp_path / "run")
    train(config, tmp_path / "run", resume=True)
    same_run(tmp_path / "whole", tmp_path / "run")
    assert len(events(tmp_path / "run", "average")) == 1


def test_nothing_lies_around(tmp_path: Path) -> None:
    train(settings(tmp_path, training={**OFTEN, **KINDS["best"]}), tmp_path / "run")
    names = {path.name for path in (tmp_path / "run" / "snapshots").iterdir()}
    named = {
        step
        for path in (tmp_path / "run" / "checkpoints").iterdir()
        for step, _ in json.loads((path / "state.json").read_bytes())["snapshots"]
    }
    assert names == {"best.safetensors", *(f"step-{step}.safetensors" for step in named)}
    assert open_run(tmp_path / "run").load() is not None
