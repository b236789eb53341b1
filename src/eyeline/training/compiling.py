"""A model whose passes in training are compiled (`torch.compile`). Knows modules; not what they do.

Validation, prediction and the search for a number that is none run the same modules as they were written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.errors import ConfigError

BACKEND = "inductor"


def compile_parts(model: Any) -> None:
    """Lets encoder and decoder be compiled as they are first called, each for all lengths and batches at once. Weights keep their
    names.

    Args:
        model: has `encoder` and `decoder`.
    """
    parts: list[nn.Module] = [model.encoder, model.decoder]
    for part in parts:
        part.compile(backend=BACKEND, dynamic=True)


@contextmanager
def as_written() -> Iterator[None]:
    """Inside, nothing that was compiled is used."""
    if "torch._dynamo" not in sys.modules:  # which takes a second to import: nothing was compiled
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def check_compiler(device: torch.device) -> None:
    """Compiles something small. Raises ConfigError where that cannot be."""
    try:
        probe: Callable[[Tensor], Tensor] = torch.compile(_probe, backend=BACKEND)
        probe(torch.ones(3, device=device))
    except Exception as error:  # of a compiler, a driver, a system that has none: there is no common kind
        why = " ".join(str(error).split())[:200]
        what = f"PyTorch cannot compile on this machine: {type(error).__name__}: {why}"
        raise ConfigError(what, "training.compile=true", "set it to false, or install a C++ compiler") from None


def _probe(numbers: Tensor) -> Tensor:
    return numbers.sin() * 2
