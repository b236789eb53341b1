"""Every planted fault is caught by the check that is meant to catch it, and without the fault that check passes."""

from __future__ import annotations

import pytest

import battery
from faults import FAULTS, Fault
from loss_checks import LOSS_CHECKS
from rungs import RUNGS, make


def check(fault: Fault) -> None:
    if fault.rung:
        battery.run(fault.caught_by, *make(RUNGS[fault.rung]))
    else:
        LOSS_CHECKS[fault.caught_by]()


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(name: str) -> None:
    fault = FAULTS[name]
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        with pytest.raises(AssertionError):
            check(fault)
    check(fault)


def test_every_check_catches_something() -> None:
    caught = {fault.caught_by for fault in FAULTS.values()}
    idle = (battery.CHECKS.keys() | LOSS_CHECKS.keys()) - caught
    assert not idle, f"no planted fault proves that these bite: {sorted(idle)}"
