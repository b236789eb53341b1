"""A trained run measured: outputs against references, alignments against gold links. Knows predictors, metrics and figures."""

from eyeline.evaluation.alignments import Head, align_pairs, alignment_against_gold, alignment_matrix, gold_links, links_words
from eyeline.evaluation.description import describe
from eyeline.evaluation.heads import align_by, check_keeping, chosen_head, keep_head, rank_heads, selects, table
from eyeline.evaluation.pairs import read_for, source_lines
from eyeline.evaluation.quality import evaluate, render

__all__ = [
    "Head",
    "align_by",
    "align_pairs",
    "alignment_against_gold",
    "alignment_matrix",
    "check_keeping",
    "chosen_head",
    "describe",
    "evaluate",
    "gold_links",
    "keep_head",
    "links_words",
    "rank_heads",
    "read_for",
    "render",
    "selects",
    "source_lines",
    "table",
]
