"""A search over settings as a picture: how the best score came about, and what mattered. Knows numbers and names."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence

from eyeline.errors import require

FIRST, SECOND, FAINT = "#1f5a96", "#c8553d", "#9aa4ae"


def draw_tuning(
    trials: Sequence[tuple[int, float, bool]], importances: Mapping[str, float], *, metric: str, lower: bool
) -> bytes:
    """A PNG: scores by trial with the best so far on the left, shares of importance on the right.

    Args:
        trials: (number, score, whether it was pruned) by number; of a pruned one, the last score that it had.
        importances: shares by setting, largest first; without them the left half is all.
        lower: whether a lower score is better.

    Raises:
        MissingExtra: without matplotlib.
    """
    require("matplotlib", "plots")
    figure = require("matplotlib.figure", "plots").Figure(figsize=(10 if importances else 6, 3.6), layout="constrained")
    left, *right = figure.subplots(1, 2 if importances else 1, squeeze=False)[0]
    trials = [trial for trial in trials if math.isfinite(trial[1])]
    ended = [(number, score) for number, score, pruned in trials if not pruned]
    best: list[float] = []
    for _, score in ended:
        best.append(score if not best else min(best[-1], score) if lower else max(best[-1], score))
    given_up = [(number, score) for number, score, pruned in trials if pruned]
    left.scatter(*_columns(given_up), s=14, c=FAINT, marker="x", label="pruned")
    left.scatter(*_columns(ended), s=14, c=FIRST, label="to its end")
    left.step([number for number, _ in ended], best, color=SECOND, where="post", label="best so far")
    left.set_xlabel("trial")
    left.set_ylabel(f"{metric} ({'lower' if lower else 'higher'} is better)")
    left.xaxis.set_major_locator(require("matplotlib.ticker", "plots").MaxNLocator(integer=True))
    left.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    for axes in right:
        names = list(importances)[::-1]
        axes.barh(names, [importances[name] for name in names], color=FIRST)
        axes.set_xlabel("share of importance")
    for axes in (left, *right):
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [number for number, _ in points], [score for _, score in points]
