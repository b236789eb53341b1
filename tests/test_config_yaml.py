"""Settings and YAML, both ways: whatever is written reads back, and whatever is read is settings or one line."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.config import Config, Settings
from eyeline.config_models import MODEL_SETTINGS
from eyeline.config_yaml import commented_yaml, dump_yaml, override, parse_yaml
from eyeline.errors import ConfigError

TEXT = st.text(max_size=12) | st.sampled_from(
    ["no", "1e3", "010", "1:30", "~", "", "- a", "a: b", "#x", "a\u2028b\x85c", "'\"\\", "true", "é ", "\ufeff"]
)


def _drawn(schema: dict[str, Any], definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a JSON schema (some bounds stand under pydantic's names): a setting that is added is tested unasked."""
    if "$ref" in schema:
        return _drawn(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema or "oneOf" in schema:
        return st.one_of([_drawn(member, definitions) for member in schema.get("anyOf", schema.get("oneOf"))])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    least = schema.get("minimum", schema.get("ge"))
    above, below = schema.get("exclusiveMinimum", schema.get("gt")), schema.get("exclusiveMaximum", schema.get("lt"))
    if kind == "integer":
        return st.integers(least, schema.get("maximum", schema.get("le")) if below is None else below - 1)
    if kind == "number":
        low, high = above if least is None else least, schema.get("maximum", schema.get("le", 1e6)) if below is None else below
        return st.floats(low, high, exclude_min=least is None, exclude_max=below is not None)
    if kind == "array" and "prefixItems" in schema:
        return st.tuples(*(_drawn(item, definitions) for item in schema["prefixItems"])).map(list)
    if kind == "array":
        return st.lists(_drawn(schema["items"], definitions), max_size=3)
    if kind == "object" and "properties" in schema:
        drawn = {name: _drawn(inner, definitions) for name, inner in schema["properties"].items()}
        tags = {
            name: drawn.pop(name) for name, inner in schema["properties"].items() if "const" in inner and name == "architecture"
        }
        return st.fixed_dictionaries(tags, optional=drawn)
    if kind == "object":
        return st.dictionaries(_drawn(schema["propertyNames"], definitions), _drawn(schema["additionalProperties"], definitions))
    return {"boolean": st.booleans(), "string": TEXT, "null": st.none()}[kind]


def _possible(values: dict[str, Any]) -> dict[str, Any]:
    """The same without what contradicts itself."""
    training, tokenizer, search = values.get("training", {}), values.get("tokenizer", {}), values.get("search", {})
    bounds = [name for name in ("steps", "epochs", "target_tokens", "for") if training.get(name) is not None]
    for name in bounds[1:]:
        training.pop(name, None)
    for name in ("average", "compile", "from", "optimizer"):  # forms of their own, and rules with others
        training.pop(name, None)
    for name in ("bpe_dropout", "corpora"):  # it wants a tokenizer; they want tags
        values.get("data", {}).pop(name, None)
    if tokenizer.get("shared"):
        tokenizer.update(source=None, target=None)
    if search.get("max_length") is not None:
        search["min_length"] = min(search.get("min_length", 0), search["max_length"])
    if search.get("max_length_ratio") is not None:
        search["min_length_ratio"] = min(search.get("min_length_ratio", 0), search["max_length_ratio"])
    model = values.get("model", {})
    if model.get("architecture") == "seq2seq":
        for section, name in ((training, "coverage_loss"), (training, "guided_alignment"), (search, "coverage_penalty")):
            section.pop(name, None)
    if model.get("scope", "global") != "global":
        model.pop("coverage", None)
    kind = MODEL_SETTINGS[model["architecture"]].model_fields if "architecture" in model else {}
    if "heads" in kind:
        heads, layers = model.get("heads", kind["heads"].default), model.get("decoder_layers", kind["decoder_layers"].default)
        model["size"] = 2 * heads * model.get("size", 1)
        model.update({name: model[name] % heads for name in ("alignment_head", "copy_head") if isinstance(model.get(name), int)})
        if "alignment_layer" in model:
            model["alignment_layer"] %= layers
        if model.get("attention") == "linear":
            model.pop("positions", None)
        if model.get("positions") == "learned":
            model["max_positions"] = model.get("max_positions", 1024) + max(
                search.get("max_length") or 0, search.get("min_length", 0)
            )
    if model.get("architecture") == "pointer-network":
        values["tokenizer"], data = {}, values.get("data", {})
        for name in ("columns", "too_long", "lowercase", "normalization"):
            data.pop(name, None)
    if model.get("score") != "projected-dot":
        model.pop("rank", None)
    return values


SCHEMA = Config.model_json_schema(mode="validation")
VALUES = _drawn(SCHEMA, SCHEMA["$defs"]).map(_possible)


@settings(max_examples=50)
@given(VALUES)
def test_what_is_written_reads_back(values: dict[str, Any]) -> None:
    config = Config.from_dict(values)
    assert Config.from_dict(parse_yaml(config.to_yaml(), "")) == config
    assert Config.from_dict(yaml.safe_load(config.to_yaml())) == config  # for readers other than ours, too
    assert Config.from_dict(parse_yaml(commented_yaml(config), "")) == config
    assert Config.from_dict(config.to_dict()) == config


@settings(max_examples=50)
@given(VALUES)
def test_writing_twice_changes_nothing(values: dict[str, Any]) -> None:
    once = Config.from_dict(values).to_yaml()
    assert Config.from_dict(parse_yaml(once, "")).to_yaml() == once


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
        max_leaves=8,
    )
)
def test_plain_values_survive_yaml(values: object) -> None:
    assert parse_yaml(dump_yaml(values), "") == values


def _read_or_refused(text: str, values: dict[str, Any] | None = None) -> bool:
    """Whether it is settings, or one line that says why not; anything else is raised."""
    try:
        read = parse_yaml(text, "c.yaml") if values is None else values
        Config.from_dict(read if isinstance(read, dict) else {})
    except ConfigError as error:
        return "\n" not in str(error)
    return True


@given(st.text(min_size=1) | st.text("ab: -[]{}&*!|>'\"%@`#,?\n\t~.0", min_size=1, max_size=20))
def test_any_text_as_a_config_is_read_or_refused(text: str) -> None:
    assert _read_or_refused(text)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
KEYS = TEXT | st.sampled_from(["architecture", "steps", "for", "source", "normalization", "betas", "train", "kind"])
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@given(st.dictionaries(st.sampled_from(sorted(SCHEMA["properties"])), ANYTHING))
def test_any_values_are_settings_or_one_line(values: dict[str, Any]) -> None:
    assert _read_or_refused("", values)


def _all_settings(kind: type[Settings] = Settings) -> list[type[Settings]]:
    return [kind, *(inner for child in kind.__subclasses__() for inner in _all_settings(child))]


def test_every_setting_says_what_it_is() -> None:
    silent = [
        f"{kind.__name__}.{name}"
        for kind in _all_settings()
        for name, field in kind.model_fields.items()
        if not field.description and not kind.__name__.startswith("_")
    ]
    assert silent == []


@pytest.mark.parametrize("architecture", MODEL_SETTINGS)
def test_a_commented_file_holds_every_setting_with_its_meaning_and_choices(architecture: str) -> None:
    given_settings = [f"model.architecture={architecture}", "training.for=45m", "tokenizer.source.kind=bpe"]
    config = Config.from_dict(override({}, given_settings))
    text = commented_yaml(config)
    assert parse_yaml(text, "") == config.to_dict()
    assert "  # wall-clock time, such as 45m; a schedule that ends fits itself to it\n  for: 45m\n" in text
    assert "  # passes over the data\n  epochs: null\n" in text
    if architecture in ("seq2seq", "bahdanau", "luong"):
        assert "  # recurrent cell (one of: rnn, lstm, gru)\n  cell: lstm\n" in text
    said = " ".join(line.lstrip("# ") for line in text.split("\n"))
    assert f"(architecture is one of: {', '.join(MODEL_SETTINGS)}) model: " in said
    assert "  source:\n    # character, word" in text
    for line in text.split("\n"):
        assert len(line) <= 140, line
