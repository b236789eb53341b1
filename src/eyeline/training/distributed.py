"""Several processes that train one model: who is who, what they add up, who speaks for all. Knows processes and numbers.

`torchrun` starts them and says in the environment who is who. A process alone is a world of one, where all this does nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from eyeline.errors import ConfigError, RunError, UserError

# How long one waits for another: the first may be training a tokenizer. A process that has died is noticed at once.
PATIENCE = timedelta(hours=12)
SHORTLY = timedelta(seconds=10)
BUCKET = 8_000_000  # numbers that travel at a time, 32 MB in fp32
PREFIX = "eyeline"  # of what we keep in the launcher's store

T = TypeVar("T")


class ProcessLost(UserError):
    """Another process of the run has died. Where that one could say why, this need not be said: see `speaks`."""


@dataclass(frozen=True)
class World:
    """The processes that train together. All but `own` and `first` is to be called by every one of them, in the same order."""

    rank: int = 0
    size: int = 1
    group: Any = None  # the processes as CPU tensors travel between them; None is the default group
    store: Any = None  # what the launcher keeps for all of them, over restarts too; None without one

    @property
    def first(self) -> bool:
        """Whether this is the process that writes the files and the messages."""
        return self.rank == 0

    def own(self, items: Sequence[T]) -> list[T]:
        """This process's share of what is to be done once over all processes: every `size`-th, so that shares are alike."""
        return list(items[self.rank :: self.size])

    def wait(self) -> None:
        """Until every process is here.

        By a barrier, which brings no tensor of Python's: gloo's thread may hold the last reference to what was summed, wants the
        interpreter to drop it, and aborts the process where that is just ending.
        """
        if self.size > 1:
            with between_processes():
                dist.barrier(group=self.group)

    def sum(self, *values: float) -> list[float]:
        """Each value summed over the processes, in double precision: the same bits on every one."""
        if self.size == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64)
        with between_processes():
            dist.all_reduce(numbers, group=self.group)
        return numbers.tolist()

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any process."""
        return self.sum(float(flag))[0] > 0

    def of_first(self, value: float) -> float:
        """What the first process says; on the others `value` does not matter."""
        if self.size == 1:
            return value
        numbers = torch.tensor([value], dtype=torch.float64)
        with between_processes():
            dist.broadcast(numbers, 0, group=self.group)
        return float(numbers)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, by rank. On the CPU, of one shape and type."""
        if self.size == 1:
            return [tensor]
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        with between_processes():
            dist.all_gather(found, tensor.contiguous(), group=self.group)
        return found

    def texts(self, own: Sequence[str]) -> list[list[str]]:
        """The texts of all processes, by rank; each may have any number of them."""
        if self.size == 1:
            return [list(own)]
        written = torch.frombuffer(bytearray(json.dumps(list(own)).encode()), dtype=torch.uint8)
        lengths = [int(length) for length in self.gather(torch.tensor(len(written)))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(written)] = written
        found = self.gather(padded)
        return [json.loads(bytes(text[:length].tolist())) for text, length in zip(found, lengths, strict=True)]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Sums each tensor over the processes, in place. As many on every process, of the same shapes, on one device."""
        if self.size == 1:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            with between_processes():
                dist.all_reduce(flat)
            for tensor, summed in zip(bucket, torch.split(flat, [tensor.numel() for tensor in bucket]), strict=True):
                tensor.copy_(summed.view_as(tensor))

    def copy_from_first(self, tensors: Sequence[Tensor]) -> None:
        """Overwrites each tensor with that of the first process."""
        if self.size > 1:
            for tensor in tensors:
                with between_processes():
                    dist.broadcast(tensor, 0)

    def agree(self, own: str, what: str, where: str) -> None:
        """Raises RunError on every process when `own`, by which `what` can be told, is not the same on all."""
        if len({text for texts in self.texts([own]) for text in texts}) > 1:
            raise RunError(f"{what} is not the same for every process", where, "all of them must see the same files")

    # ---- restarts ---------------------------------------------------------------------------------------------------

    def has_begun(self, what: str) -> bool:
        """Whether this launch has begun `what` before: then it was restarted since, after a process had died."""
        return self.store is not None and self.store.add(f"{PREFIX}/begun/{what}", 0) > 0

    def begins(self, what: str) -> None:
        if self.store is not None and self.first:
            self.store.add(f"{PREFIX}/begun/{what}", 1)


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """Inside, this process is one of those that the launcher started with it, or of a process group that is there already.

    Raises:
        ConfigError: several processes cannot train on a device of this kind.
        ProcessLost: the others do not come.
    """
    if dist.is_available() and dist.is_initialized():  # whoever called us made it, and ends it
        yield World(dist.get_rank(), dist.get_world_size(), dist.new_group(backend="gloo", timeout=PATIENCE))
        return
    if processes() == 1:
        yield World(store=_launcher_store())
        return
    if device.type not in ("cpu", "cuda"):
        raise ConfigError("several processes train on cpu or cuda", f"--device {device}", "start one process")
    with between_processes():
        store, rank, size = next(dist.rendezvous("env://", timeout=PATIENCE))  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        own = dist.PrefixStore(f"{PREFIX}/{_attempt()}", store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=PATIENCE)
    world = World(rank, size, store=_launcher_store())
    try:
        yield world
        world.wait()
    except ProcessLost:
        raise
    except BaseException:
        speaks()  # before the others notice that we are gone
        raise
    finally:
        dist.destroy_process_group()


def processes() -> int:
    """How many processes the launcher started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_device(name: str) -> str:
    """The device of this process: of several on one machine each has its own CUDA device.

    Raises:
        ConfigError: there are fewer devices than processes, or they are to share one.
    """
    if processes() == 1 or not name.startswith("cuda"):
        return name
    if name != "cuda":
        raise ConfigError(f"{processes()} processes on one device", f"--device {name}", "--device cuda gives each its own")
    place, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if place >= count:
        here = os.environ.get("LOCAL_WORLD_SIZE", str(place + 1))
        raise ConfigError(f"{here} processes here, and {count} CUDA devices", "--device cuda", f"--nproc-per-node {count}")
    torch.cuda.set_device(place)
    return f"cuda:{place}"


@cache
def speaks() -> bool:
    """Whether this process, which has just failed, is the first that did: what it has to say is said once, and the others follow
    from it. True where no launcher keeps count. Asked for again, the answer is the same."""
    store = _launcher_store() if processes() > 1 else None
    if store is None:
        return True
    try:
        return bool(store.add(f"{PREFIX}/failed/{_attempt()}", 1) == 1)
    except RuntimeError:  # the launcher has gone
        return True


def _launcher_store() -> Any:
    """A store that outlives this process; None without a launcher that has one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    try:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        return dist.TCPStore(host, port, is_master=False, timeout=SHORTLY)  # type: ignore[attr-defined]
    except (RuntimeError, KeyError):
        return None


def _attempt() -> str:
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


@contextmanager
def between_processes() -> Iterator[None]:
    """Inside, whatever is wrong between processes means that one is no longer there."""
    try:
        yield
    except RuntimeError as error:
        if "memory" in str(error):
            raise
        what = "another process of this run has died"
        raise ProcessLost(what, f"WORLD_SIZE={processes()}", "--resume goes on from the newest checkpoint") from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one type together, about `BUCKET` numbers at a time."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and (tensor.dtype != bucket[0].dtype or sum(t.numel() for t in bucket) + tensor.numel() > BUCKET):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
