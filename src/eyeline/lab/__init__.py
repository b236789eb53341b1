"""The laboratory: what is said of these architectures, measured. One file an experiment; each gives a figure, a table, values.

Knows models, data and figures; a claim, what was measured and what came of it stand in docs/lab/NAME.md.
"""

from __future__ import annotations

import importlib

from eyeline.errors import ConfigError, nearest
from eyeline.lab.bench import Bench, Experiment
from eyeline.lab.findings import Findings, Table
from eyeline.lab.writing import conduct

EXPERIMENTS = ("saturation", "gradients", "dilution", "order", "cost", "capacity", "faithfulness", "alignment")


def experiment(name: str) -> Experiment:
    """Raises ConfigError with the nearest valid name."""
    if name not in EXPERIMENTS:
        raise ConfigError("no such experiment", name, nearest(name, EXPERIMENTS))
    found: Experiment = importlib.import_module(f"eyeline.lab.{name}").EXPERIMENT
    return found


__all__ = ["EXPERIMENTS", "Bench", "Experiment", "Findings", "Table", "conduct", "experiment"]
