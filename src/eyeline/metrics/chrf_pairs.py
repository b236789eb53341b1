"""chrF of every text against every other, for choosing among samples. Knows strings and counts; sacreBLEU is what it is tested
by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from eyeline.metrics.base import Numbers

ORDER, BETA = 6, 2.0  # chrF2, as sacreBLEU's default


def chrf_pairs(texts: Sequence[str]) -> Numbers:
    """[U, U] chrF2 of text i as an output against text j as its reference, 0 to 100: sacreBLEU's sentence score. A text is worth
    100 against itself, also an empty one, of which sacreBLEU says 0."""
    squeezed = ["".join(text.split()) for text in texts]
    count = len(squeezed)
    precision, recall, orders = np.zeros((count, count)), np.zeros((count, count)), np.zeros((count, count))
    for size in range(1, ORDER + 1):
        counts = _counts(squeezed, size)  # [U, distinct n-grams]
        totals = counts.sum(1)
        both = (totals[:, None] > 0) & (totals > 0)
        matches = np.stack([np.minimum(row, counts).sum(1) for row in counts]) if counts.size else np.zeros((count, count))
        precision += np.divide(matches, totals[:, None], out=np.zeros_like(matches), where=both)
        recall += np.divide(matches, totals, out=np.zeros_like(matches), where=both)
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = BETA**2 * precision + recall
    scores: Numbers = 100 * np.divide((1 + BETA**2) * precision * recall, below, out=np.zeros_like(below), where=below > 0)
    same = np.array([[one == other for other in squeezed] for one in squeezed], dtype=bool).reshape(count, count)
    return np.where(same, 100.0, scores)


def _counts(texts: Sequence[str], size: int) -> Numbers:
    """[U, distinct n-grams] how often each text has each n-gram of `size` characters."""
    several = [Counter(text[start : start + size] for start in range(len(text) - size + 1)) for text in texts]
    columns = {gram: column for column, gram in enumerate(dict.fromkeys(gram for counts in several for gram in counts))}
    table = np.zeros((len(texts), len(columns)))
    for row, counts in enumerate(several):
        for gram, number in counts.items():
            table[row, columns[gram]] = number
    return table
