"""Pairs made from rules, without end, with alignments known by construction: what they share, and the frozen samples.

An alignment is text of links between tokens, counted from zero, source first: `i-j` is sure (these two stand for each
other), `ipj` is possible (j may well come from i). The sure links are part of the possible ones, as alignment error rates
have it, and each pair of tokens is written once. Target tokens without any link, such as the hyphens of 2024-01-05, come from
nothing in the source. Tokens are characters (code points of NFC text) in dates and numerals, words in reversal.
Knows nothing of ids, tokenizers or models.
"""

from __future__ import annotations

import gzip
import importlib.resources
import io
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eyeline.errors import ConfigError, nearest
from eyeline.files import beside

COLUMNS = ("source", "target", "alignment")  # of every file written here
SAMPLES = ("dates", "numerals")
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class GeneratedPair:
    """A pair and its gold alignment."""

    source: str
    target: str
    alignment: str  # `0-0 0p1 …`, sorted


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


def write_tsv(pairs: Iterable[GeneratedPair], path: str | Path) -> int:
    """Writes pairs as UTF-8 lines `source TAB target TAB alignment`; a name that ends in .gz is compressed.

    The file appears whole or not at all, and what it replaces stays until then. The same pairs give the same bytes.

    Returns:
        How many pairs were written.

    Raises:
        UserError: the file cannot be written.
    """
    lines = []
    for pair in pairs:
        fields = (pair.source, pair.target, pair.alignment)
        assert not any(mark in text for text in fields for mark in "\t\n\r"), f"{pair} does not fit into a line"
        lines.append("\t".join(fields) + "\n")
    content = "".join(lines).encode("utf-8")
    if str(path).endswith(".gz"):
        held = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=held, compresslevel=9, mtime=0) as stream:
            stream.write(content)
        content = held.getvalue()
    with beside(path) as temporary:
        temporary.write_bytes(content)
    return len(lines)


def sample(name: str, part: str = "train") -> Path:
    """Where a frozen sample lies: `dates` or `numerals`, its `train`, `valid` or `test` part, a .tsv.gz of `COLUMNS`.

    Raises:
        ConfigError: there is no such sample or part.
    """
    if name not in SAMPLES:
        raise ConfigError("no such sample", name, nearest(name, SAMPLES))
    if part not in PARTS:
        raise ConfigError(f"no such part of the sample {name}", part, nearest(part, PARTS))
    return samples_folder() / f"{name}.{part}.tsv.gz"


def samples_folder() -> Path:
    """The folder of the frozen samples, inside the installed package."""
    return Path(str(importlib.resources.files("eyeline.data"))) / "samples"
