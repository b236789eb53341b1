"""Which pairs are worth training on, by their text: lengths, ratio, letters, scripts, and whether they have come before."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

import numpy as np
import numpy.typing as npt

from eyeline.text.records import Pair
from eyeline.text.tally import Tally

CHUNK = 10_000  # digests that are looked up at a time
MOSTLY = 0.5  # of a side's letters are of a script that it should have
Side = Literal["source", "target"]
Digests = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Filters:
    """Bounds on what a pair may be. Lengths are characters as they came, blanks included."""

    min_characters: int = 1
    max_characters: int | None = None
    max_ratio: float | None = None
    min_letters: float = 0.0
    scripts: Mapping[Side, tuple[str, ...]] = field(default_factory=dict)  # side -> names, as in `script`

    def fault(self, pair: Pair) -> str | None:
        """Why a pair is left out; None for one that is kept."""
        lengths = len(pair.source), len(pair.target)
        if min(lengths) < self.min_characters:
            return "too few characters"
        if self.max_characters is not None and max(lengths) > self.max_characters:
            return "too many characters"
        if self.max_ratio is not None and max(lengths) > self.max_ratio * min(lengths):
            return "too unequal lengths"
        if self.min_letters and min(map(letters, (pair.source, pair.target))) < self.min_letters:
            return "too few letters"
        for side, names in self.scripts.items():
            if not _mostly(getattr(pair, side), names):
                return f"another script in the {side}"
        return None

    def kept(self, pairs: Iterable[Pair], left_out: Tally) -> Iterator[Pair]:
        """The pairs without fault; the others are counted by reason."""
        for pair in pairs:
            fault = self.fault(pair)
            if fault is None:
                yield pair
            else:
                left_out.add(fault, pair.path, pair.line)


def letters(text: str) -> float:
    """The share of letters and the marks on them among characters that are no white space; 0 for a text without any."""
    seen = [character for character in text if not character.isspace()]
    return sum(unicodedata.category(character)[0] in "LM" for character in seen) / len(seen) if seen else 0.0


@lru_cache(maxsize=65536)
def script(character: str) -> str:
    """The script of a letter, as its Unicode name begins: `latin`, `hangul`, `cjk`; empty for what is no letter."""
    if not unicodedata.category(character).startswith("L"):
        return ""
    return unicodedata.name(character, "").partition(" ")[0].partition("-")[0].lower()


def _mostly(text: str, names: Sequence[str]) -> bool:
    found = [name for name in map(script, text) if name]
    return not found or sum(name in names for name in found) >= MOSTLY * len(found)


class Seen:
    """Pairs that have come, eight bytes each: sorted runs of digests, merged when they are of like size.

    Two pairs of ten million have one digest of 64 bits by chance about three times in a million.
    """

    def __init__(self) -> None:
        self._runs: list[Digests] = []

    def first_only(self, pairs: Iterable[Pair], left_out: Tally) -> Iterator[Pair]:
        """The pairs that have not come before, those of earlier calls included; the others are counted."""
        chunk: list[Pair] = []
        for pair in pairs:
            chunk.append(pair)
            if len(chunk) == CHUNK:
                yield from self._new(chunk, left_out)
                chunk = []
        yield from self._new(chunk, left_out)

    def _new(self, pairs: list[Pair], left_out: Tally) -> Iterator[Pair]:
        digests = np.array([_digest(pair) for pair in pairs], dtype=np.uint64)
        fresh, first = np.unique(digests, return_index=True)
        known = np.zeros(len(fresh), dtype=np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, fresh), len(run) - 1)
            known |= run[places] == fresh
        new = np.zeros(len(pairs), dtype=np.bool_)
        new[first[~known]] = True
        self._add(fresh[~known])
        for pair, is_new in zip(pairs, new.tolist(), strict=True):
            if is_new:
                yield pair
            else:
                left_out.add("duplicate", pair.path, pair.line)

    def _add(self, run: Digests) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        if len(run):
            self._runs.append(run)


def _digest(pair: Pair) -> int:
    text = "\0".join((pair.source, pair.target, *pair.features)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
