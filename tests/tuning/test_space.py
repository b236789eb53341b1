"""The section `tune`: short and long ways to write ranges and choices, and one line for whatever cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from eyeline.config_tuning import ChoiceSettings, RangeSettings, is_whole, seconds_of, space_of, with_values
from eyeline.errors import ConfigError

SETTINGS = {"model": {"architecture": "luong"}, "training": {"steps": 3}}


def space(section: Any) -> Any:
    return space_of({**SETTINGS, "tune": section}, "search.yaml")[1].tune


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ([0.1, 0.4], RangeSettings(from_=0.1, to=0.4)),
        ({"from": 0.1, "to": 0.4}, RangeSettings(from_=0.1, to=0.4)),
        ({"from": 0.1, "to": 0.4, "log": True}, RangeSettings(from_=0.1, to=0.4, log=True)),
        ({"from": 0.1, "to": 0.4, "step": 0.1}, RangeSettings(from_=0.1, to=0.4, step=0.1)),
        ([0.1, 0.2, 0.4], ChoiceSettings(choices=[0.1, 0.2, 0.4])),
        ({"choices": [0.1, 0.4]}, ChoiceSettings(choices=[0.1, 0.4])),
        ([0.1], ChoiceSettings(choices=[0.1])),
    ],
)
def test_two_numbers_are_a_range_and_other_lists_choices(written: Any, meant: Any) -> None:
    assert space({"model.dropout": written}) == {"model.dropout": meant}


def test_choices_of_words_and_truths() -> None:
    found = space({"model.cell": ["lstm", "gru"], "model.input_feeding": [True, False]})
    assert found["model.cell"].choices == ["lstm", "gru"]
    assert found["model.input_feeding"].choices == [True, False]


def test_the_rest_of_the_config_is_given_back_without_the_section() -> None:
    rest, found = space_of({**SETTINGS, "tune": {"model.dropout": [0.1, 0.4]}})
    assert rest == SETTINGS
    assert space_of({**rest, **found.to_dict()})[1] == found


@pytest.mark.parametrize(
    ("name", "written", "whole"),
    [
        ("model.encoder_size", [8, 16], True),
        ("model.encoder_size", {"from": 8, "to": 64, "step": 8}, True),
        ("training.r_drop", [0, 1], False),
        ("training.label_smoothing", [0, 0.2], False),
        ("model.cell", ["gru", "lstm"], False),
    ],
)
def test_whole_numbers_where_the_setting_takes_no_others(name: str, written: Any, whole: bool) -> None:
    rest, found = space_of({**SETTINGS, "tune": {name: written}})
    assert is_whole(rest, found, name) is whole


def test_values_are_put_in_by_their_dotted_names() -> None:
    given = {"a": {"b": 1}, "c": None}
    assert with_values(given, {"a.d": 2, "c.e": 3, "f": 4}) == {"a": {"b": 1, "d": 2}, "c": {"e": 3}, "f": 4}
    assert given == {"a": {"b": 1}, "c": None}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (None, r"nothing to tune: the config has no section tune \(search\.yaml\)"),
        ({}, "nothing to tune"),
        ("dropout", r"a section of settings is wanted \(tune=dropout in search\.yaml\)"),
        ({"model.dropuot": [0.1, 0.4]}, r"unknown setting \(model\.dropuot in search\.yaml\); did you mean 'dropout'"),
        ({"model.attention_size": [8, 16]}, "'attention_size' is a setting of "),
        ({"model.dropout": [0.4, 0.1]}, r"from 0\.4 is not less than to 0\.1 \(tune\.model\.dropout"),
        ({"model.dropout": [0.1, 1.5]}, r"model\.dropout=1\.5 in search\.yaml\); should be less than 1"),
        ({"model.cell": ["lstm", "lsmt"]}, r"model\.cell=lsmt in search\.yaml\); did you mean 'lstm'"),
        ({"model.cell": ["lstm", "lstm"]}, "a choice is given twice"),
        ({"model.cell": []}, "tune.model.cell"),
        ({"model.encoder_size": [8.5, 16]}, r"model\.encoder_size=8\.5"),
        ({"model.encoder_size": {"from": 8, "to": 16, "step": 0.5}}, r"model\.encoder_size=8\.5"),
        ({"model.dropout": {"from": 0, "to": 0.4, "log": True}}, "log wants from to be more than 0"),
        ({"model.dropout": {"from": 0.1, "to": 0.4, "step": 1}}, "step 1 leads beyond to 0.4"),
        ({"model.dropout": {"from": 0.1}}, r"tune\.model\.dropout"),
        ({"model.dropout": {"from": 0.1, "too": 0.4}}, r"tune\.model\.dropout"),
        ({"model.dropout": 0.3}, r"tune\.model\.dropout=0\.3"),
        ({"model": {"dropout": [0.1, 0.4]}}, r"tune\.model"),
        ({"model.dropout": {"from": "low", "to": 0.4}}, r"tune\.model\.dropout\.from=low"),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_line(section: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        space(section)


def test_settings_that_contradict_each_other_only_sometimes_may_be_searched() -> None:
    space({"search.min_length": [1, 20], "search.max_length": [10, 30]})


def test_durations() -> None:
    assert seconds_of("1m30s") == 90
    with pytest.raises(ConfigError, match="--for soon"):
        seconds_of("soon")
