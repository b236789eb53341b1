"""What a run is, in figures. Knows run directories; measures nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyeline.data.coding import coder
from eyeline.runs import open_run, weights_metadata
from eyeline.training.checkpoints import peek


def describe(path: str | Path) -> dict[str, Any]:
    """What a run is: sizes, settings, how far it was trained and how well it did."""
    run = open_run(path)
    parameters = sum(parameter.numel() for parameter in run.build().parameters())
    facts: dict[str, Any] = {
        "run": str(path),
        "architecture": run.config.model.architecture,
        "parameters": parameters,
        "source_vocabulary": run.source.size,
        "target_vocabulary": run.target.size,
        "tokenizer": {"source": run.source.kind, "target": run.target.kind, **coder(run.config, run.source, run.target).instead},
        "features": len(run.source.features),
    }
    if run.weights.exists():
        metadata = weights_metadata(run.weights)
        facts["weights_of_step"] = metadata.get("step")
        if "average" in metadata:
            facts["weights_are_the_mean_of_steps"] = metadata["average"]
    state = peek(run.path / "checkpoints")
    if state is not None:
        position, progress = state
        facts |= {
            "steps": position.step,
            "epochs": position.epoch,
            "target_tokens": position.target_tokens,
            "training_seconds": round(position.seconds, 1),
            "best": None if progress.best is None else {progress.metric: progress.best, "step": progress.best_step},
        }
    facts["settings"] = run.config.to_dict()
    return facts
