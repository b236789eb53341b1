"""Windows of batches: the gradient is the mean over all their tokens, clipped once; smoothing never enters what is logged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import Listener, events, settings, train
from torch import Tensor, nn

from eyeline.config import TrainingSettings
from eyeline.contracts import Source, Step
from eyeline.data import plan
from eyeline.data.corpus import Corpus
from eyeline.ladder import Seq2Seq, build
from eyeline.training.journal import Journal
from eyeline.training.loop import Trainer

Pairs = Sequence[tuple[list[int], list[int]]]


def tiny_model(seed: int = 0) -> Seq2Seq:
    torch.manual_seed(seed)
    from eyeline.config_models import LuongSettings

    sizes = {"embedding_size": 5, "encoder_size": 4, "decoder_size": 6, "dropout": 0.0}
    return build(LuongSettings.model_validate({**sizes}), 9, 9).double()


class Kept(Journal):
    """A journal that can be read at once."""

    def __init__(self, run: Path) -> None:
        run.mkdir(parents=True, exist_ok=True)
        super().__init__(run, 0)
        self.events: list[dict[str, Any]] = []

    def log(self, split: str, step: int, values: dict[str, Any]) -> None:
        self.events.append({"split": split, "step": step, **values})


def trained(
    pairs: Pairs,
    batches: list[list[int]],
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: nn.Module | None = None,
    **values: Any,
) -> tuple[nn.Module, list[dict[str, Any]]]:
    """A model after the batches named by their rows, and what was logged."""
    monkeypatch.setattr(plan, "epoch_batches", lambda *_: [np.array(rows) for rows in batches])
    model = model or tiny_model()
    given = TrainingSettings.model_validate({"epochs": 1, "learning_rate": 0.01, "clip_norm": 0, **values})
    corpus = Corpus.of([source for source, _ in pairs], [target for _, target in pairs])
    trainer = Trainer(model, corpus, given, 1, out / "checkpoints", Listener())
    journal = Kept(out)
    trainer.run(journal, None, lambda position: None)
    journal.close()
    return model, journal.events


def near(one: nn.Module, other: nn.Module, tolerance: float = 1e-6) -> None:
    for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=tolerance), name


PAIRS: Pairs = [
    ([4], []),
    ([5, 6, 7, 8, 4, 5], [4, 5, 6, 7, 8, 4, 5, 6]),
    ([7, 8], [5, 4]),
    ([4, 4, 4], [8, 7, 6]),
    ([6], [6, 6]),
]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_a_line_of_one_token_and_one_of_nine(
    tmp_path: Path, smoothing: float, clip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"label_smoothing": smoothing, "clip_norm": clip}
    together, one = trained(PAIRS, [[0, 1]], tmp_path / "a", monkeypatch, **values)
    apart, two = trained(PAIRS, [[0], [1]], tmp_path / "b", monkeypatch, accumulate=2, **values)
    near(together, apart)
    assert one[-1]["loss"] == pytest.approx(two[-1]["loss"], abs=1e-9)
    assert one[-1]["target_tokens"] == two[-1]["target_tokens"] == 10
    assert one[-1]["step"] == two[-1]["step"] == 1
    averaged, _ = trained(PAIRS, [[0], [1]], tmp_path / "c", monkeypatch, **values)
    with pytest.raises(AssertionError):
        near(together, averaged)


@pytest.mark.parametrize("cut", [[[0], [1], [2], [3], [4]], [[0, 3], [1, 4, 2]], [[4, 3, 2, 1], [0]]])
def test_any_number_of_parts_is_one_batch(tmp_path: Path, cut: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    whole, one = trained(PAIRS, [[0, 1, 2, 3, 4]], tmp_path / "a", monkeypatch)
    parts, two = trained(PAIRS, cut, tmp_path / "b", monkeypatch, accumulate=len(cut))
    near(whole, parts)
    assert one[-1]["loss"] == pytest.approx(two[-1]["loss"], abs=1e-9)


def test_a_last_window_of_fewer_batches_is_applied_and_scaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, one = trained(PAIRS, [[0, 1], [2, 3], [4]], tmp_path / "a", monkeypatch)
    parts, two = trained(PAIRS, [[0], [1], [2], [3], [4]], tmp_path / "b", monkeypatch, accumulate=2)
    near(whole, parts)
    assert one[-1]["step"] == two[-1]["step"] == 3
    assert one[-1]["loss"] == pytest.approx(two[-1]["loss"], abs=1e-9)


class Fixed(nn.Module):
    """A model whose token losses are given: that of token t is 2 for t = 4 and 1 for t = 5, plus a weight to move."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.head = self._head

    def forward(self, source: Source, inputs: Tensor) -> Step:
        return Step(inputs[..., None].double() * 0 + self.bias)

    def _head(self, step: Step, source: Source) -> Tensor:
        losses = torch.zeros(*step.features.shape[:-1], 6).double()
        losses[..., 4], losses[..., 5], losses[..., 3] = -2.0, -1.0, -1.0
        return losses + 0 * step.features


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_numbers_of_the_reports(tmp_path: Path, accumulate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token losses [2.0] and [1.0] × 9 are 1.1 a token, not the 1.5 of averaged averages; in one update or over two."""
    monkeypatch.setattr(Corpus, "batch", _without_end(Corpus.batch))
    pairs: Pairs = [([4], [4]), ([4], [5] * 9)]
    _, logged = trained(pairs, [[0], [1]], tmp_path, monkeypatch, Fixed(), accumulate=accumulate)
    assert logged[-1]["loss"] == pytest.approx(1.1)


def _without_end(real: Any) -> Any:
    """END has no loss in this test: its position is hidden."""
    from dataclasses import replace

    def batch(self: Corpus, rows: Any, epoch: int) -> Any:
        made = real(self, rows, epoch)
        mask = made.target_mask | (made.outputs == 3)
        return replace(made, target_mask=mask, target_tokens=int((~mask).sum()))

    return batch


def test_clipping_is_once_after_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The norm that the optimiser meets is the bound, not a sum of clipped parts."""
    norms, real = [], torch.optim.Adam.step

    def step(self: torch.optim.Adam, closure: None = None) -> None:
        grads = [parameter.grad for group in self.param_groups for parameter in group["params"] if parameter.grad is not None]
        norms.append(float(torch.stack([grad.norm() for grad in grads]).norm()))
        real(self, closure)

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    trained(PAIRS, [[0], [1], [2], [3], [4]], tmp_path / "a", monkeypatch, accumulate=5, clip_norm=0.01)
    assert norms == [pytest.approx(0.01, rel=1e-3)]
    trained(PAIRS, [[0], [1], [2], [3], [4]], tmp_path / "b", monkeypatch, accumulate=5, clip_norm=0)
    assert norms[1] > 0.05


def test_a_small_gradient_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free, _ = trained(PAIRS, [[0, 1, 2]], tmp_path / "a", monkeypatch, clip_norm=1e9)
    unbound, _ = trained(PAIRS, [[0, 1, 2]], tmp_path / "b", monkeypatch, clip_norm=0)
    near(free, unbound, 0.0)


def test_smoothing_changes_weights_and_not_the_meaning_of_the_loss(tmp_path: Path) -> None:
    """The first event is of untrained weights; it is the same plain cross-entropy whatever the smoothing."""
    logged = {}
    for smoothing in (0.0, 0.3):
        training = {"steps": 1, "label_smoothing": smoothing}
        train(settings(tmp_path, training=training, model={"dropout": 0.0}), tmp_path / str(smoothing))
        logged[smoothing] = events(tmp_path / str(smoothing), "train")[0]["loss"]
    assert logged[0.0] == logged[0.3]
    assert (tmp_path / "0.0" / "model.safetensors").read_bytes() != (tmp_path / "0.3" / "model.safetensors").read_bytes()
    assert logged[0.0] == pytest.approx(math.log(10), rel=0.1)


def test_a_loss_logged_is_the_mean_over_all_tokens_since_the_last(tmp_path: Path) -> None:
    """Logged every ten updates whatever else happens; time-free and the same in a quiet run."""
    training = {"steps": 25, "validate_every": 7}
    train(settings(tmp_path, training=training), tmp_path / "loud")
    train(settings(tmp_path, training=training), tmp_path / "quiet", reporter=Listener(verbosity=-1))
    assert events(tmp_path / "loud") == events(tmp_path / "quiet")
    assert [event["step"] for event in events(tmp_path / "loud", "train")] == [10, 20, 25]
    assert [event["step"] for event in events(tmp_path / "loud", "valid")] == [7, 14, 21, 25]


def test_decay_is_for_matrices_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a loss that nothing can lower, weights shrink and biases stay (AdamW: by rate × decay)."""

    class Flat(Fixed):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Parameter(torch.ones(2, 2).double())
            self.row = nn.Parameter(torch.ones(2).double())

        def _head(self, step: Step, source: Source) -> Tensor:
            zero = 0 * (self.matrix.sum() + self.row.sum())
            return super()._head(step, source) + zero

    values = {"optimizer": "adamw", "weight_decay": 0.5, "learning_rate": 0.1}
    model, _ = trained([([4], [4])], [[0]], tmp_path, monkeypatch, Flat(), **values)
    assert torch.allclose(model.matrix, torch.full((2, 2), 1 - 0.05).double())  # type: ignore[arg-type]
    assert torch.equal(model.row, torch.ones(2).double())  # type: ignore[arg-type]
