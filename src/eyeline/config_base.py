"""What every settings class is made of: the base that forbids unknown keys, and numbers and durations that are checked."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _seconds(value: Any) -> Any:
    """`90`, `"45m"`, `"1h30m"` to seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = value.replace(" ", "") if isinstance(value, str) else ""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if "".join(number + unit for number, unit in parts) != text or not parts or any(not unit for _, unit in parts[1:]):
        raise ValueError("a duration is written as 90s, 45m, 1h30m or a number of seconds")
    return sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)


def _written_duration(seconds: float) -> str:
    """`45m` for 2700.0: the largest unit that leaves a whole number, else seconds with every digit that they have."""
    whole = [unit for unit in "hms" if seconds % _UNITS[unit] == 0]
    return f"{seconds / _UNITS[whole[0]]:.0f}{whole[0]}" if whole else f"{Decimal(repr(seconds)):f}s"


Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=1e9), PlainSerializer(_written_duration, return_type=str)]


def _no_truth(value: Any) -> Any:
    """Python takes true for 1; a settings file does not."""
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Real = Annotated[float, BeforeValidator(_no_truth)]
Fraction = Annotated[Real, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """The base of every settings class: no unknown keys, checked on assignment, never changed in place."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, populate_by_name=True, allow_inf_nan=False
    )
