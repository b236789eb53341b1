"""A run directory: settings, tokenizers and weights, read and written. Knows no training and no search."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, load_model, save_file
from torch import Tensor

from eyeline.config import Config
from eyeline.errors import RunError
from eyeline.files import beside, write_text
from eyeline.ladder import Seq2Seq, build
from eyeline.text.tokenizers import Tokenizer

CONFIG = "config.yaml"
WEIGHTS = "model.safetensors"
SOURCE_TOKENIZER = "source.tokenizer.json"
TARGET_TOKENIZER = "target.tokenizer.json"
METADATA = "eyeline"  # the entry of a weights file that is ours


@dataclass(frozen=True)
class Run:
    """A run directory that has settings and tokenizers."""

    path: Path
    config: Config
    source: Tokenizer
    target: Tokenizer

    @property
    def weights(self) -> Path:
        """The best weights by the validation metric."""
        return self.path / WEIGHTS

    def build(self) -> Seq2Seq:
        """The run's model with fresh weights."""
        shared = self.config.tokenizer.shared
        return build(self.config.model, self.source.size, self.target.size, shared)

    def load(self, device: torch.device | str = "cpu") -> Seq2Seq:
        """The run's model with its best weights, in evaluation mode.

        Raises:
            RunError: when there are none yet, or they are damaged or of another model.
        """
        if not self.weights.exists():
            raise RunError("no trained weights yet", str(self.weights), "go on with `eyeline train --out RUN --resume`")
        model = self.build()
        load_weights(model, self.weights)
        return model.to(device).eval()


def open_run(path: str | Path) -> Run:
    """Reads a run directory.

    Raises:
        RunError: when it is not one, or a part is absent or damaged.
    """
    path = Path(path)
    if not path.is_dir():
        raise RunError("no such run directory", str(path), "`eyeline train … --out RUN` makes one")
    if not (path / CONFIG).is_file():
        raise RunError(f"not a run directory: it has no {CONFIG}", str(path))
    config = Config.from_yaml(path / CONFIG)
    source = _tokenizer(path / SOURCE_TOKENIZER)
    target = source if config.tokenizer.shared else _tokenizer(path / TARGET_TOKENIZER)
    return Run(path, config, source, target)


def create_run(path: str | Path, config: Config, source: Tokenizer, target: Tokenizer) -> Run:
    """Writes settings and tokenizers of a new run; the settings last, so that a directory that has them has the rest."""
    run = Run(Path(path), config, source, target)
    source.save(run.path / SOURCE_TOKENIZER)
    if not config.tokenizer.shared:
        target.save(run.path / TARGET_TOKENIZER)
    save_config(run.path, config)
    return run


def save_config(path: Path, config: Config) -> None:
    write_text(path / CONFIG, config.to_yaml())


def save_weights(model: torch.nn.Module, path: Path, metadata: dict[str, Any] | None = None, *, write: bool = True) -> None:
    """Writes all weights once, shared ones under one name, whole or not at all.

    Args:
        write: False for a process that only brings its parts of the weights, while another one writes.

    Raises:
        UserError: when the disk is full or the place cannot be written; what stood at `path` is then still there.
    """
    tensors = own_tensors(model)
    if not write:
        return
    plain = {METADATA: json.dumps(metadata or {}, sort_keys=True)}  # one entry: the library writes several in any order
    with beside(path) as temporary, tensors_written():
        save_file(tensors, str(temporary), plain)


def own_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """The state of a model with shared weights once, under their first name; `load_weights` gives them to all their places.

    Weights of which each process has a part come whole; then every process must call this.
    """
    tensors: dict[str, Tensor] = {}
    seen: set[object] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        place = id(tensor) if is_part(tensor) else (tensor.data_ptr(), tensor.shape, tensor.stride())
        if place not in seen:
            tensors[name] = whole(tensor.detach()).contiguous()
        if tensor.numel():  # what is empty lies nowhere
            seen.add(place)
    return tensors


def is_part(tensor: Tensor) -> bool:
    """Whether each of several processes has a part of the tensor (a `DTensor`, as FSDP2 makes them)."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """The tensor, with the parts of all processes; then every one of them must call this."""
    given: Any = tensor
    return given.full_tensor() if is_part(tensor) else tensor


def part(tensor: Tensor, like: Tensor) -> Tensor:
    """What of a whole tensor belongs in the place of `like`: all of it, or this process's part."""
    if not is_part(like) or is_part(tensor):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    place: Any = like
    moved = tensor.to(place.device_mesh.device_type, like.dtype)
    return distribute_tensor(moved, place.device_mesh, place.placements, src_data_rank=None)


@contextmanager
def tensors_written() -> Iterator[None]:
    """Inside, what the safetensors library says of a full disk is the OSError that it is."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Fills `model` from a file of `save_weights`.

    Raises:
        RunError: when the file is not in the safetensors format, is cut short, or holds other weights.
    """
    try:
        if any(is_part(parameter) for parameter in model.parameters()):
            _load_parts(model, path)
        else:
            load_model(model, str(path))
    except FileNotFoundError:
        raise RunError("no such file", str(path)) from None
    except (SafetensorError, ValueError, OSError) as error:
        raise RunError(f"damaged, or not in the safetensors format: {_first_line(error)}", str(path)) from None
    except RuntimeError as error:
        raise RunError(f"the weights are not those of this model: {_first_line(error)}", str(path)) from None


def _load_parts(model: torch.nn.Module, path: Path) -> None:
    """Raises RuntimeError for other tensors than the model's."""
    given, named = load_file(str(path)), model.state_dict(keep_vars=True)
    places = {id(tensor): name for name, tensor in reversed(named.items())}  # shared ones by their first name
    if given.keys() != set(places.values()):
        raise RuntimeError(f"names differ: {' '.join(sorted(given.keys() ^ set(places.values()))[:3])}")
    with torch.no_grad():
        for name in given:
            if given[name].shape != named[name].shape:
                raise RuntimeError(f"{name} has shape {tuple(given[name].shape)}")
            named[name].copy_(part(given[name], named[name]))


def weights_metadata(path: Path) -> dict[str, Any]:
    """What `save_weights` was told beside the weights."""
    try:
        with safe_open(str(path), "pt") as file:
            stored = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise RunError(f"damaged, or not in the safetensors format: {_first_line(error)}", str(path)) from None
    try:
        values = json.loads(stored.get(METADATA, "{}"))
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise RunError("a part of the run is missing", str(path))
    return Tokenizer.load(path)
