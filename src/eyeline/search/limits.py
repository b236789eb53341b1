"""How long an output may be and what its length is worth. Knows numbers only: no model, no search rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from eyeline.contracts import Source
from eyeline.errors import ConfigError

Lengths = int | Sequence[int] | Tensor | None  # one bound for all sources, one a source, or the default
Worth = Callable[[int, float], float]  # (length, power) -> what a score over so many tokens is divided by; grows with the length


def default_max_length(source_length: int) -> int:
    """The most tokens of an output, END apart, for a source of `source_length` tokens: 2·S + 30."""
    return 2 * source_length + 30


def total(token_scores: Sequence[float]) -> float:
    """The sum from left to right, as a search adds up; `sum` rounds otherwise from Python 3.12 on, which could turn near-ties."""
    result = 0.0
    for token_score in token_scores:
        result += token_score
    return result


def average(length: int, power: float) -> float:
    """length^power: a power of 1 makes a score the mean of its tokens'. END is counted; 0 (an unfinished output without a token)
    counts as 1."""
    return math.pow(max(length, 1), power)


def wu(length: int, power: float) -> float:
    """((5 + length) / 6)^power: Wu et al. 2016, equation 14, with END counted."""
    return math.pow((5 + max(length, 1)) / 6, power)


WORTHS: Mapping[str, Worth] = {"average": average, "wu": wu}


def normalize(score: float, length: int, length_penalty: float, worth: Worth = average) -> float:
    """The score divided by what its length is worth."""
    return score / worth(length, length_penalty)


@dataclass(frozen=True)
class Ranking:
    """What hypotheses are ranked by, besides their score. Checked."""

    length_penalty: float = 1.0
    worth: Worth = average
    coverage_penalty: float = 0.0  # β of `coverage.coverage_penalty`

    def __post_init__(self) -> None:
        if not 0 <= self.length_penalty < math.inf:  # a NaN fails this too
            raise ConfigError("the length penalty is a number from 0", f"length_penalty={self.length_penalty}")
        check_coverage_penalty(self.coverage_penalty)

    def normalize(self, score: float, length: int) -> float:
        """Without the coverage penalty."""
        return normalize(score, length, self.length_penalty, self.worth)


@dataclass(frozen=True)
class Limits:
    """What bounds one call of a search, checked."""

    ranking: Ranking
    min_length: Tensor  # [N] long on the CPU: tokens of each output before END may come
    max_length: Tensor  # [N] long on the CPU: most tokens of each output, END apart
    divisors: Tensor  # [longest maximum + 2] float64: entry l is what l tokens are worth

    @classmethod
    def of(cls, source: Source, min_length: Lengths, max_length: Lengths, ranking: Ranking, begun: Sequence[int] = ()) -> Limits:
        """Checks the settings for the N sources of a call; `max_length` None takes `default_max_length`, or the minimum if more.

        Args:
            begun: tokens that each output begins with, if any: no maximum is below these.

        Raises:
            ConfigError: a value that cannot be, or a minimum above a maximum.
        """
        count = source.ids.shape[0]
        minima = _one_each(min_length or 0, count, "min_length")
        if max_length is None:
            given = zip(source.lengths.tolist(), minima, strict=True)
            maxima = [max(default_max_length(length), minimum) for length, minimum in given]
        else:
            maxima = _one_each(max_length, count, "max_length")
        for minimum, maximum in zip(minima, maxima, strict=True):
            if minimum < 0:
                raise ConfigError("a length is not negative", f"min_length={minimum}")
            if maximum < 1:
                raise ConfigError("the longest output is at least 1 token", f"max_length={maximum}")
            if minimum > maximum:
                raise ConfigError("min_length is above max_length", f"min_length={minimum}, max_length={maximum}")
        if begun:
            maxima = [max(maximum, length) for maximum, length in zip(maxima, begun, strict=True)]
        longest = max(maxima, default=1) + 1
        power = ranking.length_penalty
        if power * math.log(longest) > 600:  # the power would overflow
            raise ConfigError("the length penalty is too large", f"length_penalty={power}", "0 to 2 is usual")
        divisors = torch.tensor([ranking.worth(length, power) for length in range(longest + 1)], dtype=torch.float64)
        return cls(ranking, torch.tensor(minima, dtype=torch.long), torch.tensor(maxima, dtype=torch.long), divisors)

    def repeated(self, times: int) -> Limits:
        """As many times of each source."""
        minimum, maximum = (bound.repeat_interleave(times) for bound in (self.min_length, self.max_length))
        return replace(self, min_length=minimum, max_length=maximum)


def check_coverage_penalty(weight: float) -> None:
    """Raises ConfigError for a weight of the coverage penalty that cannot be."""
    if not 0 <= weight < math.inf:  # a NaN fails this too
        raise ConfigError("the coverage penalty is a number from 0", f"coverage_penalty={weight}")


def check_beam(beam_size: int, n_best: int) -> None:
    """Raises ConfigError where a beam or an n-best list cannot be of the size asked for."""
    if beam_size < 1:
        raise ConfigError("a beam holds at least 1 hypothesis", f"beam_size={beam_size}")
    if n_best < 1:
        raise ConfigError("at least 1 answer is wanted", f"n_best={n_best}")
    if n_best > beam_size:
        raise ConfigError(
            "more answers are asked for than the beam holds",
            f"n_best={n_best}, beam_size={beam_size}",
            "raise beam_size or lower n_best",
        )


def check_groups(beam_size: int, groups: int, diversity: float, demands: bool) -> None:
    """Raises ConfigError where a beam cannot be parted into so many groups."""
    if groups < 1:
        raise ConfigError("a beam is at least 1 group", f"diverse_groups={groups}")
    if beam_size % groups:
        raise ConfigError("the groups of a beam are of one size", f"diverse_groups={groups}, beam_size={beam_size}")
    if not 0 <= diversity < math.inf:  # a NaN fails this too
        raise ConfigError("the diversity is a number from 0", f"diversity={diversity}", "0.5 is usual")
    if groups > 1 and demands:
        raise ConfigError(
            "diverse groups do not share their beam out for required phrases", f"diverse_groups={groups}", "leave one out"
        )


def check_patience(patience: float | None) -> None:
    """Raises ConfigError for a patience that cannot be."""
    if patience is not None and not 0 < patience < math.inf:
        raise ConfigError("patience is a number above 0", f"patience={patience}", "1 and 2 are usual")


def _one_each(lengths: int | Sequence[int] | Tensor, count: int, name: str) -> list[int]:
    """A length for each of `count` sources."""
    if isinstance(lengths, int):
        return [lengths] * count
    each = [int(length) for length in lengths]
    if len(each) != count:
        raise ConfigError(f"one {name} a source is wanted: {count}", f"{len(each)} values of {name}")
    return each
