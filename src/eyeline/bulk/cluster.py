"""Shards spread over the processes of a Ray cluster, or of this machine. Knows Ray's actors; not what becomes of a shard.

Ray Data can read, map and write tables, but its writer names files after its own tasks and begins everything anew when it is
started anew. Here a shard is a task and its file is its result, so that what is done is seen from the files alone.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.bulk.fingerprints import PARTS
from eyeline.bulk.places import Shard
from eyeline.bulk.shards import Done, Work, predict_shard
from eyeline.errors import UserError, require
from eyeline.memory import keep_freed_memory
from eyeline.predictor import SearchOptions, Term, load
from eyeline.predictor.shortlist import SHORTLIST

TRIES = 4  # times that a shard is begun before it is given up, where each time its process dies

Files = dict[str, bytes]  # of a run, by name


@dataclass(frozen=True)
class Asking:
    """What a process needs to predict as the one that started it would."""

    options: SearchOptions
    terms: Sequence[Term]
    ensemble_mean: str
    precision: str
    shortlist: bool
    device: str
    threads: int


def run_files(run: Path) -> Files:
    """A run as it is sent to other machines."""
    return {name: path.read_bytes() for name in (*PARTS, SHORTLIST) if (path := run / name).is_file()}


class Worker:
    """A process that holds the model.

    Args:
        runs: the run, and those that answer together with it.
    """

    def __init__(self, runs: Sequence[Files], asking: Asking, work: Work) -> None:
        import torch

        torch.set_num_threads(asking.threads)
        keep_freed_memory()
        with tempfile.TemporaryDirectory() as name:
            folders = [Path(name) / str(number) for number in range(len(runs))]
            for folder, files in zip(folders, runs, strict=True):
                folder.mkdir()
                for part, content in files.items():
                    (folder / part).write_bytes(content)
            first, *others = folders
            self._predictor = load(
                first,
                asking.device,
                ensemble=others,
                ensemble_mean=asking.ensemble_mean,
                precision=asking.precision,
                shortlist=asking.shortlist,
            )
        self._asking, self._work = asking, work

    def predict(self, shard: Shard) -> Done:
        ask = self._predictor.answerer(self._asking.options, self._asking.terms, str(shard.source))
        try:
            return predict_shard(ask, shard, self._work)
        except UserError as error:
            return Done(failure=str(error))


def predict_shards(
    shards: Sequence[Shard], runs: Sequence[Path], asking: Asking, work: Work, workers: int | None
) -> Iterator[tuple[Shard, Done]]:
    """Every shard and what became of it, as they come. A process that dies is replaced, and its shard begun anew.

    Args:
        workers: processes, each of `asking.threads` processors, or of one GPU; None: as many as the cluster has room for.

    Raises:
        MissingExtra: without Ray.
        UserError: no cluster can be reached or started.
    """
    ray: Any = require("ray", "cluster")
    graphic = asking.device.startswith("cuda")
    _connect(ray, workers, asking.threads)
    try:
        have = ray.cluster_resources().get("GPU" if graphic else "CPU", 0)
        room = max(1, int(have if graphic else have // asking.threads))
        count = min(room if workers is None else min(workers, room), len(shards))
        kind = ray.remote(num_cpus=asking.threads, num_gpus=int(graphic), max_restarts=-1, max_task_retries=TRIES - 1)(Worker)
        sent = ray.put([run_files(run) for run in runs])
        yield from _spread(ray, [kind.remote(sent, asking, work) for _ in range(count)], shards)
    finally:
        ray.shutdown()


def _spread(ray: Any, actors: Sequence[Any], shards: Sequence[Shard]) -> Iterator[tuple[Shard, Done]]:
    """Each actor has one shard at a time, and the next one when that is done."""
    waiting, idle = deque(shards), deque(actors)
    busy: dict[Any, tuple[Any, Shard]] = {}
    while waiting or busy:
        while waiting and idle:
            actor, shard = idle.popleft(), waiting.popleft()
            busy[actor.predict.remote(shard)] = actor, shard
        (ready,), _ = ray.wait(list(busy), num_returns=1)
        actor, shard = busy.pop(ready)
        idle.append(actor)
        try:
            yield shard, ray.get(ready)
        except ray.exceptions.RayActorError:
            yield shard, Done(failure=f"each of the {TRIES} processes that began it died ({shard.source})")


def _connect(ray: Any, workers: int | None, threads: int) -> None:
    """Joins the cluster that RAY_ADDRESS names, or starts one on this machine."""
    address = os.environ.get("RAY_ADDRESS")
    local = {} if address else {"num_cpus": (workers or os.cpu_count() or 1) * threads, "include_dashboard": False}
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False, **local)
    except Exception as error:  # Ray raises plain ones
        what = f"no cluster: {' '.join(str(error).split())}"
        raise UserError(what, f"RAY_ADDRESS={address}" if address else "--cluster ray") from error
