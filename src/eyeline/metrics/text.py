"""BLEU, chrF and TER as sacreBLEU computes them, on detokenised text. Knows sacreBLEU; nothing of how scores are resampled.

sacreBLEU keeps its own form of the text: BLEU splits with its 13a tokeniser, chrF leaves blanks out, TER ignores case. Its
signature says so. Statistics of a line are those that sacreBLEU itself sums, so that our corpus score is its corpus score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from eyeline.metrics.base import Metric, Numbers

_NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}  # as sacreBLEU's own command opens its signatures


@cache
def _scorer(name: str) -> Any:
    """One sacreBLEU object a metric and process: its tokenisers are dear to make."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    # `force` only silences the guess that the text was never detokenised, which a training run would print at each validation
    return {"bleu": lambda: BLEU(force=True), "chrf": CHRF, "ter": TER}[name]()


def _statistics(name: str) -> Callable[[Sequence[str], Sequence[str]], Numbers]:
    def statistics(hypotheses: Sequence[str], references: Sequence[str]) -> Numbers:
        # sacreBLEU wants sets of references, each as long as the hypotheses: ours is the one set
        return np.array(_scorer(name)._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)

    return statistics


def _aggregate(name: str) -> Callable[[Numbers], float]:
    def aggregate(total: Numbers) -> float:
        counts = [round(count) for count in total.tolist()]  # all of them are counts: there is one reference a line
        return float(_scorer(name)._compute_score_from_stats(counts).score)

    return aggregate


def _signature(name: str) -> Callable[[], str]:
    return lambda: f"{_NAMES[name]}|{_scorer(name).get_signature()}"


METRICS = {name: Metric(name, _statistics(name), _aggregate(name), _signature(name)) for name in _NAMES}
