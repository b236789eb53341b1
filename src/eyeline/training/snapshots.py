"""Weights kept at validations, of which the mean is taken when a run ends. Knows files and scores; not the loop."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from eyeline.config import LOWER_IS_BETTER, Metric
from eyeline.files import beside, remove_leftovers
from eyeline.runs import part, save_weights
from eyeline.training.averaging import mean_of_files

_NAME = re.compile(r"step-([0-9]+)\.safetensors")
BEST = "best.safetensors"

Kept = list[tuple[int, float]]  # (step, score) of each snapshot, oldest first


@dataclass(frozen=True)
class Snapshots:
    """The last or the best `most` snapshots of a run, as files in `directory`, and the best single weights beside them.

    Which of them count is a value that travels in checkpoints: a run that goes on from an older one has those of that time.
    """

    directory: Path
    rule: Literal["last", "best"]
    most: int
    metric: Metric
    write: bool = True  # False for a process that only brings its parts of the weights, while another one writes

    def take(self, model: nn.Module, step: int, score: float, kept: Kept) -> Kept:
        """Those that count after a validation of `score` at `step`. Of equal ones the older stays.

        Raises:
            UserError: when the weights cannot be written.
        """
        entries = [*(entry for entry in kept if entry[0] != step), (step, score)]
        if self.rule == "last":
            chosen = entries[-self.most :]
        else:
            sign = 1 if self.metric in LOWER_IS_BETTER else -1
            chosen = sorted(sorted(entries, key=lambda entry: sign * entry[1])[: self.most])
        if any(entry[0] == step for entry in chosen):
            save_weights(model, self._path(step), {"step": step, "version": 1}, write=self.write)
        return chosen

    def keep_best(self, weights: Path) -> None:
        """Remembers the best single weights, as a run has just written them to its own file, which may become a mean."""
        if self.write:
            with beside(self.directory / BEST) as temporary:
                shutil.copyfile(weights, temporary)

    def present(self, kept: Kept, warn: Callable[[str], None]) -> Kept:
        """Those of `kept` whose files are there and whole; of others a warning."""
        found = []
        for step, score in kept:
            try:
                with safe_open(str(self._path(step)), "pt"):
                    found.append((step, score))
            except (OSError, SafetensorError):
                warn(f"a snapshot for the average is absent or damaged, and left out: {self._path(step)}")
        return found

    def mean(self, kept: Kept) -> dict[str, Tensor]:
        """The mean of the snapshots' weights. Raises RunError where a file is damaged."""
        return mean_of_files([self._path(step) for step, _ in kept])

    def prune(self, counting: Iterable[Kept]) -> None:
        """Removes the files that none of `counting` names: those of every checkpoint that is kept."""
        if not self.write:
            return
        wanted = {step for kept in counting for step, _ in kept}
        remove_leftovers(self.directory)
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            match = _NAME.fullmatch(path.name)
            if match and int(match[1]) not in wanted:
                path.unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.directory / f"step-{step}.safetensors"


def list_snapshots(directory: Path) -> list[tuple[int, Path]]:
    """(step, path) of each snapshot in a run's `snapshots/`, by number, oldest first."""
    found = directory.iterdir() if directory.is_dir() else ()
    return sorted((int(match[1]), path) for path in found if (match := _NAME.fullmatch(path.name)))


def fill(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Gives a model the tensors of a file, in all places where they are shared."""
    with torch.no_grad():
        for name, value in model.state_dict(keep_vars=True).items():
            if name in tensors:
                value.copy_(part(tensors[name], value))
