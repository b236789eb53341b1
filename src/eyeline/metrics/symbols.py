"""Metrics of our own that count equal lines and edits, and ROUGE-L. Knows strings; no tokenizer but white space, no language.

All of them compare text in the form `plain` gives it, keep case, punctuation and accents, and count every script alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eyeline.metrics.base import Metric, Numbers, plain

VERSION = 1  # rises whenever a definition in this file changes, so that an old number is never compared with a new one


def _signature(name: str, tokens: str, pooling: str) -> Callable[[], str]:
    text = f"{name}|version:{VERSION}|nrefs:1|tok:{tokens}|case:mixed|form:nfc|blanks:single|average:{pooling}"
    return lambda: text


def _equal(hypotheses: Sequence[str], references: Sequence[str]) -> Numbers:
    """[n, 2]: 1 where the line is equal, and 1."""
    return np.array([(plain(h) == plain(r), 1) for h, r in zip(hypotheses, references, strict=True)], dtype=np.float64)


def _edits(tokens: Callable[[str], Sequence[str]]) -> Callable[[Sequence[str], Sequence[str]], Numbers]:
    """Statistics [n, 2] of an error rate: Levenshtein edits, and the reference's number of tokens."""

    def statistics(hypotheses: Sequence[str], references: Sequence[str]) -> Numbers:
        from rapidfuzz.distance import Levenshtein

        rows = []
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            said, wanted = tokens(plain(hypothesis)), tokens(plain(reference))
            rows.append((Levenshtein.distance(said, wanted), len(wanted)))
        return np.array(rows, dtype=np.float64)

    return statistics


def _common_subsequence(hypotheses: Sequence[str], references: Sequence[str]) -> Numbers:
    """[n, 2]: ROUGE-L's F of the line, in 0…1, and 1. Lin 2004, section 3, with β = 1; 0 where either side is empty."""
    from rapidfuzz.distance import LCSseq

    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        said, wanted = plain(hypothesis).split(), plain(reference).split()
        # 2PR/(P+R) with P = common/|said| and R = common/|wanted|
        rows.append((2 * LCSseq.similarity(said, wanted) / max(1, len(said) + len(wanted)), 1))
    return np.array(rows, dtype=np.float64)


def _share(total: Numbers) -> float:
    """Percent of the lines."""
    return 100 * float(total[0]) / float(total[1])


def _error_rate(total: Numbers) -> float:
    """Percent of edits over reference tokens, which may exceed 100. Without reference tokens: 0 without edits, else 100."""
    edits, length = float(total[0]), float(total[1])
    if length == 0:
        return 100.0 if edits else 0.0
    return 100 * edits / length


def _characters(text: str) -> str:
    return text


METRICS = {
    metric.name: metric
    for metric in (
        Metric("exact_match", _equal, _share, _signature("exact_match", "none", "lines")),
        Metric("symbol_error_rate", _edits(str.split), _error_rate, _signature("symbol_error_rate", "blanks", "pooled")),
        Metric("wer", _edits(str.split), _error_rate, _signature("wer", "blanks", "pooled")),
        Metric("cer", _edits(_characters), _error_rate, _signature("cer", "characters", "pooled")),
        Metric("rougeL", _common_subsequence, _share, _signature("rougeL", "blanks", "lines")),
    )
}
