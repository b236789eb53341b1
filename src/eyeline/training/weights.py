"""Where the weights of a model are while several processes train it: whole in each, or each with a part of every one.

Knows tensors and processes; not what the weights mean. Written files do not show it: they hold whole tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from eyeline.errors import ConfigError, RunError
from eyeline.runs import load_weights, own_tensors
from eyeline.training.distributed import World


class Weights(Protocol):
    """The weights of one model. All but `forget` and `part` are to be called by every process, in the same order."""

    def gather(self) -> None:
        """Makes them whole, for batches to run through the model; before a window and before anything else that does."""

    def release(self) -> None:
        """Lets go of what `gather` brought."""

    def exchange(self) -> None:
        """Sums the gradients of a window over the processes, whatever each has worked through, and releases the weights.

        A process without a gradient for a weight counts as zero. Where none has one, there is none.
        """

    def forget(self) -> None:
        """Throws gradients away, those of a window that has not been exchanged included. Each process may, when it likes."""

    def clip(self, limit: float) -> float:
        """Scales gradients so that their norm is at most `limit`, 0 for no limit; returns the norm that it was."""

    def tensors(self) -> dict[str, Tensor]:
        """Whole tensors under the names of the model's state, shared ones once."""

    def load(self, path: Path) -> None:
        """Fills the model from a file of such tensors.

        Raises:
            RunError: it is damaged, or of another model.
        """

    def whole(self, tensor: Tensor) -> Tensor:
        """A tensor of the optimiser's, whole."""

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """The reverse: what of a whole tensor goes with the weight `like`."""


class Replicas:
    """Every process has all weights, and with the same gradients they stay alike."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self.model, self.world = model, world
        world.copy_from_first([tensor.data for tensor in (*model.parameters(), *model.buffers())])

    def gather(self) -> None: ...

    def release(self) -> None: ...

    def exchange(self) -> None:
        _everywhere(self.model, self.world)
        self.world.add_up([parameter.grad for parameter in self.model.parameters() if parameter.grad is not None])

    def forget(self) -> None:
        self.model.zero_grad(set_to_none=True)

    def clip(self, limit: float) -> float:
        return float(clip_grad_norm_(self.model.parameters(), limit or math.inf))

    def tensors(self) -> dict[str, Tensor]:
        return own_tensors(self.model)

    def load(self, path: Path) -> None:
        load_weights(self.model, path)

    def whole(self, tensor: Tensor) -> Tensor:
        return tensor

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        return tensor


class Shards:
    """Each process has a part of every weight, of its gradient and of its moments (FSDP2, `torch.distributed.fsdp.fully_shard`).

    Weights are whole while a window is worked through, and so are its gradients; in between, and all the time for the moments,
    a process holds 1/N. The model is one unit: a window has as many passes as each process likes, and one exchange at its end.

    Raises:
        ConfigError: this PyTorch has no FSDP2 that can do it.
    """

    def __init__(self, model: nn.Module, world: World, device: torch.device) -> None:
        self.model, self.world, self.device = model, world, device
        world.copy_from_first([tensor.data for tensor in (*model.parameters(), *model.buffers())])
        self._unit: Any = _sharded(_Unit(model), world, device)
        self._parts = list(model.parameters())

    def gather(self) -> None:
        self._unit.unshard()

    def release(self) -> None:
        self._unit.reshard()

    def exchange(self) -> None:
        _everywhere(self.model, self.world)
        # An empty pass: behind its backward pass, all gradients that wait in whole weights are summed and parted.
        self._unit(torch.zeros((), device=self.device, requires_grad=True)).backward()

    def forget(self) -> None:
        for parameter in (*self._parts, *self.model.parameters()):  # the latter are others while the weights are whole
            parameter.grad = None

    def clip(self, limit: float) -> float:
        norm: Any = clip_grad_norm_(self.model.parameters(), limit or math.inf)
        return float(norm.full_tensor())

    def tensors(self) -> dict[str, Tensor]:
        return {name: self.whole(tensor) for name, tensor in _named(self.model).items()}

    def load(self, path: Path) -> None:
        given, held = _read(path), _named(self.model)
        if given.keys() != held.keys() or any(given[name].shape != tensor.shape for name, tensor in held.items()):
            raise RunError("the weights are not those of this model", str(path))
        with torch.no_grad():
            for name, tensor in held.items():
                tensor.copy_(self.part(given[name], tensor))

    def whole(self, tensor: Tensor) -> Tensor:
        sharded: Any = tensor
        return sharded.full_tensor() if hasattr(tensor, "full_tensor") else tensor

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        if not hasattr(like, "full_tensor"):
            return tensor
        from torch.distributed.tensor import distribute_tensor

        sharded: Any = like
        moved = tensor.to(sharded.device_mesh.device_type, like.dtype)
        return distribute_tensor(moved, sharded.device_mesh, sharded.placements, src_data_rank=None)


@contextmanager
def gathered(weights: Weights) -> Iterator[None]:
    """Inside, the weights are whole."""
    weights.gather()
    try:
        yield
    finally:
        weights.release()


class _Unit(nn.Module):
    """What FSDP2 hangs its work on."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, nothing: Tensor) -> Tensor:
        return nothing * 1


def _sharded(unit: _Unit, world: World, device: torch.device) -> Any:
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        sharded: Any = fully_shard(unit, mesh=init_device_mesh(device.type, (world.size,)), reshard_after_forward=False)
        sharded.set_gradient_divide_factor(1.0)  # sums: the windows' tokens have been divided by already
        sharded.set_force_sum_reduction_for_comms(True)
    except (ImportError, AttributeError):
        what = f"PyTorch {torch.__version__} cannot shard weights so"
        raise ConfigError(what, "training.shard=true", "2.9 and newer can; or set it to false") from None
    return sharded


def _everywhere(model: nn.Module, world: World) -> None:
    """Gives a gradient of zeros to each weight that has one on another process only."""
    if world.size == 1:
        return
    parameters = list(model.parameters())
    counts = world.sum(*(float(parameter.grad is not None) for parameter in parameters))
    for parameter, count in zip(parameters, counts, strict=True):
        if count and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


def _named(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model's state, as they are, shared ones under their first name."""
    found, seen = {}, set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            found[name] = tensor
        seen.add(id(tensor))
    return found


def _read(path: Path) -> Mapping[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = load_file(str(path))
        return tensors
    except (OSError, ValueError) as error:
        raise RunError(f"damaged, or not in the safetensors format: {' '.join(str(error).split())[:200]}", str(path)) from None
