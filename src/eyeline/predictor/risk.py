"""The sample that is nearest to all: minimum Bayes risk. Knows hypotheses and texts; no model."""

from __future__ import annotations

from collections.abc import Sequence

from eyeline.contracts import Hypothesis
from eyeline.metrics.chrf_pairs import chrf_pairs


def least_risk(samples: Sequence[Hypothesis], texts: Sequence[str]) -> list[Hypothesis]:
    """The distinct samples, those of the greatest expected chrF first (Kumar & Byrne 2004; Eikema & Aziz 2020, section 4).

    The expectation is over all samples, of which one that was drawn twice counts twice, the sample itself with them: Σ_j
    chrF(y_i, y_j) / J. Finished ones stand before unfinished ones; of equal ones the earlier drawn comes first.
    """
    columns = {text: column for column, text in enumerate(dict.fromkeys(texts))}
    drawn = [columns[text] for text in texts]
    worth = chrf_pairs(list(columns))[:, drawn].mean(1)
    first: dict[tuple[int, ...], int] = {}
    for place, one in enumerate(samples):
        first.setdefault(one.ids, place)
    order = sorted(first.values(), key=lambda place: (not samples[place].finished, -worth[drawn[place]]))
    return [samples[place] for place in order]
