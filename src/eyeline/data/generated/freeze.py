"""Makes the frozen samples of the package: `python -m eyeline.data.generated.freeze [FOLDER]`.

Knows how large the samples are, from which seeds they come, and that no test or validation item is in the training part:
no day of the dates, no number of the numerals, in any language. Numbers below 100 are for training only, since in many
languages each is a word of its own that nothing else teaches.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from datetime import date
from pathlib import Path

from eyeline.data.generated import COLUMNS, PARTS, GeneratedPair, PointingPair, sample, samples_folder, write_jsonl, write_tsv
from eyeline.data.generated.dates import LOCALES, dates
from eyeline.data.generated.numerals import LANGUAGES, numerals
from eyeline.data.generated.sorting import sorting
from eyeline.files import write_json

SIZES = {
    "dates": {"train": 10_000, "valid": 1_000, "test": 1_000},
    "numerals": {"train": 10_000, "valid": 500, "test": 500},
    "sorting": {"train": 6_000, "valid": 500, "test": 500},
}
SEEDS = {"test": 101, "valid": 102, "train": 103}  # in the order of drawing: what is held out is drawn first
SORTING_LENGTH = (3, 8)  # numbers of a source
HELD_OUT_FROM = 100  # the smallest number of the numerals' valid and test parts
LIBRARIES = ("babel", "unicode-rbnf")
RECORD = "versions.json"


def frozen_dates() -> dict[str, list[GeneratedPair]]:
    """The parts of the sample of dates."""
    parts: dict[str, list[GeneratedPair]] = {}
    taken: set[date] = set()
    for part, seed in SEEDS.items():
        parts[part] = dates(SIZES["dates"][part], seed, taken=taken)
        taken |= {date.fromisoformat(pair.target) for pair in parts[part]}
    return parts


def frozen_numerals() -> dict[str, list[GeneratedPair]]:
    """The parts of the sample of numerals."""
    parts: dict[str, list[GeneratedPair]] = {}
    taken: set[int] = set()
    for part, seed in SEEDS.items():
        smallest = 1 if part == "train" else HELD_OUT_FROM
        parts[part] = numerals(SIZES["numerals"][part], seed, smallest=smallest, taken=taken)
        taken |= {int(pair.target) for pair in parts[part]}
    return parts


def frozen_sorting() -> dict[str, list[PointingPair]]:
    """The parts of the sample of sorting. Nothing need be held out: of numbers so drawn, no two sources are alike."""
    return {part: list(sorting(SIZES["sorting"][part], seed, SORTING_LENGTH)) for part, seed in SEEDS.items()}


def installed() -> dict[str, str]:
    """The versions of the libraries that the samples come from."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def freeze(folder: Path) -> None:
    """Writes every part of all samples and the record of what they were made from.

    Raises:
        MissingExtra: a library is not installed.
        UserError: the folder cannot be written.
    """
    samples = {"dates": frozen_dates(), "numerals": frozen_numerals()}
    for name, parts in samples.items():
        for part in PARTS:
            write_tsv(parts[part], folder / sample(name, part).name)
    for part, pairs in frozen_sorting().items():
        write_jsonl(pairs, folder / sample("sorting", part).name)
    record = {
        "command": "python -m eyeline.data.generated.freeze",
        "columns": list(COLUMNS),
        "versions": installed(),
        "sizes": SIZES,
        "seeds": SEEDS,
        "locales": list(LOCALES),
        "languages": list(LANGUAGES),
        "origin": "made from the Unicode Common Locale Data Repository, © Unicode, Inc., under the Unicode License v3",
    }
    write_json(folder / RECORD, record)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eyeline.data.generated.freeze", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=samples_folder(), help="default: the package's own")
    freeze(parser.parse_args().folder)


if __name__ == "__main__":
    main()
