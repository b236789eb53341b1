"""How outputs are looked for where nothing else is said. Settings alone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from eyeline.config_base import Real, Settings, Whole

LengthNormalization = Literal["average", "wu"]


class SearchSettings(Settings):
    beam_size: Whole = Field(5, ge=1)
    """hypotheses kept; 1 is greedy"""
    length_penalty: Real = Field(1.0, ge=0)
    """hypotheses are ranked by score / length^penalty, END counted"""
    length_normalization: LengthNormalization = "average"
    """wu: by score / ((5 + length) / 6)^penalty instead (Wu et al. 2016)"""
    coverage_penalty: Real = Field(0.0, ge=0)
    """β of Wu et al. 2016: finished hypotheses gain β Σ log min(attention that each source symbol had, 1), which is at most 0"""
    no_repeat_ngram: Whole = Field(0, ge=0)
    """so many tokens in a row come at most once in an output; 0: they may come again"""
    diverse_groups: Whole = Field(1, ge=1)
    """above 1 the beam is parted into so many groups, each of which shuns what those before it say at the same position"""
    diversity: Real = Field(0.5, ge=0)
    """diverse_groups: what a token costs for each time that an earlier group says it, in natural logarithms"""
    patience: Real | None = Field(2.0, gt=0)
    """a beam stops when so many times as many outputs as it keeps ended and none would be best if it ended now (after
    Kasai et al. 2022); null: when none can ever be better"""
    min_length: Whole = Field(0, ge=0)
    """tokens before END may come"""
    max_length: Whole | None = Field(None, ge=1)
    """most tokens of an output; default: twice the source's and 30 more, but no more than data.max_length"""
    min_length_ratio: Real = Field(0.0, ge=0)
    """tokens before END may come, for each of the source's; what asks for more of this and min_length counts"""
    max_length_ratio: Real | None = Field(None, gt=0)
    """most tokens of an output, for each of the source's; what allows less of this and max_length counts"""
    batch_tokens: Whole = Field(8192, ge=1)
    """padded source tokens decoded at a time, each counted once for every hypothesis"""

    @model_validator(mode="after")
    def _room_between(self) -> SearchSettings:
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is more than max_length {self.max_length}")
        return self

    @model_validator(mode="after")
    def _ratios_between(self) -> SearchSettings:
        if self.max_length_ratio is not None and self.min_length_ratio > self.max_length_ratio:
            raise ValueError(
                f"min_length_ratio {self.min_length_ratio:g} is more than max_length_ratio {self.max_length_ratio:g}"
            )
        return self
