"""Values in, pictures out. Knows tokens and numbers; no model, no settings. matplotlib is imported only to draw."""

from eyeline.figures.alignment import FORMATS, AlignmentMatrix
from eyeline.figures.coverage import CoverageMatrix
from eyeline.figures.labels import heading
from eyeline.figures.lines import Line, Panel, save_lines

__all__ = ["FORMATS", "AlignmentMatrix", "CoverageMatrix", "Line", "Panel", "heading", "save_lines"]
