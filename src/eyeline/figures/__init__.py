"""Values in, pictures out. Knows tokens and numbers; no model, no settings. matplotlib is imported only to draw."""

from eyeline.figures.alignment import FORMATS, AlignmentMatrix
from eyeline.figures.coverage import CoverageMatrix
from eyeline.figures.labels import heading

__all__ = ["FORMATS", "AlignmentMatrix", "CoverageMatrix", "heading"]
