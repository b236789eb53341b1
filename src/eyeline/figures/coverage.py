"""Coverage over time: how much each source token has been looked at after each step. Knows tokens and numbers; no model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from eyeline.figures.alignment import AlignmentMatrix, save_figure


class CoverageMatrix:
    """Running sums of attention: row i is what the source tokens had been looked at once target token i was produced.

    Row i has step i in it, so that the last row is the whole: a token that ends near 0 was passed over, one far above 1 was
    looked at again and again. What a model with coverage knows at step i is the row before.

    Args:
        matrix: the attention of each step.
    """

    def __init__(self, matrix: AlignmentMatrix) -> None:
        self.source_tokens, self.target_tokens = matrix.source_tokens, matrix.target_tokens
        self.coverage = matrix.weights.cumsum(axis=0)  # [T, S]
        self.title, self.note = matrix.title, f"coverage over time; {matrix.note}" if matrix.note else "coverage over time"

    @property
    def top(self) -> float:
        """The darkest end of the scale: the largest sum, rounded up to a whole number and at least 1."""
        return float(max(1, math.ceil(np.round(self.coverage.max(), 3))))

    def to_dict(self) -> dict[str, Any]:
        """What `.json` holds: plain values, tokens whole."""
        return {
            "source_tokens": list(self.source_tokens),
            "target_tokens": list(self.target_tokens),
            "coverage": self.coverage.tolist(),
            "title": self.title,
            "note": self.note,
        }

    def save(self, path: str | Path) -> Path:
        """Writes the picture (.png, .svg) or the values (.json), as `AlignmentMatrix.save` does. Returns the path."""
        return save_figure(path, self.to_dict(), self.coverage, self.top)
