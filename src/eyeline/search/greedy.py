"""The likeliest token at every position. Knows courses; no model."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from eyeline.contracts import Hypothesis, Source
from eyeline.errors import ConfigError
from eyeline.search.beam import NOTHING
from eyeline.search.course import Course, Searching
from eyeline.search.limits import Lengths, Limits, Ranking, Worth, average
from eyeline.search.rules import Demands, Rules
from eyeline.search.walk import walk


@Searching
def greedy(
    source: Source,
    *,
    length_penalty: float = 1.0,
    min_length: Lengths = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    demands: Demands = NOTHING,
    worth: Worth = average,
) -> Course[list[Hypothesis]]:
    """One hypothesis a source: always the likeliest token, the lower id where two are equal.

    A sentence leaves the batch as soon as it ends, so that its neighbours cannot change it. It is the beam search of size 1 that
    stops at the first END; the beam search itself goes on while a longer output can have a better normalised score.

    Args:
        length_penalty, worth: only for `normalized_score`; they decide nothing here.
        min_length: tokens before END may come: one number, or one a source.
        max_length: most tokens, END apart: one number, one a source, or None for `default_max_length`. After the last of them
            END is still asked for; where it is not the likeliest, the hypothesis is unfinished. A longer prefix stays whole.
        attention: whether hypotheses carry the attention.
        coverage_penalty: as length_penalty.
        no_repeat_ngram: the length of an n-gram of tokens that no output has twice; 0 allows repeats. Where nothing but END is
            left it comes, however unlikely; before the minimum length the hypothesis stops there, unfinished.
        demands: prefixes, and phrases that outputs may not have.

    Raises:
        ConfigError: a length, penalty or demand that cannot be, required phrases, or a coverage penalty for a model without
            attention.
        RunError: the model answered NaN.
    """
    ranking = Ranking(length_penalty, worth, coverage_penalty)
    limits = Limits.of(source, min_length, max_length, ranking, demands.begun(source.ids.shape[0]))
    refuse_required(demands)
    if not len(limits.max_length):
        return []
    return (yield from walk(source, Likeliest(), Rules.of(demands, no_repeat_ngram, limits), limits, attention))


def refuse_required(demands: Demands) -> None:
    """Raises ConfigError for phrases that outputs must have: one token after the other cannot look for room for them."""
    if any(demands.required):
        raise ConfigError("required phrases want a beam", hint="search with a beam")


@dataclass(frozen=True)
class Likeliest:
    def pick(self, log_probs: Tensor, position: int, rules: Rules) -> tuple[Tensor, Tensor]:
        values, ids = rules.offer(log_probs, 1, position)
        if ids.shape[1] == 1:
            return ids[:, 0], values[:, 0]
        best = values.argmax(1, keepdim=True)  # the first of the greatest: values are sorted but for the forbidden ones
        return ids.gather(1, best)[:, 0], values.gather(1, best)[:, 0]

    def select(self, keep: Tensor) -> Likeliest:
        return self
