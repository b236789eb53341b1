"""Several processes that train together, forked from one that has imported everything. Knows processes; nothing of training."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

import torch

FORKS = multiprocessing.get_context("forkserver")
PRELOADED = ["eyeline.training", "torch.utils.tensorboard", "torch._dynamo", "torch.distributed.fsdp", "torch.distributed.tensor"]


def together(ranks: int, work: Callable[..., Any], *arguments: Any, timeout: float = 120.0) -> list[Any]:
    """What `work(*arguments)` returns on each of so many ranks; its exception, where it raises one."""
    FORKS.set_forkserver_preload(PRELOADED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(ranks):
        receiving, sending = FORKS.Pipe(duplex=False)
        process = FORKS.Process(target=_on, args=(rank, ranks, port, sending, work, arguments))
        process.start()
        sending.close()
        started.append((process, receiving))
    results = []
    for process, receiving in started:
        assert receiving.poll(timeout), f"rank {len(results)} of {ranks} hangs"
        results.append(receiving.recv())
        process.join()
    return results


def _on(rank: int, ranks: int, port: int, sending: Any, work: Callable[..., Any], arguments: Any) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    try:
        result = work(*arguments)
    except Exception as error:
        traceback.print_exc()
        result = error
    sending.send(result)
    sending.close()
