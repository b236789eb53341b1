"""Scores with signatures, intervals and comparisons, and alignment error. Knows text and numbers; no model, no file."""

from eyeline.metrics.alignment import (
    AlignmentScores,
    GoldLinks,
    Link,
    LinkCounts,
    Links,
    alignment_scores,
    attention_between_words,
    attention_links,
    format_links,
    links_between_words,
    links_from_attention,
    parse_alignment,
    parse_links,
)
from eyeline.metrics.base import Score
from eyeline.metrics.by_length import Bucket, by_length, length_edges
from eyeline.metrics.evaluate import copy_rate, length_ratio, repeats_itself, repetition_rate, report
from eyeline.metrics.pointing import pointing_report
from eyeline.metrics.scores import METRICS, aggregate, corpus_score, score_of, statistics
from eyeline.metrics.significance import (
    Difference,
    Interval,
    approximate_randomisation,
    bootstrap_interval,
    difference,
    holm,
    paired_bootstrap,
    resampled_scores,
)

__all__ = [
    "METRICS",
    "AlignmentScores",
    "Bucket",
    "Difference",
    "GoldLinks",
    "Interval",
    "Link",
    "LinkCounts",
    "Links",
    "Score",
    "aggregate",
    "alignment_scores",
    "approximate_randomisation",
    "attention_between_words",
    "attention_links",
    "bootstrap_interval",
    "by_length",
    "copy_rate",
    "corpus_score",
    "difference",
    "format_links",
    "holm",
    "length_edges",
    "length_ratio",
    "links_between_words",
    "links_from_attention",
    "paired_bootstrap",
    "parse_alignment",
    "parse_links",
    "pointing_report",
    "repeats_itself",
    "repetition_rate",
    "report",
    "resampled_scores",
    "score_of",
    "statistics",
]
