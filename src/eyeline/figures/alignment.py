"""The alignment matrix of one pair: which source token each target token looked at. Knows tokens and weights; no model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyeline.errors import ConfigError, UserError
from eyeline.figures.heat_map import draw_heat_map
from eyeline.figures.labels import heading
from eyeline.files import beside

if TYPE_CHECKING:  # the contracts import torch, and a picture needs none
    from eyeline.contracts import Prediction

FORMATS = (".png", ".svg", ".json")


class AlignmentMatrix:
    """Attention of T target tokens over S source tokens.

    Args:
        source_tokens: S labels of columns, in the order of the source; END is one of them where `target_tokens` has it too.
        target_tokens: T labels of rows; row i is the token that step i produced.
        weights: [T, S] in 0…1, drawn and stored as they are: rows sum to what they summed to.
        title: what was translated, or any other line above the picture.
        note: where the weights come from: the architecture, and which layer and head or which mean.

    Raises:
        UserError: when tokens and weights do not belong together, or a weight is not in 0…1.
    """

    def __init__(
        self,
        source_tokens: Sequence[str],
        target_tokens: Sequence[str],
        weights: ArrayLike,
        title: str = "",
        note: str = "",
    ) -> None:
        for side, tokens in (("source", source_tokens), ("target", target_tokens)):
            if isinstance(tokens, str):
                raise UserError(f"{side} tokens are one string, not a list of strings", hint="list(text) gives its characters")
        values = np.array(weights, dtype=np.float64)  # a copy: what the caller does to theirs changes no picture
        expected = len(target_tokens), len(source_tokens)
        if 0 in expected:
            raise UserError(f"nothing to draw: {expected[0]} target tokens and {expected[1]} source tokens")
        if values.shape != expected:
            raise UserError(
                f"weights of shape {values.shape} for {expected[0]} target tokens and {expected[1]} source tokens",
                hint="one row a target token, one column a source token",
            )
        if not np.isfinite(values).all() or values.min() < -1e-6 or values.max() > 1 + 1e-3:
            raise UserError(f"attention weights lie in 0…1, these in {values.min():g}…{values.max():g}")
        self.source_tokens = tuple(source_tokens)
        self.target_tokens = tuple(target_tokens)
        self.weights = values
        self.title = title
        self.note = note

    @classmethod
    def of(cls, prediction: Prediction, note: str = "") -> AlignmentMatrix:
        """The matrix of a prediction that was made with its alignment. Raises UserError when it has none."""
        if prediction.alignment is None:
            raise UserError("this prediction has no alignment", hint="ask for attention, from a model that has one")
        title = heading(prediction.source, prediction.text)
        return cls(prediction.source_tokens, prediction.tokens, prediction.alignment, title, note)

    def to_dict(self) -> dict[str, Any]:
        """What `.json` holds: plain values, tokens whole and weights as given."""
        return {
            "source_tokens": list(self.source_tokens),
            "target_tokens": list(self.target_tokens),
            "weights": self.weights.tolist(),
            "title": self.title,
            "note": self.note,
        }

    def save(self, path: str | Path) -> Path:
        """Writes the picture (.png, .svg) or the values (.json), whole or not at all. Returns the path.

        Raises:
            ConfigError: for another suffix, naming the valid ones.
            MissingExtra: for a picture without matplotlib.
            UserError: when the file cannot be written.
        """
        return save_figure(path, self.to_dict(), self.weights)


def save_figure(path: str | Path, values: dict[str, Any], cells: NDArray[np.float64], top: float = 1.0) -> Path:
    """Writes the `cells` [T, S] of a pair, in colours from 0 to `top`, or as .json its `values`, which hold its labels.

    Returns and raises what `AlignmentMatrix.save` does.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError("not a kind of file that a figure is written as", str(path), f"valid: {', '.join(FORMATS)}")
    if suffix == ".json":
        # half a surrogate pair has no UTF-8; escaped with a backslash it is JSON's own way to write it
        content = (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    else:
        rows, columns = values["target_tokens"], values["source_tokens"]
        content = draw_heat_map(rows, columns, cells, title=values["title"], note=values["note"], kind=suffix[1:], top=top)
    with beside(path) as temporary:
        temporary.write_bytes(content)
    return path
