"""What a person is shown of a validation: a few answers, right or wrong, and where the model looked. Knows tokens and weights."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eyeline.errors import MissingExtra
from eyeline.figures.heat_map import draw_heat_map
from eyeline.figures.labels import heading, shortened, visible
from eyeline.training.trackers import Pixels

LONGEST = 160  # characters of a line of links
DRAWN = 60  # tokens on a side, beyond which no picture is drawn: it would be of specks


@dataclass(frozen=True)
class Example:
    """An answer to a validation pair."""

    source: str
    output: str
    reference: str  # as a perfect output would be spelt
    target: str  # as the file has it
    source_tokens: list[str]  # END last
    tokens: list[str]  # what was said, END last where it was
    weights: npt.NDArray[np.float64] | None  # [tokens, source tokens]; None for a model that has no attention

    def lines(self) -> list[str]:
        """The answer, and below it which source token each target token looked at most."""
        if self.output == self.reference:
            shown = [f"✓ {self.source} → {self.output}"]
        else:
            shown = [f"✗ {self.source} → {self.output}  (reference {self.target})"]
        if self.weights is not None and len(self.weights):
            shown.append("  " + shortened("  ".join(self._links()), LONGEST))
        return shown

    def picture(self) -> Pixels | None:
        """The heat map of the attention; None where there is none, it would be too large, or matplotlib is not installed."""
        if self.weights is None or not 0 < max(self.weights.shape) <= DRAWN:
            return None
        try:
            png = draw_heat_map(self.tokens, self.source_tokens, self.weights, title=heading(self.source, self.output))
        except MissingExtra:
            return None
        from matplotlib.image import imread

        return np.round(imread(io.BytesIO(png), format="png")[..., :3] * 255).astype(np.uint8)

    def _links(self) -> list[str]:
        assert self.weights is not None
        places = self.weights.argmax(1)
        return [
            f"{visible(token)}←{visible(self.source_tokens[place])}" for token, place in zip(self.tokens, places, strict=True)
        ]
