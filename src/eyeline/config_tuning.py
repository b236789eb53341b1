"""Which settings are searched over, and where: ranges and choices beside a config. Settings alone; knows no search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError, field_validator, model_validator

from eyeline.config import Config
from eyeline.config_base import Duration, Real, Settings
from eyeline.config_yaml import config_error, put
from eyeline.errors import ConfigError

Plain = bool | int | float | str | None


class RangeSettings(Settings):
    from_: int | Real = Field(alias="from")
    """the least value"""
    to: int | Real
    """the largest value"""
    log: bool = False
    """drawn evenly by the logarithm: as many between 0.001 and 0.01 as between 0.01 and 0.1"""
    step: int | Real | None = Field(None, gt=0)
    """only from, from + step, from + 2 step, …"""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, values: Any) -> Any:
        return {"from": values[0], "to": values[1]} if isinstance(values, list) and len(values) == 2 else values

    @model_validator(mode="after")
    def _a_range(self) -> RangeSettings:
        if any(isinstance(value, bool) for value in (self.from_, self.to, self.step)):
            raise ValueError("numbers are wanted, not true or false")
        if self.from_ >= self.to:
            raise ValueError(f"from {self.from_:g} is not less than to {self.to:g}")
        if self.step is not None and self.step > self.to - self.from_:
            raise ValueError(f"step {self.step:g} leads beyond to {self.to:g}")
        if self.log and (self.from_ <= 0 or self.step is not None):
            raise ValueError("log wants from to be more than 0, and no step")
        return self

    def values(self) -> list[Plain]:
        """Both ends, and where there are steps the first."""
        return [self.from_, self.to, *([] if self.step is None else [self.from_ + self.step])]

    @property
    def whole(self) -> bool:
        """Whether its numbers could be whole ones."""
        return all(isinstance(value, int) for value in (self.from_, self.to, self.step or 1))


class ChoiceSettings(Settings):
    choices: list[Plain] = Field(min_length=1)
    """the values"""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, values: Any) -> Any:
        return {"choices": values} if isinstance(values, list) else values

    @field_validator("choices")
    @classmethod
    def _each_once(cls, values: list[Plain]) -> list[Plain]:
        if any(value in values[:place] and type(value) in map(type, values[:place]) for place, value in enumerate(values)):
            raise ValueError("a choice is given twice")
        return values

    def values(self) -> list[Plain]:
        """All of them."""
        return self.choices


def _kind(value: Any) -> str:
    """Two numbers are a range, any other list is one of choices."""
    if isinstance(value, ChoiceSettings) or (isinstance(value, dict) and "choices" in value):
        return "choices"
    numbers = isinstance(value, list) and len(value) == 2 and all(type(number) in (int, float) for number in value)
    return "choices" if isinstance(value, list) and not numbers else "range"


Where = Annotated[
    Annotated[RangeSettings, Tag("range")] | Annotated[ChoiceSettings, Tag("choices")],
    Discriminator(_kind),
]


class Space(Settings):
    """The `tune` section: a setting's dotted name, and where its value is looked for."""

    tune: dict[str, Where] = Field(min_length=1)
    """settings by their dotted names, and where the value of each is looked for"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `space_of` reads back."""
        return self.model_dump(mode="json", by_alias=True)


def with_values(values: dict[str, Any], drawn: dict[str, Any]) -> dict[str, Any]:
    """A copy of a config's plain values with settings, by their dotted names, put in."""
    result = dict(values)
    for name, value in drawn.items():
        put(result, name.split("."), value)
    return result


def space_of(values: dict[str, Any], where: str | Path = "") -> tuple[dict[str, Any], Space]:
    """Splits a config's plain values into those without `tune`, and that section, checked.

    Raises:
        ConfigError: there is no section, a name in it is no setting, or a value in it cannot be that setting's.
    """
    rest = {name: section for name, section in values.items() if name != "tune"}
    if not values.get("tune"):
        hint = "such as `tune: {model.dropout: [0.1, 0.4]}`"
        raise ConfigError("nothing to tune: the config has no section tune", str(where), hint)
    given = {"tune": values["tune"]}
    try:
        space = Space.model_validate(given)
    except ValidationError as error:
        raise config_error(error, given, Space, str(where)) from None
    first = {name: found.values()[0] for name, found in space.tune.items()}
    Config.from_dict(with_values(rest, first), str(where))
    for name, found in space.tune.items():
        for value in found.values()[1:]:
            try:
                Config.from_dict(with_values(rest, {**first, name: value}), str(where))
            except ConfigError as error:
                if error.where.startswith(f"{name}="):  # wrong whatever the others are; what only contradicts them may come
                    raise
    return rest, space


def is_whole(rest: dict[str, Any], space: Space, name: str) -> bool:
    """Whether a range is of whole numbers: its ends are, and the setting takes no others."""
    found = space.tune[name]
    if not isinstance(found, RangeSettings) or not found.whole:
        return False
    first = {other: where.values()[0] for other, where in space.tune.items()}
    try:
        Config.from_dict(with_values(rest, {**first, name: found.from_ + 0.5}))
    except ConfigError as error:
        return error.where.startswith(f"{name}=")
    return False


def seconds_of(text: str) -> float:
    """`30m` in seconds. Raises ConfigError."""
    try:
        return TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        raise ConfigError("a duration is written as 90s, 45m, 1h30m or a number of seconds", f"--for {text}") from None
