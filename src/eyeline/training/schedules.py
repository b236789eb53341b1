"""Learning rates as functions of the step, and the one that listens to validations. Knows numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eyeline.config import LOWER_IS_BETTER, Metric, TrainingSettings


def learning_rate(settings: TrainingSettings, step: int, total: int | None, way: float | None = None) -> float:
    """The rate of update number `step`, counted from 1, before any plateau factor.

    All rise linearly over `warmup_steps` and reach `learning_rate` at the last of them, or at the first update without any.
    constant, plateau: stay there; inverse-sqrt: falls with √(warmup / step) (Vaswani et al. 2017, section 5.3, scaled so that
    the peak is `learning_rate`); linear: falls evenly, so that it is zero once the run is over; cosine: falls to zero as half a
    cosine does (Loshchilov & Hutter 2017, equation 5, without restarts).

    Args:
        total: updates in the whole run, where they are known beforehand.
        way: else, how much of what comes after the warm-up is done, in 0…1, by the bound of the run.
    """
    peak, warm = settings.learning_rate, max(1, settings.warmup_steps)
    if step <= warm:
        return peak * step / warm
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(warm / step)
    if not settings.ends:
        return peak
    if total is not None:
        way = min(1.0, (step - warm) / max(1, total + 1 - warm))
    assert way is not None, "the bound of every run that has a schedule which ends"
    return peak * (1 - way) if settings.schedule == "linear" else peak * (1 + math.cos(math.pi * way)) / 2


@dataclass
class Progress:
    """What validations have shown so far: the best score, and since when. Travels in every checkpoint.

    A tie is no improvement, and neither is NaN or an infinity.
    """

    metric: Metric
    best: float | None = None
    best_step: int = 0
    since_best: int = 0  # validations in a row without improvement: early stopping counts these
    since_decay: int = 0  # the same since the rate last fell
    factor: float = 1.0  # what the plateau schedule multiplies the rate with

    def improves(self, score: float) -> bool:
        """Whether `score` is better than every one before it."""
        if not math.isfinite(score):
            return False
        if self.best is None:
            return True
        return score < self.best if self.metric in LOWER_IS_BETTER else score > self.best

    def update(self, score: float, step: int, settings: TrainingSettings) -> bool:
        """Takes in a validation's score; returns whether it is the best so far."""
        better = self.improves(score)
        if better:
            self.best, self.best_step, self.since_best, self.since_decay = score, step, 0, 0
        else:
            self.since_best += 1
            self.since_decay += 1
            if settings.schedule == "plateau" and self.since_decay > settings.decay_patience:
                floor = min(1.0, settings.min_learning_rate / settings.learning_rate)
                self.factor, self.since_decay = max(self.factor * settings.decay, floor), 0
        return better

    def exhausted(self, patience: int) -> bool:
        """Whether `patience` validations in a row brought nothing; patience 0 never ends a run."""
        return patience > 0 and self.since_best >= patience
