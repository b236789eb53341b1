"""Everything a run needs to go on as if it had never stopped, on the disk. Knows tensors and files; not the loop.

A checkpoint is a directory `step-N` with model.safetensors, optimizer.safetensors (moments and random states) and state.json.
Of several processes the first writes; it has what all of them must remember, so that one, or other ones, can go on from there.
It is written beside and renamed, so that a directory of that name is whole; no pickle anywhere.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from eyeline.errors import RunError
from eyeline.files import directory_beside, remove_directory
from eyeline.runs import load_weights, own_tensors, part, tensors_written, whole
from eyeline.training.averaging import Averaging
from eyeline.training.distributed import World
from eyeline.training.randomness import random_states, restore
from eyeline.training.schedules import Progress
from eyeline.training.state import Position, State

_NAME = re.compile(r"step-([0-9]+)")
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
VERSION = 1


def list_checkpoints(directory: Path) -> list[tuple[int, Path]]:
    """(step, path) of each checkpoint in a run's `checkpoints/`, by number, oldest first."""
    if not directory.is_dir():
        return []
    found = [(int(match[1]), path) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name)) and path.is_dir()]
    return sorted(found)


def save(
    directory: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: State,
    keep: int,
    averaging: Averaging | None = None,
    world: World | None = None,
) -> Path:
    """Writes `step-N`, then removes all but the newest `keep` up to it, and any beyond it: those were found damaged.

    Every process of the `world` must call it; the first writes, after which nobody waits for it.

    Raises:
        UserError: when it cannot be written; the checkpoints before it are then untouched.
    """
    step = state.position.step
    path, world = directory / f"step-{step}", world or World()
    weights = own_tensors(model)
    average = {f"average.{name}": whole(value) for name, value in averaging.tensors().items()} if averaging else {}
    others = _optimizer_tensors(optimizer) | average | _random_states(_device(model), world)
    if not world.first:
        return path
    with directory_beside(path) as beside, tensors_written():
        save_file(weights, str(beside / MODEL))
        save_file(others, str(beside / OPTIMIZER))
        text = json.dumps({"version": VERSION, **state.to_dict()}, indent=1) + "\n"
        (beside / STATE).write_bytes(text.encode("utf-8"))
    for number, later in list_checkpoints(directory):
        if number > step:
            remove_directory(later)
    remove_old(directory, step, keep)
    return path


def remove_old(directory: Path, step: int, keep: int) -> None:
    """Removes all but the newest `keep` up to `step`, which a save does, or whoever goes on after a save that was cut short."""
    for _, old in [found for found in list_checkpoints(directory) if found[0] <= step][:-keep]:
        remove_directory(old)


def load_newest(
    directory: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    warn: Callable[[str], None],
    averaging: Averaging | None = None,
    world: World | None = None,
) -> State | None:
    """Fills model, optimiser, average and random states from the newest checkpoint that is whole; None when there is none at all.

    A process that was not there when it was written draws numbers of its own. A damaged one is passed over, which `warn` is told.

    Raises:
        RunError: when there are checkpoints and every one is damaged.
    """
    found = list_checkpoints(directory)
    for number, (_, path) in enumerate(reversed(found), 1):
        try:
            state = _load(path, model, optimizer, averaging, world or World())
        except RunError as error:
            warn(f"checkpoint passed over: {error}")
            continue
        if number > 1:
            warn(f"going on from the one before: {path}")
        return state
    if found:
        raise RunError("every checkpoint is damaged", str(directory), "train anew into another directory")
    return None


def states(directory: Path) -> list[State]:
    """Those of the whole checkpoints, oldest first."""
    found = []
    for _, path in list_checkpoints(directory):
        with suppress(RunError):
            found.append(_whole(path))
    return found


def peek(directory: Path) -> tuple[Position, Progress] | None:
    """Where the newest whole checkpoint stands, without loading its tensors; None when there is none."""
    for _, path in reversed(list_checkpoints(directory)):
        try:
            state = _whole(path)
        except RunError:
            continue
        return state.position, state.progress
    return None


def _whole(path: Path) -> State:
    """The state of a checkpoint whose files are all there and as long as their heads say."""
    try:
        for name in (MODEL, OPTIMIZER):
            with safe_open(str(path / name), "pt"):
                pass
        values = json.loads((path / STATE).read_bytes())
        if isinstance(values, dict) and values.pop("version", VERSION) != VERSION:
            raise ValueError("written by a later eyeline")
        return State.from_dict(values)
    except (OSError, ValueError, SafetensorError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> RunError:
    return RunError(f"damaged: {' '.join(str(error).split())[:200]}", str(path))


def _load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, averaging: Averaging | None, world: World) -> State:
    state = _whole(path)
    try:
        tensors = load_file(str(path / OPTIMIZER))
        moments = _moments(optimizer, tensors)
        random = _named(tensors, "random")
        if "cpu" not in random:
            raise ValueError("there is no state of the random generator")
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise _damaged(path, error) from None
    load_weights(model, path / MODEL)
    try:
        if averaging is not None:
            averaging.load(_named(tensors, "average"))
    except (ValueError, KeyError) as error:
        raise _damaged(path, error) from None
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    _restore_own(random, _device(model), world.rank)
    return state


def _random_states(device: torch.device, world: World) -> dict[str, Tensor]:
    """Those of all processes: `random.cpu` of the first, `random.cpu.1` of the next…"""
    states = random_states(device).items()
    return {f"random.{_of(kind, rank)}": own for kind, state in states for rank, own in enumerate(world.gather(state))}


def _restore_own(states: dict[str, Tensor], device: torch.device, rank: int) -> None:
    own = {kind: states[_of(kind, rank)] for kind in ("cpu", device.type) if _of(kind, rank) in states}
    if "cpu" in own:
        restore(own, device)
    else:
        torch.manual_seed(zlib.crc32(states["cpu"].numpy().tobytes()) + rank)


def _of(kind: str, rank: int) -> str:
    return f"{kind}.{rank}" if rank else kind


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and counts by the parameter's number."""
    tensors = {}
    for number, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{number}.{name}"] = whole(value).contiguous()
    return tensors


def _moments(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """The reverse. Raises ValueError for tensors that are not those of this optimiser."""
    parameters, state = _parameters(optimizer), dict[int, dict[str, Tensor]]()
    for name, value in tensors.items():
        number, _, field = name.partition(".")
        if number in ("random", "average"):
            continue
        if not number.isdecimal() or int(number) >= len(parameters):
            raise ValueError(f"'{name}' belongs to no parameter")
        if value.dim() and value.shape != parameters[int(number)].shape:
            raise ValueError(f"optimiser state of parameter {number} has shape {tuple(value.shape)}")
        state.setdefault(int(number), {})[field] = part(value, parameters[int(number)]) if value.dim() else value
    return state


def _named(tensors: dict[str, Tensor], kind: str) -> dict[str, Tensor]:
    """Those whose names begin with `kind.`, without that."""
    return {name.removeprefix(f"{kind}."): value for name, value in tensors.items() if name.startswith(f"{kind}.")}


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
