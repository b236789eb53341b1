"""What an experiment gives: values, tables, panels of a figure, and sentences. Knows numbers and texts; no experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eyeline.figures import Panel

Cell = str | int | float | None


def written(cell: Cell) -> str:
    """A cell as people read it: four significant digits, a dash for nothing."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell and not 1e-4 <= abs(cell) < 1e5:
        return f"{cell:.2e}"
    return f"{cell:.4g}"


@dataclass(frozen=True)
class Table:
    """Rows under named columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def render(self) -> str:
        """As lines of text, names to the left and numbers to the right."""
        cells = [list(self.columns), *([written(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        numeric = [all(not isinstance(row[place], str) for row in self.rows) for place in range(len(self.columns))]
        lines = [
            "  ".join(
                text.rjust(width) if right else text.ljust(width) for text, width, right in zip(row, widths, numeric, strict=True)
            )
            for row in cells
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "columns": list(self.columns), "rows": [[plain(cell) for cell in row] for row in self.rows]}


@dataclass(frozen=True)
class Findings:
    """What was measured."""

    title: str  # of the figure
    tables: Sequence[Table]
    panels: Sequence[Panel]
    verdict: Sequence[str]  # what the numbers say, in sentences that follow from them
    values: Mapping[str, Any] = field(default_factory=dict)  # what is in no table


def plain(value: Any) -> Any:
    """Values that JSON has: numbers that are none (NaN, infinities) are null, tuples lists."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
