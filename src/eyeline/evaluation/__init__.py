"""A trained run measured: outputs against references, alignments against gold links. Knows predictors, metrics and figures."""

from eyeline.evaluation.against import compare_outputs, other_outputs
from eyeline.evaluation.against import render as render_comparison
from eyeline.evaluation.alignments import Head, align_pairs, alignment_against_gold, alignment_matrix, gold_links, links_words
from eyeline.evaluation.description import describe
from eyeline.evaluation.diagnosis import diagnose, worst
from eyeline.evaluation.heads import align_by, check_keeping, chosen_head, keep_head, rank_heads, selects, table
from eyeline.evaluation.pairs import read_for, source_lines
from eyeline.evaluation.quality import Measured, evaluate, measure, render

__all__ = [
    "Head",
    "Measured",
    "align_by",
    "align_pairs",
    "alignment_against_gold",
    "alignment_matrix",
    "check_keeping",
    "chosen_head",
    "compare_outputs",
    "describe",
    "diagnose",
    "evaluate",
    "gold_links",
    "keep_head",
    "links_words",
    "measure",
    "other_outputs",
    "rank_heads",
    "read_for",
    "render",
    "render_comparison",
    "selects",
    "source_lines",
    "table",
    "worst",
]
