"""Every generated task by name, and its pairs as the lines of a file. Knows the tasks; no models, no command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.data.generated import jsonl_lines, tsv_lines, write_jsonl, write_tsv
from eyeline.data.generated.convex_hull import convex_hull
from eyeline.data.generated.dates import dates
from eyeline.data.generated.delaunay import delaunay
from eyeline.data.generated.numerals import numerals
from eyeline.data.generated.points import Length
from eyeline.data.generated.reversal import reversal
from eyeline.data.generated.sorting import sorting, sorting_symbols
from eyeline.data.generated.tally import tally
from eyeline.data.generated.tsp import tsp
from eyeline.errors import ConfigError, nearest


@dataclass(frozen=True)
class Task:
    """How a task is made, and what may be chosen. `make` takes count, seed, and by name what is chosen."""

    make: Callable[..., Iterable[Any]]
    choices: frozenset[str] = frozenset()
    symbols: Callable[..., Iterable[Any]] | None = None  # its form over symbols, where that is another


@dataclass(frozen=True)
class Format:
    """How pairs are written."""

    suffix: str
    lines: Callable[[Iterable[Any]], Iterable[bytes]]
    write: Callable[[Iterable[Any], str | Path], int]


TSV = Format(".tsv", tsv_lines, write_tsv)
JSONL = Format(".jsonl", jsonl_lines, write_jsonl)


def _reversal(count: int, seed: int, length: Length = (1, 25), symbols: int = 50) -> Iterable[Any]:
    shortest, longest = (length, length) if isinstance(length, int) else length
    return reversal(count, seed, longest, symbols=symbols, min_length=shortest)


TASKS = {
    "dates": Task(dates),
    "numerals": Task(numerals),
    "reversal": Task(_reversal, frozenset({"length", "symbols"})),
    "sorting": Task(sorting, frozenset({"length", "symbols"}), sorting_symbols),
    "convex-hull": Task(convex_hull, frozenset({"length"})),
    "delaunay": Task(delaunay, frozenset({"length"})),
    "tsp": Task(tsp, frozenset({"length"})),
    "tally": Task(tally, frozenset({"length", "symbols"})),
}
_TEXT = ("dates", "numerals", "reversal", "tally")


def generated(
    task: str, count: int, seed: int, *, length: Length | None = None, symbols: int | None = None
) -> tuple[Iterable[Any], Format]:
    """Pairs of a task, and how they are written: text as TSV, elements of numbers as JSON lines.

    Raises:
        ConfigError: no such task, or a choice that it does not have or that cannot be.
        MissingExtra: a library that dates or numerals need is not installed.
    """
    if task not in TASKS:
        raise ConfigError("no such task", task, nearest(task, TASKS))
    chosen = {name: value for name, value in (("length", length), ("symbols", symbols)) if value is not None}
    for name, value in chosen.items():
        if name not in TASKS[task].choices:
            having = ", ".join(other for other in TASKS if name in TASKS[other].choices)
            shown = value if isinstance(value, int) else "-".join(map(str, value))
            raise ConfigError(f"{task} has no {name} to choose", f"--{name} {shown}", f"these have: {having}")
    over_symbols = TASKS[task].symbols if "symbols" in chosen else None
    make = over_symbols or TASKS[task].make
    return make(count, seed, **chosen), TSV if task in _TEXT or over_symbols else JSONL
