"""What was left out, by reason, and where the first ones stand. Knows file names and line numbers, not why anyone counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

FIRST = 5  # places kept a reason: enough to look at, bounded for a file of a billion bad lines


@dataclass
class Tally:
    """Counts by reason, with the first few places of each."""

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # reason -> (file, line)

    def add(self, reason: str, path: str, line: int) -> None:
        """Counts one line that was left out."""
        self.counts[reason] += 1
        first = self.places.setdefault(reason, [])
        if len(first) < FIRST:
            first.append((path, line))

    def update(self, other: Tally) -> None:
        """Adds another tally to this one."""
        for reason, places in other.places.items():
            self.counts[reason] += other.counts[reason]
            mine = self.places.setdefault(reason, [])
            mine.extend(places[: max(0, FIRST - len(mine))])

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def rows(self) -> list[tuple[str, int, str]]:
        """(reason, count, places) with the most frequent reason first; places as `a.tsv:5, 9, b.tsv:2 and 4 more`."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return [(reason, count, self._where(reason)) for reason, count in ordered]

    def _where(self, reason: str) -> str:
        parts: list[str] = []
        before = None
        for path, line in self.places[reason]:
            parts.append(str(line) if path == before else f"{path}:{line}")
            before = path
        more = self.counts[reason] - len(parts)
        return ", ".join(parts) + (f" and {more:,} more" if more else "")
