"""Everything a run needs to go on as if it had never stopped, on the disk. Knows tensors and numbers; not the loop.

A checkpoint is a directory `step-N` with model.safetensors, optimizer.safetensors (moments and random states) and state.json.
It is written beside and renamed, so that a directory of that name is whole; no pickle anywhere.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file, save_model
from torch import Tensor, nn

from eyeline.errors import RunError
from eyeline.files import directory_beside
from eyeline.runs import load_weights
from eyeline.training.schedules import Progress

_NAME = re.compile(r"step-(\d+)")


@dataclass
class Position:
    """Where a run is."""

    step: int = 0  # updates made
    epoch: int = 0
    batch: int = 0  # batches of this epoch already used
    target_tokens: int = 0  # real target tokens seen, END counted
    seconds: float = 0.0  # of training, over all sessions
    skipped: int = 0  # updates left out because a loss or gradient was not finite


@dataclass
class Loaded:
    """What a checkpoint gives back beside the weights and the optimiser, which it has filled."""

    path: Path
    position: Position
    progress: Progress


def list_checkpoints(directory: Path) -> list[tuple[int, Path]]:
    """(step, path) of each checkpoint in a run's `checkpoints/`, by number, oldest first."""
    if not directory.is_dir():
        return []
    found = [(int(match[1]), path) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name)) and path.is_dir()]
    return sorted(found)


def save(
    directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer, position: Position, progress: Progress, keep: int
) -> Path:
    """Writes `step-N` and then removes all but the newest `keep`.

    Raises:
        UserError: when it cannot be written; the checkpoints before it are then untouched.
    """
    path = directory / f"step-{position.step}"
    with directory_beside(path) as beside:
        save_model(model, str(beside / "model.safetensors"))
        save_file(_optimizer_tensors(optimizer) | _random_tensors(), str(beside / "optimizer.safetensors"))
        state = {"version": 1, "position": asdict(position), "progress": asdict(progress)}
        (beside / "state.json").write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    for _, old in list_checkpoints(directory)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def load_newest(
    directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer, warn: Callable[[str], None]
) -> Loaded | None:
    """Fills model, optimiser and random states from the newest checkpoint that is whole; None when there is none at all.

    A damaged one is passed over, and said through `warn`.

    Raises:
        RunError: when there are checkpoints and every one is damaged.
    """
    found = list_checkpoints(directory)
    for _, path in reversed(found):
        try:
            return _load(path, model, optimizer)
        except RunError as error:
            warn(f"checkpoint passed over: {error}")
    if found:
        raise RunError("every checkpoint is damaged", str(directory), "train anew into another directory")
    return None


def peek(directory: Path) -> tuple[Position, Progress] | None:
    """Where the newest checkpoint stands, without loading it; None when there is none that can be read."""
    for _, path in reversed(list_checkpoints(directory)):
        try:
            return _state(path)
        except RunError:
            continue
    return None


def _state(path: Path) -> tuple[Position, Progress]:
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        return Position(**state["position"]), Progress(**state["progress"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> RunError:
    return RunError(f"damaged: {' '.join(str(error).split())[:200]}", str(path))


def _load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> Loaded:
    position, progress = _state(path)
    try:
        tensors = load_file(str(path / "optimizer.safetensors"))
        _check_moments(optimizer, tensors)
    except (OSError, ValueError, SafetensorError) as error:
        raise _damaged(path, error) from None
    load_weights(model, path / "model.safetensors")
    _fill_optimizer(optimizer, tensors)
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return Loaded(path, position, progress)


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and counts by the parameter's number."""
    tensors = {}
    for number, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{number}.{name}"] = value.contiguous()
    return tensors


def _random_tensors() -> dict[str, Tensor]:
    tensors = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    return tensors


def _check_moments(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    for number, parameter in enumerate(_parameters(optimizer)):
        moment = tensors.get(f"{number}.exp_avg")
        if moment is not None and moment.shape != parameter.shape:
            raise ValueError(f"optimiser state of parameter {number} has shape {tuple(moment.shape)}")


def _fill_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        number, _, field = name.partition(".")
        if number != "random":
            state.setdefault(int(number), {})[field] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
