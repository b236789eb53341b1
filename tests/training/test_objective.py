"""Losses on attention beside the likelihood: how they are weighed, logged, resumed, and refused where they cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import Listener, events, newest, same_run, same_tensors, settings, train, train_and_stop
from test_accumulation import PAIRS, Kept, tiny_model

from eyeline.config import Config, TrainingSettings
from eyeline.data import plan
from eyeline.data.corpus import Corpus, Links
from eyeline.errors import ConfigError
from eyeline.loss import coverage_loss, guided_alignment_loss, negative_log_likelihood
from eyeline.training.loop import Trainer
from eyeline.training.objective import Objective

GOLD = [[], [(0, 0), (1, 0), (5, 7)], [(1, 0)], [(2, 2), (0, 1)], [(0, 0)]]  # links of PAIRS


def linked() -> Corpus:
    plain = Corpus.of([source for source, _ in PAIRS], [target for _, target in PAIRS])
    return replace(plain, links=Links.of(GOLD))


def updated(weights: dict[str, float], batches: list[list[int]], out: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model after one update from `batches`, and what was logged."""
    monkeypatch.setattr(plan, "epoch_batches", lambda *_: [np.array(rows) for rows in batches])
    values = {"epochs": 1, "learning_rate": 0.01, "clip_norm": 0, "accumulate": len(batches), **weights}
    model, journal = tiny_model(), Kept(out)
    trainer = Trainer(model, linked(), TrainingSettings.model_validate(values), 1, out / "checkpoints", Listener())
    trainer.run(journal, None, lambda position: None)
    journal.close()
    return model, journal.events[-1]


WEIGHTS = {"coverage_loss": 0.7, "guided_alignment": 0.3, "label_smoothing": 0.1}


def test_the_sum_is_divided_by_the_tokens_of_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of (nll + 0.7 coverage + 0.3 alignment) / tokens, whatever the window is cut into."""
    corpus, model = linked(), tiny_model()
    batch = corpus.batch([0, 1, 2, 3, 4])
    step = model(batch.source, batch.inputs)
    loss = negative_log_likelihood(model.head, step, batch.source, batch.outputs, batch.target_mask, 0.1)
    attention = step.attention["source"]
    assert batch.links is not None
    parts = coverage_loss(attention, batch.target_mask), guided_alignment_loss(attention, batch.links, batch.target_mask)
    ((loss.objective + 0.7 * parts[0] + 0.3 * parts[1]) / batch.target_tokens).backward()
    torch.optim.Adam(model.parameters(), lr=0.01).step()
    for number, cut in enumerate(([[0, 1, 2, 3, 4]], [[0, 3], [1, 4, 2]], [[4], [3], [2], [1], [0]])):
        other, logged = updated(WEIGHTS, cut, tmp_path / str(number), monkeypatch)
        for (name, a), b in zip(model.named_parameters(), other.parameters(), strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-7), name
        assert logged["loss"] == pytest.approx(float(loss.nll) / batch.target_tokens, abs=1e-6)
        assert logged["coverage_loss"] == pytest.approx(float(parts[0].detach()) / batch.target_tokens, abs=1e-6)
        assert logged["alignment_loss"] == pytest.approx(float(parts[1].detach()) / batch.target_tokens, abs=1e-6)


@pytest.mark.parametrize("name", ["coverage_loss", "guided_alignment"])
def test_a_weight_changes_weights_and_not_the_meaning_of_the_loss(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reported loss is plain cross-entropy; a part is logged where it is weighed, and nowhere else."""
    key = {"coverage_loss": "coverage_loss", "guided_alignment": "alignment_loss"}[name]
    with_it, said = updated({name: 0.5}, [[1, 2, 3]], tmp_path / "a", monkeypatch)
    without, plain = updated({}, [[1, 2, 3]], tmp_path / "b", monkeypatch)
    assert said.keys() - plain.keys() == {key}
    assert said["loss"] == plain["loss"]
    assert any(not torch.equal(a, b) for a, b in zip(with_it.parameters(), without.parameters(), strict=True))


def test_a_coverage_loss_is_lower_where_it_is_weighed(tmp_path: Path) -> None:
    ends = {}
    for weight in (1e-9, 1.0):
        config = settings(tmp_path, "luong", training={"coverage_loss": weight, "steps": 40})
        train(config, tmp_path / str(weight))
        ends[weight] = events(tmp_path / str(weight), "train")[-1]["coverage_loss"]
    assert ends[1.0] < 0.8 * ends[1e-9]


def test_stopped_and_resumed_is_the_same_run(tmp_path: Path) -> None:
    """Coverage in the score and in the loss; the sums since the last event are in the checkpoint."""
    model = {"coverage": "gated"}
    config = settings(tmp_path, "bahdanau", model=model, training={"coverage_loss": 0.5, "steps": 15, "accumulate": 2})
    train(config, tmp_path / "whole")
    train_and_stop(config, tmp_path / "parts", 7)
    meter = json.loads((newest(tmp_path / "parts") / "state.json").read_bytes())["meter"]
    assert meter["coverage"] > 0
    train(config, tmp_path / "parts", resume=True)
    same_run(tmp_path / "whole", tmp_path / "parts")
    assert all(event["coverage_loss"] > 0 for event in events(tmp_path / "parts", "train"))


def test_a_guided_run_resumes_exactly(tmp_path: Path) -> None:
    def run(out: Path, steps: int) -> None:
        values = {"steps": steps, "batch_tokens": 20, "learning_rate": 0.01, "guided_alignment": 0.5}
        given = TrainingSettings.model_validate(values)
        trainer, journal = Trainer(tiny_model(), linked(), given, 1, out / "checkpoints", Listener()), Kept(out)
        trainer.resume()
        trainer.run(journal, None, lambda position: None)
        journal.close()

    run(tmp_path / "whole", 12)
    run(tmp_path / "parts", 5)
    run(tmp_path / "parts", 12)
    a, b = newest(tmp_path / "whole"), newest(tmp_path / "parts")
    same_tensors(a / "model.safetensors", b / "model.safetensors")
    meters = [json.loads((path / "state.json").read_bytes())["meter"] for path in (a, b)]
    assert meters[0]["alignment"] == meters[1]["alignment"] > 0


# ---- what cannot be -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coverage_loss", "guided_alignment"])
def test_a_rung_without_attention_is_refused_by_the_setting(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"training\.{name}=0\.5 needs attention.*seq2seq"):
        settings(tmp_path, "seq2seq", training={name: 0.5})
    Config.from_dict({"model": {"architecture": "seq2seq"}, "training": {name: 0}})


def test_links_that_are_not_there_are_asked_for_before_anything_is_written(tmp_path: Path) -> None:
    config = settings(tmp_path, "luong", training={"guided_alignment": 0.1})
    with pytest.raises(ConfigError, match=r"gold links.*training\.guided_alignment=0\.1.*alignment"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    plain = replace(linked(), links=None)
    with pytest.raises(ConfigError, match=r"no gold links.*training\.guided_alignment=0\.1.*alignment"):
        Trainer(tiny_model(), plain, config.training, 1, tmp_path, Listener())


def test_a_model_that_says_nothing_of_where_it_looks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An architecture of somebody else's, of which the settings know nothing."""
    from eyeline.contracts import Step

    model = tiny_model()
    monkeypatch.setattr(type(model), "forward", lambda self, source, inputs: Step(torch.zeros(*inputs.shape, 6).double()))
    batch = linked().batch([0, 1])
    for objective, name in ((Objective(0.0, 0.5, 0.0), "coverage_loss=0.5"), (Objective(0.0, 0.0, 0.5), "guided_alignment=0.5")):
        with pytest.raises(ConfigError, match=rf"no attention.*training\.{name}"):
            objective(model, batch)


@pytest.mark.parametrize("scope", ["local-m", "local-p"])
def test_coverage_of_a_window_is_refused(scope: str) -> None:
    with pytest.raises(ConfigError, match=rf"coverage=sum .* scope={scope}"):
        Config.from_dict({"model": {"architecture": "luong", "scope": scope, "coverage": "sum"}})
