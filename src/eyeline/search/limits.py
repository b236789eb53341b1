"""How long an output may be and what its length is worth. Knows numbers only: no model, no search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eyeline.contracts import BEGIN, END, PAD, Source
from eyeline.errors import ConfigError

Lengths = int | Sequence[int] | Tensor | None  # one maximum for all sources, one a source, or the default


def default_max_length(source_length: int) -> int:
    """The most tokens of an output, END apart, for a source of `source_length` tokens: 2·S + 30."""
    return 2 * source_length + 30


def total(token_scores: Sequence[float]) -> float:
    """The sum from left to right, as a search adds up; `sum` rounds otherwise from Python 3.12 on, which could turn near-ties."""
    result = 0.0
    for token_score in token_scores:
        result += token_score
    return result


def normalize(score: float, length: int, length_penalty: float) -> float:
    """`score / length^length_penalty`; `length` counts END, and 0 (an unfinished output without a token) counts as 1."""
    return score / worth(length, length_penalty)


def worth(length: int, length_penalty: float) -> float:
    """What a score over `length` tokens is divided by."""
    return math.pow(max(length, 1), length_penalty)


@dataclass(frozen=True)
class Limits:
    """What bounds one call of a search, checked."""

    min_length: int  # tokens before END may come
    max_length: Tensor  # [N] long on the CPU: most tokens of each output, END apart
    length_penalty: float
    divisors: Tensor  # [longest maximum + 2] float64: entry l is `worth(l, length_penalty)`
    coverage_penalty: float = 0.0  # β of `coverage.coverage_penalty`
    no_repeat_ngram: int = 0  # tokens of an n-gram that no output has twice; 0: repeats are allowed

    @classmethod
    def of(
        cls,
        source: Source,
        min_length: int,
        max_length: Lengths,
        length_penalty: float,
        coverage_penalty: float = 0.0,
        no_repeat_ngram: int = 0,
    ) -> Limits:
        """Checks the settings for the N sources of a call; `max_length` None takes `default_max_length`, or `min_length` if more.

        Raises:
            ConfigError: a value that cannot be, or a minimum above a maximum.
        """
        if min_length < 0:
            raise ConfigError("a length is not negative", f"min_length={min_length}")
        maxima = _maxima(source, min_length, max_length)
        for maximum in maxima:
            if maximum < 1:
                raise ConfigError("the longest output is at least 1 token", f"max_length={maximum}")
            if min_length > maximum:
                raise ConfigError("min_length is above max_length", f"min_length={min_length}, max_length={maximum}")
        longest = max(maxima, default=1) + 1
        if not 0 <= length_penalty < math.inf:  # a NaN fails this too
            raise ConfigError("the length penalty is a number from 0", f"length_penalty={length_penalty}")
        if length_penalty * math.log(longest) > 600:  # the power would overflow
            raise ConfigError("the length penalty is too large", f"length_penalty={length_penalty}", "0 to 2 is usual")
        check_coverage_penalty(coverage_penalty)
        if no_repeat_ngram < 0:
            raise ConfigError("an n-gram has a length", f"no_repeat_ngram={no_repeat_ngram}", "0 allows repeats")
        divisors = torch.tensor([worth(length, length_penalty) for length in range(longest + 1)], dtype=torch.float64)
        most = torch.tensor(maxima, dtype=torch.long)
        return cls(min_length, most, length_penalty, divisors, coverage_penalty, no_repeat_ngram)

    def forbidden(self, position: int) -> list[int]:
        """The ids that cannot come after `position` tokens: PAD and BEGIN never, END not before the minimum."""
        return [PAD, BEGIN] if position >= self.min_length else [PAD, BEGIN, END]


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


def _maxima(source: Source, min_length: int, max_length: Lengths) -> list[int]:
    """The maximum length of each source."""
    count = source.ids.shape[0]
    if max_length is None:
        return [max(default_max_length(int(length)), min_length) for length in source.lengths.tolist()]
    if isinstance(max_length, int):
        return [max_length] * count
    maxima = [int(maximum) for maximum in max_length]
    if len(maxima) != count:
        raise ConfigError(f"one max_length a source is wanted: {count}", f"{len(maxima)} values of max_length")
    return maxima
