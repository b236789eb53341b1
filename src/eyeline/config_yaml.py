"""Between YAML and settings, both ways: files and `key.sub=value` in, files for people out, pydantic's complaints in one line.

Knows YAML and pydantic models in general; does not know which settings there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from eyeline.errors import ConfigError, nearest

WIDTH = 130  # of the comments in files for people


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: `no` is the Norwegian code and not false, `1e-3` is a number, a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"'{key.value}' is given twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this loader or a plain YAML 1.1 reader would take for something other than text."""


def _teach_scalars() -> None:
    """Replaces YAML 1.1's idea of booleans, numbers and dates in the loader, and adds ours to the dumper's."""
    replaced = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "timestamp")}
    _Loader.yaml_implicit_resolvers = {
        letter: [(tag, pattern) for tag, pattern in resolvers if tag not in replaced]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    digits = list("-+0123456789.")
    for kind, pattern, letters in (
        ("bool", r"^(true|True|TRUE|false|False|FALSE)$", list("tTfF")),
        ("int", r"^[-+]?(0|[1-9][0-9]*)$", digits),  # 010 is no octal number and 1:30 not a sexagesimal one
        ("float", r"^[-+]?([0-9]+\.[0-9]*([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.[0-9]+([eE][-+]?[0-9]+)?)$", digits),
    ):
        for reader_or_writer in (_Loader, _Dumper):
            reader_or_writer.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), letters)


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Text with line separators or other invisible characters goes between double quotes, where each is escaped."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_teach_scalars()
_Dumper.add_representer(str, _text_node)


def dump_yaml(values: Any) -> str:
    """Plain values as block YAML that `parse_yaml` reads back to equal ones."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1_000_000)


def commented_yaml(settings: BaseModel) -> str:
    """A complete file for people: each setting below its docstring and its valid choices. Reads back to equal settings."""
    return _commented(settings, "")


def _commented(settings: BaseModel, indent: str) -> str:
    plain = settings.model_dump(mode="json", by_alias=True)
    blocks = []
    for name, field in type(settings).model_fields.items():
        key, value = field.alias or name, getattr(settings, name)
        comment = _comment(f"{field.description}{_choices(field)}", f"{indent}# ")
        if isinstance(value, BaseModel):
            blocks.append(f"{comment}{indent}{key}:\n{_commented(value, indent + '  ')}")
        else:
            blocks.append(comment + indent + dump_yaml({key: plain[key]}).rstrip("\n").replace("\n", "\n" + indent) + "\n")
    return ("" if indent else "\n").join(blocks)


def _comment(text: str, begin: str) -> str:
    lines = wrap(text, WIDTH, initial_indent=begin, subsequent_indent=begin, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{line}\n" for line in lines)


def _choices(field: FieldInfo) -> str:
    """` (one of: a, b)` where the values are an enumeration that the docstring does not spell out."""
    members = [field.annotation, *get_args(field.annotation)]
    if isinstance(field.discriminator, str):
        valid = [str(member.model_fields[field.discriminator].default) for member in members if hasattr(member, "model_fields")]
        return f" ({field.discriminator} is one of: {', '.join(valid)})"
    valid = [str(choice) for member in members if get_origin(member) is Literal for choice in get_args(member)]
    spelt_out = all(choice in (field.description or "") for choice in valid)
    return "" if spelt_out or len(valid) < 2 else f" (one of: {', '.join(valid)})"


def parse_yaml(text: str, where: str, lines: bool = True) -> Any:
    """YAML to plain values. Raises ConfigError with `where:LINE` (just `where` without `lines`)."""
    try:
        loader = _Loader(text)  # a SafeLoader: makes plain values only
        loader.deep_construct = True  # an alias to its own parent is an error rather than an endless value
        node = loader.get_single_node()
        return None if node is None else loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the control character U+{ord(text[error.position]):04X} cannot stand in YAML"
        raise ConfigError(what, f"{where}:{line}" if lines else where) from None
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, error.problem or "not valid YAML"
        if problem.startswith("but ") and error.context:
            problem = f"{error.context} {problem}"
        hint = "indent with spaces, not tabs" if "'\\t'" in problem else ""
        raise ConfigError(problem, f"{where}:{mark.line + 1}" if mark and lines else where, hint) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping that a YAML file holds; a BOM and CRLF do not matter.

    Raises:
        ConfigError: no such file, not UTF-8, not YAML, or not a mapping of sections.
    """
    try:
        data = Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such config file", str(path), "`eyeline init --out FILE` writes one") from None
    except IsADirectoryError:
        raise ConfigError("a config file is wanted, not a directory", str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8", f"{path}:{line}", "save the file as UTF-8") from None
    values = parse_yaml(text, str(path))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError("a config is a mapping of sections", str(path), "`eyeline init` writes an example")
    return dict(values)


def override(values: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """A copy of `values` with each `key.sub=value` applied; values are read as YAML, nothing after `=` is null."""
    result: dict[str, Any] = _copy(values)
    for setting in settings:
        name, equals, text = setting.partition("=")
        *parents, last = parts = name.strip().split(".")
        if not equals or not all(parts):
            raise ConfigError("a setting is written key.sub=value", f"--set {setting}")
        place = result
        for parent in parents:
            inner = place.get(parent)
            place[parent] = inner = {} if inner is None else inner
            if not isinstance(inner, dict):
                raise ConfigError(f"'{parent}' is not a section", f"--set {setting}")
            place = inner
        place[last] = parse_yaml(text, f"--set {setting}", lines=False)
    return result


def put(values: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Sets `value` in nested mappings, made where they are missing; those that were there are copied, not changed."""
    for part in path[:-1]:
        inner = values.get(part)
        values[part] = values = dict(inner) if isinstance(inner, dict) else {}
    values[path[-1]] = value


def _copy(value: Any) -> Any:
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


_WANTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text; quotes make a number text",
    "list_type": "a list",
    "tuple_type": "a list",
    "missing": "a longer list",
    "too_long": "a list of at most {max_length}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}


def config_error(error: ValidationError, values: Any, model: type[BaseModel], where: str) -> ConfigError:
    """The first fault that pydantic found in `values`, in one line that names the setting, its value and what to do.

    Args:
        error: what validating `values` as `model` raised.
        where: the file, or `--set`; empty when neither applies.
    """
    faults = [(fault, *_located(fault["loc"], values)) for fault in error.errors(include_url=False)]
    first = faults[0][1]
    # A union reports a fault for each member: the one that got furthest into the value is what was meant.
    fault, location, given = max((f for f in faults if f[1][: len(first)] == first), key=lambda f: len(f[1]))
    name, kind, in_file = ".".join(map(str, location)), fault["type"], f" in {where}" if where else ""
    context = fault.get("ctx", {})
    valid = re.findall(r"'([^']*)'", context.get("expected", context.get("expected_tags", "")))
    setting = f"{name}={_shown(given)}{in_file}"

    if fault["loc"][-1:] == ("[key]",):
        return ConfigError("unknown setting", name + in_file, nearest(str(location[-1]), valid))
    if kind in ("extra_forbidden", "invalid_key"):
        return ConfigError("unknown setting", name + in_file, _where_it_belongs(fault["loc"], location, model))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = context["discriminator"].strip("'")
        given = given.get(tag) if isinstance(given, dict) else given
        return ConfigError(f"unknown {tag}", f"{name}.{tag}={_shown(given)}{in_file}", nearest(str(given), valid))
    if kind == "literal_error":
        return ConfigError("not a valid value", setting, nearest(str(given), valid))
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return ConfigError("a section of settings is wanted", setting, f"write '{name}:' and its settings below it")
    if kind == "value_error":
        message = str(context["error"])
        return ConfigError(message, f"{name}{in_file}".strip() if isinstance(given, dict) else setting)
    wanted = _WANTED[kind].format(**context) if kind in _WANTED else fault["msg"]
    return ConfigError("not a valid value", setting, f"should be {wanted}" if kind in _WANTED else wanted)


def _located(location: Sequence[int | str], values: Any) -> tuple[tuple[int | str, ...], Any]:
    """The part of pydantic's location that exists in what was given (names of union members do not), and the value there."""
    place = []
    for part in location:
        inside = range(len(values)) if isinstance(values, list | tuple) else values if isinstance(values, dict) else ()
        if part in inside:
            values = values[part]
            place.append(part)
    return tuple(place), values


def _shown(value: Any) -> str:
    """A value as YAML would have it, on one line and not too long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:59] + "…"


def _where_it_belongs(union_members: Sequence[int | str], location: Sequence[int | str], model: type[BaseModel]) -> str:
    """A hint for an unknown setting: where a setting of that very name stands, or the nearest name beside it."""
    *parents, last = map(str, location)
    known = list(_names(model))
    others = [tag for name, tag in known if name == ".".join((*parents, last)) and tag]
    if others:
        return f"'{last}' is a setting of {' and '.join(others)}"
    elsewhere = [name for name, _ in known if name.rpartition(".")[2] == last]
    if elsewhere:
        return f"did you mean '{elsewhere[0]}'?"
    beside = [name for name, tag in known if name.rpartition(".")[0] == ".".join(parents) and (not tag or tag in union_members)]
    return nearest(last, {name.rpartition(".")[2] for name in beside})


def _names(model: type[BaseModel], prefix: str = "", tag: str = "") -> Iterator[tuple[str, str]]:
    """Every setting's dotted name, and the tag of the union member it belongs to, such as an architecture ("": to all)."""
    for name, field in model.model_fields.items():
        dotted = f"{prefix}{field.alias or name}"
        yield dotted, tag
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                inner_tag = inner.model_fields[field.discriminator].default if isinstance(field.discriminator, str) else tag
                yield from _names(inner, f"{dotted}.", inner_tag)
