"""From a model to its answers: greedy and beam search, samples, and the scores of given outputs.

Knows the contracts only (`encode`, `start`, `step`, `head`, `select`), so every architecture that keeps them can be searched.
`score` and `token_scores` are natural log-probabilities, END counted; see docs/search.md for the conventions.
"""

from __future__ import annotations

from eyeline.contracts import Hypothesis, Source
from eyeline.search.alternatives import next_tokens
from eyeline.search.beam import NOTHING, beam_search
from eyeline.search.course import Course, Searching
from eyeline.search.greedy import greedy
from eyeline.search.limits import WORTHS, Lengths, Worth, average, default_max_length, normalize, wu
from eyeline.search.rules import Demands
from eyeline.search.sampling import drawn_from, sample
from eyeline.search.scoring import score

__all__ = [
    "WORTHS",
    "Demands",
    "Lengths",
    "Worth",
    "average",
    "beam_search",
    "default_max_length",
    "drawn_from",
    "greedy",
    "next_tokens",
    "normalize",
    "sample",
    "score",
    "search",
    "wu",
]


@Searching
def search(
    source: Source,
    *,
    beam_size: int = 5,
    n_best: int = 1,
    length_penalty: float = 1.0,
    min_length: Lengths = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    demands: Demands = NOTHING,
    worth: Worth = average,
    diverse_groups: int = 1,
    diversity: float = 0.5,
    patience: float | None = None,
) -> Course[list[list[Hypothesis]]]:
    """`greedy` where one hypothesis is kept, one is wanted and no phrase is required, else `beam_search`, with its arguments,
    errors and lists."""
    if beam_size == 1 and n_best == 1 and not any(demands.required):
        answers = yield from greedy.course(
            source,
            length_penalty=length_penalty,
            min_length=min_length,
            max_length=max_length,
            attention=attention,
            coverage_penalty=coverage_penalty,
            no_repeat_ngram=no_repeat_ngram,
            demands=demands,
            worth=worth,
        )
        return [[answer] for answer in answers]
    found = yield from beam_search.course(
        source,
        beam_size=beam_size,
        n_best=n_best,
        length_penalty=length_penalty,
        min_length=min_length,
        max_length=max_length,
        attention=attention,
        coverage_penalty=coverage_penalty,
        no_repeat_ngram=no_repeat_ngram,
        demands=demands,
        worth=worth,
        diverse_groups=diverse_groups,
        diversity=diversity,
        patience=patience,
    )
    return found
