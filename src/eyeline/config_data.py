"""What belongs to a corpus among several, and which pairs are worth training on. Settings alone."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from eyeline.config_base import Fraction, Real, Settings, Whole


class CorpusSettings(Settings):
    pairs: list[str]
    """its pairs, in any form that data.train has"""
    tag: str | None = None
    """a symbol beside the text, put before each of its sources, such as back: what the model can tell the corpus by"""
    weight: Real = Field(1.0, gt=0)
    """how often an epoch sees each pair, at temperature 1: 2 is twice, 0.5 is another half of them every epoch"""

    @model_validator(mode="before")
    @classmethod
    def _one_path_is_a_list(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("pairs"), str):
            values = {**values, "pairs": [values["pairs"]]}
        return values

    @field_validator("tag")
    @classmethod
    def _a_tag_is_one_symbol(cls, value: str | None) -> str | None:
        if value is not None and (value != value.strip() or not value or any(mark in value for mark in ";\t\n\r\0")):
            raise ValueError("a tag is one symbol without ; and tabs, and with no blanks around it")
        return value


class FilterSettings(Settings):
    duplicates: Literal["keep", "drop"] = "keep"
    """training pairs that have come before, both sides and features alike; `eyeline prepare` drops them unless told to keep"""
    min_characters: Whole = Field(1, ge=1)
    """a side of fewer characters leaves its pair out"""
    max_characters: Whole | None = Field(None, ge=1)
    """so does one of more"""
    max_ratio: Real | None = Field(None, ge=1)
    """the longer side has at most so many times the characters of the shorter"""
    min_letters: Fraction = 0.0
    """least share of letters, with their marks, among a side's characters that are no white space"""
    scripts: dict[Literal["source", "target"], list[str]] = {}
    """scripts that at least half of a side's letters are of, by their Unicode names: {source: [hangul], target: [latin]}"""

    @field_validator("scripts", mode="before")
    @classmethod
    def _one_script_is_a_list(cls, values: Any) -> Any:
        if isinstance(values, dict):
            return {side: [names] if isinstance(names, str) else names for side, names in values.items()}
        return values
