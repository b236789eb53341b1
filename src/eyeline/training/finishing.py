"""What becomes of a run's weights when it ends: the mean of its snapshots, where that is better. Knows runs and validations."""

from __future__ import annotations

import shutil

import torch

from eyeline.files import beside
from eyeline.ladder import Seq2Seq
from eyeline.runs import Run, save_weights
from eyeline.training.loop import Trainer
from eyeline.training.reporting import Reporter
from eyeline.training.snapshots import BEST, Snapshots, fill
from eyeline.training.validation import Validator
from eyeline.training.weights import gathered


def keep_mean(run: Run, model: Seq2Seq, trainer: Trainer, validate: Validator | None, reporter: Reporter) -> str:
    """Takes the mean of the run's snapshots, scores it, and keeps it if it is better than the best single weights.

    Without validation pairs it is kept as it is. The model is left with the weights of the last update. Every process must call
    it; the first writes.

    Returns:
        What was kept, in words; empty where there is nothing to average.
    """
    snapshots, kept = trainer.snapshots, trainer.state.snapshots
    if snapshots is None or not kept:
        return ""
    what = f"the mean of {len(kept)}: steps {', '.join(f'{step:,}' for step, _ in kept)}"
    trainer.world.wait()  # for the files that the first has written
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fill(model, snapshots.mean(kept))
    model.eval()
    try:
        with gathered(trainer.weights):
            score = None if validate is None else validate(trainer.position, "average")
        if score is not None and not trainer.progress.improves(score):
            _restore_best(run, snapshots)
            better = f"{score:.4f} is not better than {trainer.progress.best:.4f}"
            reporter.note(f"{what}: {run.config.training.metric} {better}, so the best single weights stay")
            return ""
        metadata = {"step": trainer.position.step, "average": [step for step, _ in kept], "version": 1}
        save_weights(model, run.weights, metadata, write=trainer.world.first)
    finally:
        with torch.no_grad():
            model.load_state_dict(before)
    reporter.note(f"{what}: " + ("kept" if score is None else f"{run.config.training.metric} {score:.4f}, kept"))
    return what


def _restore_best(run: Run, snapshots: Snapshots) -> None:
    """The best single weights, where an earlier end of the run has put a mean in their place."""
    if snapshots.write and (snapshots.directory / BEST).exists():
        with beside(run.weights) as temporary:
            shutil.copyfile(snapshots.directory / BEST, temporary)
