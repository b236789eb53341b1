"""A trained run measured: outputs against references, alignments against gold links. Knows predictors, metrics and figures."""

from eyeline.evaluation.alignments import align_pairs, alignment_against_gold, alignment_matrix, links_words
from eyeline.evaluation.description import describe
from eyeline.evaluation.pairs import read_for, source_lines
from eyeline.evaluation.quality import evaluate, render

__all__ = [
    "align_pairs",
    "alignment_against_gold",
    "alignment_matrix",
    "describe",
    "evaluate",
    "links_words",
    "read_for",
    "render",
    "source_lines",
]
