"""A full memory splits a batch and goes on, counted; what cannot fit is known at the start, and its line is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_runs import Listener, newest, same_tensors, settings, train, write_pairs

from eyeline.data.corpus import Batch
from eyeline.errors import DataError, UserError
from eyeline.training import Trainer
from eyeline.training.objective import Objective
from eyeline.training.updates import out_of_memory

FULL = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:119] DefaultCPUAllocator: can't allocate memory: 9 bytes")


def narrow(monkeypatch: pytest.MonkeyPatch, fits: Callable[[Batch], bool], error: BaseException = FULL) -> None:
    """The memory is full in the forward pass of batches that do not fit."""
    real = Objective.__call__

    def call(self: Objective, model: Any, batch: Batch, number: int = 1) -> Any:
        if not fits(batch):
            raise error
        return real(self, model, batch, number)

    monkeypatch.setattr(Objective, "__call__", call)


def near(one: Path, other: Path) -> None:
    """The newest weights of two runs are those of the same sums, added up in another order."""
    a, b = (load_file(newest(run) / "model.safetensors") for run in (one, other))
    for name, value in a.items():
        assert torch.allclose(value, b[name], rtol=0, atol=1e-5), name


def still(**training: Any) -> dict[str, Any]:
    """No dropout, so that a batch in parts has the gradient of the whole."""
    return {"model": {"dropout": 0.0}, "training": {"steps": 12, "accumulate": 2, **training}}


@pytest.mark.parametrize("error", [FULL, CPU, MemoryError()], ids=lambda error: type(error).__name__)
def test_a_split_batch_has_the_gradient_of_the_whole(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every batch of more than three pairs is refused before its backward pass; the weights are those of a larger memory."""
    config = settings(tmp_path, **still())
    train(config, tmp_path / "roomy")
    narrow(monkeypatch, lambda batch: len(batch.rows) <= 3, error)
    said = train(config, tmp_path / "narrow")
    state = json.loads((newest(tmp_path / "narrow") / "state.json").read_bytes())["position"]
    assert state["split"] > 5
    assert "the memory was full at step 1: the batch was split" in said
    assert said.count("the memory was full at step") <= 2, "at the first and the tenth, not each time"
    near(tmp_path / "roomy", tmp_path / "narrow")


def test_what_a_refused_batch_left_behind_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused in the middle of the backward pass of the second batch of a window: nothing of it is counted twice."""
    config = settings(tmp_path, **still(steps=1))
    train(config, tmp_path / "roomy")
    monkeypatch.setattr(Trainer, "rehearse", lambda self: None)
    calls = 0

    def fits(batch: Batch) -> bool:
        nonlocal calls
        calls += 1
        return calls != 2

    refused = narrow_once(monkeypatch, fits)
    train(config, tmp_path / "narrow")
    assert refused() == 1
    near(tmp_path / "roomy", tmp_path / "narrow")


def narrow_once(monkeypatch: pytest.MonkeyPatch, fits: Callable[[Batch], bool]) -> Callable[[], int]:
    real, count = Objective.__call__, 0

    class Refusal:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __truediv__(self, number: int) -> Refusal:
            return Refusal(self.inner / number)

        def backward(self) -> None:
            nonlocal count
            count += 1
            self.inner.backward()  # all gradients are there, and then the memory is full
            raise FULL

    def call(self: Objective, model: Any, batch: Batch, number: int = 1) -> Any:
        loss = real(self, model, batch, number)
        return loss if fits(batch) else replace(loss, objective=Refusal(loss.objective))

    monkeypatch.setattr(Objective, "__call__", call)
    return lambda: count


def test_dropout_after_a_split_is_that_of_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same memory gives the same run, twice: random numbers begin anew with the window."""
    narrow(monkeypatch, lambda batch: len(batch.rows) <= 3)
    config = settings(tmp_path, training={"steps": 8})
    for name in ("one", "two"):
        train(config, tmp_path / name)
    same_tensors(newest(tmp_path / "one") / "model.safetensors", newest(tmp_path / "two") / "model.safetensors")


def test_the_largest_batch_is_tried_first_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first update, and without a trace in the run."""
    seen: list[tuple[int, int]] = []
    real = Objective.__call__

    def call(self: Objective, model: Any, batch: Batch, number: int = 1) -> Any:
        seen.append((int(batch.source.lengths.max()), len(batch.rows)))
        return real(self, model, batch, number)

    train(settings(tmp_path, training={"steps": 5}), tmp_path / "plain")
    monkeypatch.setattr(Objective, "__call__", call)
    train(settings(tmp_path, training={"steps": 5}), tmp_path / "run")
    assert seen[0][0] == max(length for length, _ in seen), "the longest pairs"
    same_tensors(newest(tmp_path / "plain") / "model.safetensors", newest(tmp_path / "run") / "model.safetensors")
    monkeypatch.setattr(Objective, "__call__", real)
    monkeypatch.setattr(Trainer, "rehearse", lambda self: None)
    train(settings(tmp_path, training={"steps": 5}), tmp_path / "untried")
    for name in ("model.safetensors", "optimizer.safetensors"):
        same_tensors(newest(tmp_path / "run") / name, newest(tmp_path / "untried") / name)


def test_a_batch_that_does_not_fit_is_said_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, lambda batch: len(batch.rows) <= 1)
    listener = Listener()
    train(settings(tmp_path, training={"steps": 1}), tmp_path / "run", reporter=listener)
    assert "the memory does not hold a batch of" in listener.text
    assert "lower training.batch_tokens=36" in listener.text


def test_one_extreme_line_is_named_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone it does not fit, and no update has been made when that is known."""
    pairs = [("a b c", "c b a")] * 9 + [(" ".join("ab" * 40), " ".join("ba" * 40))] + [("a b", "b a")] * 5
    path = write_pairs(tmp_path / "extreme.tsv", pairs)
    narrow(monkeypatch, lambda batch: batch.source.ids.shape[1] < 60)
    listener = Listener()
    with pytest.raises(DataError, match=r"does not hold a single pair of 81 and 81 tokens \(.*extreme\.tsv:10\).*data\.too_long"):
        train(settings(tmp_path, data={"train": [path]}), tmp_path / "run", reporter=listener)
    assert listener.steps == 0


def test_an_extreme_validation_line_is_found_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eyeline.training.validation import Validator

    def full(self: Validator, rows: object) -> None:
        raise FULL

    monkeypatch.setattr(Validator, "_sums", full)
    listener = Listener()
    with pytest.raises(UserError, match=r"largest batch of the validation pairs .*batch_tokens=36"):
        train(settings(tmp_path), tmp_path / "run", reporter=listener)
    assert listener.steps == 0


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (FULL, True),
        (CPU, True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 18.13 GB)"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("memory"), False),
    ],
    ids=str,
)
def test_what_a_full_memory_says(error: BaseException, is_one: bool) -> None:
    assert out_of_memory(error) is is_one


def test_other_errors_are_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, lambda batch: False, RuntimeError("a defect"))
    with pytest.raises(RuntimeError, match="a defect"):
        train(settings(tmp_path), tmp_path / "run")
