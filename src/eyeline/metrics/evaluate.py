"""The metric parts of `evaluate --json`, out of lines that a user would see. Knows text and lengths; no model, no speed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eyeline.errors import UserError
from eyeline.metrics.base import check_lines, plain
from eyeline.metrics.by_length import by_length
from eyeline.metrics.scores import metric_named, score_of, statistics
from eyeline.metrics.significance import SAMPLES, bootstrap_interval

_LONGEST_NGRAM = 4  # words of a phrase that is looked for directly after itself
_REPEATED_CHARACTERS = re.compile(r"(.{1,8}?)\1{3,}", re.DOTALL)  # one to eight characters, four times in a row


def repeats_itself(text: str) -> bool:
    """Whether a phrase of one to four words stands directly after itself, or one to eight characters four times in a row."""
    words = plain(text).split()
    for n in range(1, _LONGEST_NGRAM + 1):
        if any(words[i : i + n] == words[i + n : i + 2 * n] for i in range(len(words) - 2 * n + 1)):
            return True
    return _REPEATED_CHARACTERS.search(plain(text)) is not None


def repetition_rate(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share, 0 to 1, of outputs that repeat themselves where their reference does not (as `10000` does)."""
    check_lines(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    return sum(repeats_itself(said) and not repeats_itself(wanted) for said, wanted in pairs) / len(hypotheses)


def length_ratio(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Characters of all outputs over characters of all references: the unit that every script has. 1 where both are empty."""
    check_lines(hypotheses, references)
    said, wanted = (sum(len(plain(line)) for line in lines) for lines in (hypotheses, references))
    return said / max(1, wanted) if said or wanted else 1.0


def copy_rate(sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """What is taken from the source as it is, shares from 0 to 1.

    Returns:
        `lines`: outputs that are their whole source where the reference is not; `words`: words of all outputs that their source
        has, too, and `reference_words`: the same of references. Words are separated by white space.
    """
    check_lines(hypotheses, references)
    check_lines(sources, references)
    triples = [tuple(plain(text) for text in line) for line in zip(sources, hypotheses, references, strict=True)]
    lines = sum(said == given != wanted and given != "" for given, said, wanted in triples)
    shares = []
    for side in (1, 2):
        pairs = [(set(line[0].split()), line[side].split()) for line in triples]
        total = sum(len(words) for _, words in pairs)
        shares.append(sum(word in known for known, words in pairs for word in words) / total if total else 0.0)
    return {"lines": lines / len(triples), "words": shares[0], "reference_words": shares[1]}


def report(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    source_lengths: Sequence[int],
    metrics: Sequence[str],
    edges: Sequence[int] | None = None,
    unknown_rate: Mapping[str, float] | None = None,
    seed: int = 1,
    samples: int = SAMPLES,
) -> dict[str, Any]:
    """What `evaluate --json` says about the outputs, as plain values.

    Args:
        hypotheses: detokenised outputs, one a line.
        references: detokenised references, one a hypothesis.
        source_lengths: tokens of each source; `by_length` is in this unit.
        metrics: names, at least one; the first is also scored by length.
        edges: the largest length of each bucket of `by_length`; chosen from the data by default.
        unknown_rate: shares of unknown tokens, by side, counted by whoever has the tokenizers.
        seed: of the resamples behind `low` and `high`.
        samples: how many of them.

    Returns:
        `n`, `metrics` (name to score, signature and 95 % interval), `by_length`, `repetition_rate`, `length_ratio` and, where
        given, `unknown_rate`.

    Raises:
        ConfigError: for an unknown metric.
        UserError: for lines or lengths that do not belong together.
    """
    check_lines(hypotheses, references)
    if not metrics:
        raise UserError("no metric to score by")
    if len(source_lengths) != len(hypotheses):
        raise UserError(f"{len(source_lengths)} source lengths for {len(hypotheses)} hypotheses")
    for name in metrics:
        metric_named(name)  # a misspelt name is told before the first metric is computed
    scores: dict[str, dict[str, Any]] = {}
    rows = {name: statistics(name, hypotheses, references) for name in metrics}
    for name in metrics:
        score, interval = score_of(name, rows[name]), bootstrap_interval(name, rows[name], seed=seed, samples=samples)
        scores[name] = {"score": score.score, "signature": score.signature, "low": interval.low, "high": interval.high}
    result: dict[str, Any] = {
        "n": len(hypotheses),
        "metrics": scores,
        "by_length": by_length(metrics[0], rows[metrics[0]], source_lengths, edges=edges, seed=seed, samples=samples),
        "repetition_rate": repetition_rate(hypotheses, references),
        "length_ratio": length_ratio(hypotheses, references),
    }
    if unknown_rate is not None:
        result["unknown_rate"] = {side: float(rate) for side, rate in unknown_rate.items()}
    return result
