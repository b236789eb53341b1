"""Which test pairs are looked at closely, and where a run looks in them. Knows predictors; draws nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eyeline.config_models import Seq2SeqSettings
from eyeline.evaluation import alignment_matrix, source_lines
from eyeline.predictor import Predictor
from eyeline.text.records import Pair

LONGEST = 40  # source tokens of a pair that is drawn: more cannot be told apart side by side
QUANTILES = (0.25, 0.6, 1.0)  # of the lengths up to LONGEST: a short pair, a usual one, a long one


def picture_lines(lengths: Sequence[int]) -> list[int]:
    """The places of a few pairs of different lengths, from source lengths alone, so that all runs are asked about the same."""
    usable = sorted((length, place) for place, length in enumerate(lengths) if 0 < length <= LONGEST)
    if not usable:
        return []
    chosen: dict[int, int] = {}
    for quantile in QUANTILES:
        length, place = usable[round(quantile * (len(usable) - 1))]
        chosen.setdefault(length, place)
    return list(chosen.values())


def pictures(predictor: Predictor, pairs: Sequence[Pair], places: Sequence[int]) -> list[dict[str, Any]]:
    """Where the run looks while the reference is given to it, so that rows and columns are the same for all runs.

    An entry a pair: its place, tokens and weights to three digits; none for a run without attention.
    """
    if isinstance(predictor.config.model, Seq2SeqSettings):
        return []
    found = []
    for place in places:
        matrix = alignment_matrix(predictor, source_lines(predictor, [pairs[place]])[0], pairs[place].target)
        weights = np.round(matrix.weights, 3).tolist()
        found.append(
            {
                "place": place,
                "source_tokens": list(matrix.source_tokens),
                "target_tokens": list(matrix.target_tokens),
                "weights": weights,
            }
        )
    return found
