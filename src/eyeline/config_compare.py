"""Settings of a comparison: what is the same for all rungs, which rungs, the budget, the seeds. Knows settings alone.

Of each setting of a rung the last that says something counts: the ladder's own (`config_rungs`), the comparison's `training`
section, the rung's entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from eyeline.config import Config, DataSettings, SearchSettings, TokenizerSettings, TrainingSettings
from eyeline.config_base import Duration, Settings, Whole
from eyeline.config_models import MODEL_SETTINGS
from eyeline.config_rungs import LEARNING_RATES, SIZES, ladder
from eyeline.config_yaml import config_error, dump_yaml, override, read_yaml
from eyeline.errors import ConfigError, nearest

BOUNDS = ("steps", "epochs", "target_tokens", "for")
MOST_LENGTHS = 40  # buckets of source length
_ELLIPSIS = ("…", "...")


class BudgetSettings(Settings):
    """What every rung gets, with every seed: exactly one of the three."""

    steps: Whole | None = Field(None, ge=1)
    """updates"""
    target_tokens: Whole | None = Field(None, ge=1)
    """target tokens seen, the end of each target counted"""
    for_: Duration | None = Field(None, alias="for")
    """wall-clock time of training, such as 20m; what else the machine does then counts against a rung"""

    @model_validator(mode="after")
    def _exactly_one(self) -> BudgetSettings:
        given = [name for name, value in self.to_dict().items() if value is not None]
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            raise ValueError(f"a budget is one of steps, target_tokens and for; found {found}")
        return self

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)

    def given(self) -> dict[str, Any]:
        """The one that is given."""
        return {name: value for name, value in self.to_dict().items() if value is not None}


def lengths(value: Any) -> Any:
    """`20,40,…,120`, or a list in which `…` may stand, as a list of rising whole numbers."""
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(parts, list):
        return value
    found: list[int] = []
    for place, part in enumerate(parts):
        if part in _ELLIPSIS:
            found += _filled(found, parts[place + 1 :])
        elif isinstance(part, str) and re.fullmatch("[0-9]{1,6}", part):
            found.append(int(part))
        elif isinstance(part, int) and not isinstance(part, bool):
            found.append(part)
        else:
            raise ValueError(f"'{part}' is no length; lengths are written 20,40,60 or 20,40,…,120")
    if not found or found[0] < 1 or any(b <= a for a, b in pairwise(found)):
        raise ValueError("lengths rise from at least 1, such as 20,40,60")
    if len(found) > MOST_LENGTHS:
        raise ValueError(f"{len(found)} lengths; at most {MOST_LENGTHS} can be told apart in a chart")
    return found


def _filled(before: Sequence[int], after: Sequence[Any]) -> list[int]:
    """What `…` stands for: the step before it, up to what comes next."""
    following = str(after[0]) if after else ""
    if len(before) < 2 or not re.fullmatch("[0-9]{1,6}", following):
        raise ValueError("… stands between two lengths and a last one, as in 20,40,…,120")
    step, last = before[-1] - before[-2], int(following)
    if step < 1 or (last - before[-1]) % step or last <= before[-1]:
        raise ValueError(f"steps of {step} from {before[-1]} do not reach {last}")
    return list(range(before[-1] + step, last, step))[: MOST_LENGTHS + 1]


Lengths = Annotated[list[Whole], BeforeValidator(lengths)]


@dataclass(frozen=True)
class Rung:
    """One entry of the ladder."""

    name: str
    model: dict[str, Any]  # the architecture and what is set of it
    training: dict[str, Any]  # what is set for it alone

    @property
    def architecture(self) -> str:
        return str(self.model["architecture"])

    @property
    def folder(self) -> str:
        """What its folders are called."""
        return re.sub(r"[^\w.]+", "-", self.name).strip("-.") or "rung"


class Comparison(Settings):
    """Everything that decides a comparison; `comparison.yaml` in its folder is this and enough to repeat it."""

    data: DataSettings = DataSettings()
    """what is read, the same for all rungs"""
    tokenizer: TokenizerSettings = TokenizerSettings()
    """how text becomes symbols: trained once, the same for all rungs"""
    training: TrainingSettings = TrainingSettings()
    """how weights are found, but for the budget; a rung may differ"""
    search: SearchSettings = SearchSettings()
    """how predictions are found, the same for all rungs"""
    rungs: list[str | dict[str, Any]] = []
    """architectures by name, or {name, architecture, …its settings, training: {…}}"""
    budget: BudgetSettings | None = None
    """what each rung gets with each seed: {steps: N}, {target_tokens: N} or {for: 20m}"""
    seeds: list[Annotated[Whole, Field(ge=0, lt=2**63)]] = [1, 2, 3]
    """each rung is trained once with each"""
    train_max_length: Whole | None = Field(None, ge=1)
    """training and validation pairs with more source tokens are left out; the test keeps them"""
    test_lengths: Lengths | None = None
    """quality is shown for test sources up to each of these, in tokens; default: chosen by the test set"""

    @field_validator("seeds", mode="before")
    @classmethod
    def _one_seed_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, value: list[int]) -> list[int]:
        if not value or len(set(value)) < len(value):
            raise ValueError("at least one seed is wanted, and each once")
        return value

    @field_validator("rungs", mode="before")
    @classmethod
    def _one_rung_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | dict) else value

    @model_validator(mode="after")
    def _the_budget_bounds(self) -> Comparison:
        for name in BOUNDS:
            if getattr(self.training, "for_" if name == "for" else name) is not None:
                raise ValueError(f"training.{name} does not bound a comparison: budget does, by steps, target_tokens or for")
        return self

    # ---- rungs ------------------------------------------------------------------------------------------------------

    def chosen(self) -> list[Rung]:
        """The rungs, in the order given. Raises ConfigError for one that cannot be, or two of one name."""
        found = [_rung(entry, place) for place, entry in enumerate(self.rungs)]
        seen: dict[str, str] = {}
        for rung in found:
            key = rung.folder.lower()
            if key in seen:
                raise ConfigError(f"two rungs are called '{seen[key]}'", f"rungs: {rung.name}", "give each a name of its own")
            seen[key] = rung.name
        return found

    def config(self, rung: Rung, seed: int) -> Config:
        """The settings of one run. Raises ConfigError that names the rung."""
        if self.budget is None:
            raise ConfigError("every rung gets the same, and nothing says how much", "budget", "such as budget: {steps: 2000}")
        common = self.training.model_dump(mode="json", by_alias=True, exclude_unset=True)
        own = {"learning_rate": LEARNING_RATES[rung.architecture]}
        values = {
            "data": self.data.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "tokenizer": self.tokenizer.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "model": rung.model,
            "training": {**own, **common, **rung.training, **self.budget.given()},
            "search": self.search.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "seed": seed,
        }
        try:
            return Config.from_dict(values)
        except ConfigError as error:
            raise ConfigError(error.what, _placed(error.where, rung.name), error.hint) from None

    def checked(self) -> Comparison:
        """Itself, when every rung can be trained as it stands.

        Raises:
            ConfigError: there are no rungs, no pairs or no budget, a rung cannot be, or rungs cannot be compared.
        """
        if not self.rungs:
            raise ConfigError("nothing to compare", "rungs", "name two or more, or add --ladder")
        for part in ("train", "valid", "test"):
            if not getattr(self.data, part) and not (part == "train" and self.data.corpora):
                what = {"train": "train on", "valid": "choose weights by", "test": "compare by"}[part]
                raise ConfigError(f"there are no pairs to {what}", f"data.{part}", f"name a file of pairs: data: {{{part}: …}}")
        if self.train_max_length is not None and self.data.corpora:
            raise ConfigError("lengths are limited of data.train alone", "data.corpora", "put all pairs under data.train")
        configs = {rung.name: self.config(rung, self.seeds[0]) for rung in self.chosen()}
        kinds = {config.points for config in configs.values()}
        if len(kinds) > 1:
            pointing = next(name for name, config in configs.items() if config.points)
            raise ConfigError(
                "outputs that are positions cannot be compared with outputs that are text", f"rungs: {pointing}", "leave one out"
            )
        return self

    # ---- to and from files ------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what was set, defaults left out, so that a rung's own defaults stay its own."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def to_yaml(self) -> str:
        return dump_yaml(self.to_dict())

    def with_ladder(self, points: bool) -> Comparison:
        """With every rung that fits the task beside those that are named already."""
        named = {rung.folder.lower() for rung in self.chosen()}
        more = [entry for entry in ladder(points) if _rung(entry, 0).folder.lower() not in named]
        return self.model_copy(update={"rungs": [*self.rungs, *more]})

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str = "") -> Comparison:
        """Checks plain values. Raises ConfigError with the setting's dotted name and value; `where` says whose they are."""
        try:
            found = cls.model_validate({name: value for name, value in values.items() if value is not None})
        except ValidationError as error:
            raise config_error(error, values, cls, where) from None
        found.chosen()
        return found

    @classmethod
    def from_yaml(cls, path: str | Path, overrides: Sequence[str] = ()) -> Comparison:
        """Reads a file of settings and applies `key.sub=value` overrides. Raises ConfigError."""
        values = read_yaml(path)
        try:
            return cls.from_dict(override(values, overrides))
        except ConfigError:
            cls.from_dict(values, str(path))  # when the fault is the file's own, say so; else it came with --set
            raise


def _rung(entry: str | dict[str, Any], place: int) -> Rung:
    where = f"rungs.{place}"
    values = {"name": entry, "architecture": entry} if isinstance(entry, str) else dict(entry)
    architecture = values.pop("architecture", values.get("name"))
    if architecture not in MODEL_SETTINGS:
        raise ConfigError("unknown architecture", f"{where}={architecture}", nearest(str(architecture), MODEL_SETTINGS))
    name = values.pop("name", architecture)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ConfigError("a rung's name is a line of text", f"{where}.name={name}")
    training = values.pop("training", None) or {}
    if not isinstance(training, dict):
        raise ConfigError(
            "a section of settings is wanted", f"{where}.training={training}", "such as training: {learning_rate: 1e-3}"
        )
    bound = next((key for key in BOUNDS if key in training), None)
    if bound is not None:
        raise ConfigError("every rung has the same budget", f"{where}.training.{bound}={training[bound]}", "set it under budget")
    return Rung(name, {"architecture": architecture, **SIZES[architecture], **values}, training)


def _placed(where: str, rung: str) -> str:
    """The place of a fault as the comparison's own file has it."""
    for section, shown in (("model.", f"rungs: {rung}: "), ("training.", f"rungs: {rung}: training.")):
        if where.startswith(section):
            return shown + where.removeprefix(section)
    return where
