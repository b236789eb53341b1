"""What a planted fault is, and the list of all of them. Knows no code of eyeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    plant: Plant
    rung: str  # a name in rungs.RUNGS; "" for the loss
    caught_by: str  # a check of the battery, or of the loss


FAULTS: dict[str, Fault] = {}


def fault(rung: str, caught_by: str) -> Callable[[Plant], Plant]:
    """Enters the function below it in the list."""

    def enter(plant: Plant) -> Plant:
        assert plant.__name__ not in FAULTS, f"there is another fault of the name {plant.__name__}"
        FAULTS[plant.__name__] = Fault(plant, rung, caught_by)
        return plant

    return enter
