"""Who takes part: a member for each rung and seed, with its settings and its place. Knows settings and paths; runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.config import Config
from eyeline.config_compare import Comparison, Rung

MEMBERS, TOKENIZERS, DATA = "members", "tokenizers", "data"


@dataclass(frozen=True, eq=False)
class Member:
    """A rung with a seed: one run, and what is found out about it. All of its files stand in `folder`."""

    rung: Rung
    seed: int
    config: Config
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.rung.name}, seed {self.seed}"

    @property
    def run(self) -> Path:
        """The run directory, as `eyeline train` makes them."""
        return self.folder / "run"

    @property
    def job(self) -> Path:
        """What its process is told."""
        return self.folder / "job.json"

    @property
    def log(self) -> Path:
        """What its process says."""
        return self.folder / "log.txt"

    @property
    def outputs(self) -> Path:
        """What it predicts of the test pairs; there when the member is done."""
        return self.folder / "outputs.json"

    @property
    def failure(self) -> Path:
        """Why it failed, when it did."""
        return self.folder / "failure.json"

    @property
    def speed(self) -> Path:
        """How fast it is, alone on the machine; of a rung's first seed that is done."""
        return self.folder / "speed.json"


def members(comparison: Comparison, out: Path, data: dict[str, Any], numbers: int) -> list[Member]:
    """Every rung with every seed, one seed of all rungs before the next: whoever stops early has whole comparisons.

    Args:
        out: the comparison's folder.
        data: what of the `data` section the preparation has settled, such as files of shorter pairs.
        numbers: in each element of a real-valued source; 0 for others.
    """
    settled = comparison.model_copy(update={"data": comparison.data.model_copy(update=data)})
    found = []
    for seed in comparison.seeds:
        for rung in comparison.chosen():
            config = settled.config(rung, seed)
            if numbers:
                config = config.model_copy(update={"model": config.model.model_copy(update={"element_size": numbers})})
            found.append(Member(rung, seed, config, out / MEMBERS / f"{rung.folder}-seed{seed}"))
    return found


def by_rung(members: Sequence[Member]) -> dict[str, list[Member]]:
    """The members of each rung, in the order of the ladder and of the seeds."""
    found: dict[str, list[Member]] = {}
    for member in members:
        found.setdefault(member.rung.name, []).append(member)
    return found
