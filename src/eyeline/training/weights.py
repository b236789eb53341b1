"""Where the weights of a model are while several processes train it: whole in each, or each with a part of every one.

Knows tensors and processes; not what the weights mean. Written files do not show it: they hold whole tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from eyeline.errors import ConfigError
from eyeline.training.distributed import World, between_processes


class Weights(Protocol):
    """The weights of one model. All but `forget` are to be called by every process, in the same order."""

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
        with between_processes():
            self._unit.unshard()

    def release(self) -> None:
        self._unit.reshard()

    def exchange(self) -> None:
        _everywhere(self.model, self.world)
        # An empty pass: behind its backward pass, all gradients that wait in whole weights are summed and parted.
        with between_processes():
            self._unit(torch.zeros((), device=self.device, requires_grad=True)).backward()

    def forget(self) -> None:
        for parameter in (*self._parts, *self.model.parameters()):  # the latter are others while the weights are whole
            parameter.grad = None

    def clip(self, limit: float) -> float:
        norm: Any = clip_grad_norm_(self.model.parameters(), limit or math.inf)
        return float(norm.full_tensor())


def placed(model: nn.Module, world: World, device: torch.device, shard: bool) -> Weights:
    """The weights as a setting wants them; a process alone has them whole. Raises ConfigError where they cannot be so."""
    return Shards(model, world, device) if shard and world.size > 1 else Replicas(model, world)


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
