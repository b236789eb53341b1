"""The table before training: what was read, left out and unknown on each side, and hints where symbols are too rare.

Knows counts and tokenizers. Draws nothing: `rows` is for whoever draws tables, `render` is plain text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eyeline.config import Normalization
from eyeline.contracts import UNKNOWN
from eyeline.text.pairs import ReadReport
from eyeline.text.tally import Tally
from eyeline.text.tokenizers import Tokenizer

RARE = 5  # an embedding that gets fewer than five updates an epoch stays near its random start
MIN_KINDS = 50  # below so many kinds of symbol a share says nothing
RARE_SYLLABLES = 0.2  # one Hangul syllable in five is rare: their 67 letters are each seen thousands of times instead
SINGLETONS = 0.5  # half of the words are seen once: what they mean cannot be learnt from a single place
UNKNOWN_RATE = 0.02  # one unknown in fifty tokens: about every third sentence of twenty holds one


@dataclass
class SideCount:
    """What was counted on one side of one split while it was encoded. Ids without BEGIN and END."""

    lines: int = 0
    tokens: int = 0
    longest: int = 0  # tokens of the longest line
    seen: Counter[int] = field(default_factory=Counter)

    def add(self, ids: Sequence[int]) -> None:
        """Counts one encoded line."""
        self.lines += 1
        self.tokens += len(ids)
        self.longest = max(self.longest, len(ids))
        self.seen.update(ids)

    def extend(self, lines: Iterable[Sequence[int]]) -> None:
        """Counts many encoded lines."""
        for ids in lines:
            self.add(ids)

    @property
    def mean(self) -> float:
        """Tokens a line."""
        return self.tokens / self.lines if self.lines else 0.0

    @property
    def unknown_rate(self) -> float:
        """The share of tokens that are UNKNOWN, 0 … 1."""
        return self.seen[UNKNOWN] / self.tokens if self.tokens else 0.0


@dataclass(frozen=True)
class SideReport:
    """One side of the data: how it is cut, and what was counted."""

    name: str  # source or target
    tokenizer: Tokenizer
    normalization: Normalization
    train: SideCount
    valid: SideCount | None = None
    instead: str = ""  # what stands there instead of symbols of a vocabulary

    @property
    def vocabulary(self) -> str:
        return self.instead or f"{self.tokenizer.size:,} ({self.tokenizer.kind})"

    @property
    def held(self) -> dict[int, int]:
        """How often training has each entry of the vocabulary, symbols that are copied apart."""
        return {number: count for number, count in self.train.seen.items() if number < self.tokenizer.size}

    def unknown(self, count: SideCount | None) -> str:
        """The share of unknown tokens, for a person."""
        return "-" if count is None or self.instead else f"{100 * count.unknown_rate:.2f} %"


@dataclass(frozen=True)
class DataReport:
    """Both sides, and what was left out on the way."""

    sides: Sequence[SideReport]
    skipped: Tally
    extra_columns: int = 0  # rows of TSV files that had more columns than were named

    @classmethod
    def of(cls, sides: Sequence[SideReport], reads: Iterable[ReadReport] = (), others: Iterable[Tally] = ()) -> DataReport:
        """Joins the reports of several reads and what was skipped afterwards (blank sides, too long)."""
        reads = list(reads)
        skipped = Tally()
        for tally in (*(read.skipped for read in reads), *others):
            skipped.update(tally)
        return cls(sides, skipped, sum(read.extra_columns for read in reads))

    def rows(self) -> list[tuple[str, ...]]:
        """A head and a row a measure: its name, then the value of each side."""
        rows: list[tuple[str, ...]] = [("", *(side.name for side in self.sides))]

        def measure(name: str, values: Iterable[str]) -> None:
            rows.append((name, *values))

        measure("training lines", (f"{side.train.lines:,}" for side in self.sides))
        measure("tokens a line", (f"{side.train.mean:.1f} (longest {side.train.longest:,})" for side in self.sides))
        measure("vocabulary", (side.vocabulary for side in self.sides))
        measure("unknown in training", (side.unknown(side.train) for side in self.sides))
        if any(side.valid is not None for side in self.sides):
            measure("validation lines", (f"{side.valid.lines:,}" if side.valid else "-" for side in self.sides))
            measure("unknown in validation", (side.unknown(side.valid) for side in self.sides))
        return rows

    def notes(self) -> list[str]:
        """What was left out, a line a reason, and what was ignored."""
        lines = [f"left out, {reason}: {count:,} ({places})" for reason, count, places in self.skipped.rows()]
        if self.extra_columns:
            lines.append(f"ignored: columns beyond those named, in {self.extra_columns:,} lines")
        return lines

    def hints(self) -> list[str]:
        """What would help a model to learn this data, a line each; empty when nothing stands out."""
        return [hint for side in self.sides if not side.instead for hint in (_syllables(side), _words(side)) if hint]

    def render(self) -> str:
        """Table, notes and hints as plain text."""
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *self.notes(), *(f"hint: {hint}" for hint in self.hints())])


def _syllables(side: SideReport) -> str | None:
    """Hangul as whole syllables, many of them too rare to learn."""
    if side.tokenizer.kind != "character" or side.normalization not in ("nfc", "none"):
        return None
    counts = [count for number, count in side.held.items() if "\uac00" <= side.tokenizer.piece(number) <= "\ud7a3"]
    rare = sum(count < RARE for count in counts)
    if len(counts) < MIN_KINDS or rare < RARE_SYLLABLES * len(counts):
        return None
    return (
        f"{side.name}: {rare:,} of {len(counts):,} Hangul syllables are seen fewer than {RARE} times; "
        "normalization: jamo spells them with letters that are seen often"
    )


def _words(side: SideReport) -> str | None:
    """Whole words, many of them seen once or never."""
    if side.tokenizer.kind not in ("word", "whitespace-symbols"):
        return None
    counts = [count for number, count in side.held.items() if number != UNKNOWN]
    once = sum(count == 1 for count in counts)
    unknown = max(count.unknown_rate for count in (side.train, side.valid) if count is not None)
    if unknown > UNKNOWN_RATE:
        fault = f"{100 * unknown:.1f} % of the tokens are unknown"
    elif len(counts) >= MIN_KINDS and once > SINGLETONS * len(counts):
        fault = f"{once:,} of {len(counts):,} words are seen once"
    else:
        return None
    return f"{side.name}: {fault}; tokenizer kind: bpe cuts rare words into pieces that are seen often"
