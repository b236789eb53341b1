"""Pairs made from rules, without end, with alignments known by construction: what they share, and the frozen samples.

Of two kinds: text with the links between its tokens (dates, numerals, reversal, sorting of symbols), and elements of real numbers
with the positions to point at (sorting, hulls, triangulations, tours).

An alignment is text of links between tokens, counted from zero, source first: `i-j` is sure (these two stand for each
other), `ipj` is possible (j may well come from i). The sure links are part of the possible ones, as alignment error rates
have it, and each pair of tokens is written once. Target tokens without any link, such as the hyphens of 2024-01-05, come from
nothing in the source. Tokens are characters (code points of NFC text) in dates and numerals, words in reversal.
Knows nothing of ids, tokenizers or models.
"""

from __future__ import annotations

import gzip
import importlib.resources
import json
import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from eyeline.errors import ConfigError, nearest
from eyeline.files import beside

COLUMNS = ("source", "target", "alignment")  # of every file written here
SAMPLES = {"dates": ".tsv.gz", "numerals": ".tsv.gz", "sorting": ".jsonl.gz"}  # and how the names of their files end
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class GeneratedPair:
    """A pair and its gold alignment."""

    source: str
    target: str
    alignment: str  # `0-0 0p1 …`, sorted


@dataclass(frozen=True)
class PointingPair:
    """A source of real-valued elements, and the positions in it that are the answer, in order, counted from zero."""

    source: tuple[tuple[float, ...], ...]  # one tuple an element, all of one length
    target: tuple[int, ...]


class Links:
    """Collects the links of one pair; a link that is both sure and possible is sure."""

    def __init__(self) -> None:
        self._sure: dict[tuple[int, int], bool] = {}

    def possible(self, source: int, target: int) -> None:
        self._sure.setdefault((source, target), False)

    def sure(self, source: int, target: int) -> None:
        self._sure[source, target] = True

    def __str__(self) -> str:
        return " ".join(f"{i}{'-' if sure else 'p'}{j}" for (i, j), sure in sorted(self._sure.items()))


def draws(size: int, chance: random.Random) -> Iterator[int]:
    """Every number of 0 … size - 1 once, in random order, in memory that grows only with what is drawn."""
    moved: dict[int, int] = {}  # a Fisher-Yates shuffle of which only the touched places are held
    for place in range(size):
        other = chance.randrange(place, size)
        here = moved.pop(place, place)
        if other == place:
            yield here
        else:
            yield moved.get(other, other)
            moved[other] = here


def tsv_lines(pairs: Iterable[GeneratedPair]) -> Iterator[bytes]:
    """Pairs as UTF-8 lines `source TAB target TAB alignment`."""
    for pair in pairs:
        fields = (pair.source, pair.target, pair.alignment)
        assert not any(mark in text for text in fields for mark in "\t\n\r"), f"{pair} does not fit into a line"
        yield ("\t".join(fields) + "\n").encode("utf-8")


def jsonl_lines(pairs: Iterable[PointingPair]) -> Iterator[bytes]:
    """Pairs as lines `{"source": [[x, y], …], "target": [i, j, …]}`, every number with the fewest digits that give it back."""
    for pair in pairs:
        yield (json.dumps({"source": pair.source, "target": pair.target}) + "\n").encode("ascii")


def write_tsv(pairs: Iterable[GeneratedPair], path: str | Path) -> int:
    """Writes `tsv_lines`, one pair at a time; a name that ends in .gz is compressed.

    The file appears whole or not at all, and what it replaces stays until then. The same pairs give the same bytes.

    Returns:
        How many pairs were written.

    Raises:
        UserError: the file cannot be written.
    """
    return _write(tsv_lines(pairs), path, effort=9)


def write_jsonl(pairs: Iterable[PointingPair], path: str | Path) -> int:
    """Writes `jsonl_lines`; in all else as `write_tsv`."""
    return _write(jsonl_lines(pairs), path, effort=6)  # digits at random gain nothing from more


def _write(lines: Iterator[bytes], path: str | Path, effort: int) -> int:
    count = 0
    with beside(path) as temporary, temporary.open("wb") as raw, ExitStack() as closing:
        stream: IO[bytes] = raw
        if str(path).endswith(".gz"):  # neither name nor time inside, so that the same pairs are the same bytes
            compressed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=effort, mtime=0)
            stream = cast(IO[bytes], closing.enter_context(compressed))
        for count, line in enumerate(lines, 1):  # noqa: B007
            stream.write(line)
    return count


def sample(name: str, part: str = "train") -> Path:
    """Where a frozen sample lies, its `train`, `valid` or `test` part: `dates` or `numerals`, a .tsv.gz of `COLUMNS`, or
    `sorting`, a .jsonl.gz of numbers to be pointed at.

    Raises:
        ConfigError: there is no such sample or part.
    """
    if name not in SAMPLES:
        raise ConfigError("no such sample", name, nearest(name, SAMPLES))
    if part not in PARTS:
        raise ConfigError(f"no such part of the sample {name}", part, nearest(part, PARTS))
    return samples_folder() / f"{name}.{part}{SAMPLES[name]}"


def samples_folder() -> Path:
    """The folder of the frozen samples, inside the installed package."""
    return Path(str(importlib.resources.files("eyeline.data"))) / "samples"
