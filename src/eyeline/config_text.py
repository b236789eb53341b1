"""Settings as a file for people: every one written out, with what it means above it. Knows Config and YAML."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from eyeline.config import Config
from eyeline.config_yaml import dump_yaml


def commented_yaml(config: Config) -> str:
    """A complete config file: each setting below its docstring and its valid choices. Reads back to an equal Config."""
    return _commented(config, "")


def _commented(settings: BaseModel, indent: str) -> str:
    plain = settings.model_dump(mode="json", by_alias=True)
    blocks = []
    for name, field in type(settings).model_fields.items():
        key, value = field.alias or name, getattr(settings, name)
        comment = f"{indent}# {field.description}{_choices(field)}\n"
        if isinstance(value, BaseModel):
            blocks.append(f"{comment}{indent}{key}:\n{_commented(value, indent + '  ')}")
        else:
            blocks.append(comment + indent + dump_yaml({key: plain[key]}).rstrip("\n").replace("\n", "\n" + indent) + "\n")
    return ("" if indent else "\n").join(blocks)


def _choices(field: FieldInfo) -> str:
    """` (one of: a, b)` where the values are an enumeration that the docstring does not spell out."""
    members = [field.annotation, *get_args(field.annotation)]
    if isinstance(field.discriminator, str):
        valid = [str(member.model_fields[field.discriminator].default) for member in members if hasattr(member, "model_fields")]
        return f" ({field.discriminator} is one of: {', '.join(valid)})"
    valid = [str(choice) for member in members if get_origin(member) is Literal for choice in get_args(member)]
    spelt_out = all(choice in (field.description or "") for choice in valid)
    return "" if spelt_out or len(valid) < 2 else f" (one of: {', '.join(valid)})"
