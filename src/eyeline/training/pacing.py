"""How far a run is and when it ends, by what has been. Knows settings and numbers."""

from __future__ import annotations

from eyeline.config import TrainingSettings
from eyeline.training.reporting import Pace
from eyeline.training.state import Meter, Position, share


def pace(
    settings: TrainingSettings, position: Position, total: int | None, shown: Meter, learning_rate: float, validates: bool
) -> Pace:
    """Where a run stands at `position`, with a forecast from its pace so far, validations and saving included.

    Args:
        total: updates in the whole run; None when neither steps nor epochs bound it. Of epochs it is a forecast.
        shown: sums since the pace was last shown.
        validates: whether there are validation pairs.
    """
    step, done = position.step, share(settings, position, total)
    per_step = position.seconds / max(1, step)
    left = position.seconds * (1 - done) / done if done > 0 else None
    to_validation = (settings.validate_every - step % settings.validate_every) * per_step if validates else None
    whole = None if total is None else max(step, total)
    return Pace(step, whole, shown.loss, shown.tokens_per_s, learning_rate, left, to_validation)
