"""Files to pairs. Knows the forms in which pairs come and how paths name them; a row's own shape is known by records.py.

Forms: FILE.tsv and FILE.jsonl, SOURCE TARGET as two files of lines, a prefix with two languages (`train.{de,en}`), any of them
`.gz`; FILE.parquet and a Hugging Face data set saved on disk (both need pyarrow). TSV has no quoting: `"` is text. It may have
any other name, such as SIGMORPHON's `hun.dev`, where it stands alone or the columns say that there is more in it than two sides.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from eyeline.errors import DataError, require
from eyeline.text.lines import BadLine, Line, read_lines
from eyeline.text.records import BAD_JSON, Columns, Fault, Languages, Pair, from_columns, from_record
from eyeline.text.tally import Tally
from eyeline.text.words import is_blank

__all__ = ["Fault", "Pair", "ReadReport", "drop_blank", "read_pairs", "resolve"]

FORMS = "FILE.tsv, FILE.jsonl, SOURCE TARGET, a prefix such as train.{de,en}, FILE.parquet or a saved data set"
_BRACE = re.compile(r"^(.*)\{([^{}]*,[^{}]*)\}(.*)$", re.DOTALL)
_WHOLE = (".tsv", ".jsonl", ".parquet")  # files that hold both sides

OnBadLine = Literal["error", "skip"]
ToPair = Callable[[object, str, int], Pair | Fault]  # a JSON object or a row of a table, its file, its line


@dataclass
class ReadReport:
    """What reading found; filled while the pairs are drawn."""

    files: list[str] = field(default_factory=list)
    pairs: int = 0
    skipped: Tally = field(default_factory=Tally)
    extra_columns: int = 0  # rows of TSV files with more columns than were named


@dataclass(frozen=True)
class PairFiles:
    """One file or directory that holds both sides, or the two files of a parallel corpus."""

    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        return " and ".join(self.paths)


def read_pairs(
    paths: Sequence[str],
    columns: Sequence[str] = ("source", "target"),
    on_bad_line: OnBadLine = "error",
    source_language: str | None = None,
    target_language: str | None = None,
    report: ReadReport | None = None,
    numbers: bool = False,
) -> Iterator[Pair]:
    """The pairs of all files in order, one at a time. Blank sides are kept: see `drop_blank`.

    Args:
        columns: what the columns of a TSV hold: source, target, features, alignment, or - for one to leave out.
        on_bad_line: `error` stops at a line that is no pair and names it, `skip` counts it in the report.
        source_language, target_language: complete a bare prefix and choose the keys of JSON's `translation`.
        report: is filled while the pairs are drawn.
        numbers: JSON and tables may have lists of numbers as sources, which become text (`vectors.written`).

    Raises:
        ConfigError: a column's role is unknown, missing or given twice.
        DataError: a file is absent, empty or damaged; two files differ in their number of lines; a bad line.
    """
    layout = Columns.parse(columns)
    to_pair = partial(from_record, (source_language, target_language), numbers)
    files = resolve(paths, source_language, target_language, tables=layout.named > 2)
    return _read(files, layout, to_pair, on_bad_line, report if report is not None else ReadReport())


def drop_blank(pairs: Iterator[Pair], skipped: Tally) -> Iterator[Pair]:
    """Leaves out pairs of which a side is nothing but white space, and counts them: what training wants."""
    for pair in pairs:
        if is_blank(pair.source):
            skipped.add("empty source", pair.path, pair.line)
        elif is_blank(pair.target):
            skipped.add("empty target", pair.path, pair.line)
        else:
            yield pair


def resolve(
    paths: Sequence[str], source_language: str | None = None, target_language: str | None = None, *, tables: bool = False
) -> list[PairFiles]:
    """Which files the paths mean. Files that hold one side are taken two by two, SOURCE first.

    In `train.{de,en}` the first language is the source, unless both languages are given and say otherwise.

    Args:
        tables: a file of any name that has a tab in its first line is a TSV; otherwise one that no other file is the partner of.
    """
    if not paths:
        raise DataError("no files of pairs are given", hint=FORMS)
    languages = (source_language, target_language)
    files: list[PairFiles] = []
    alone: str | None = None
    for path in (name for given in paths for name in _expanded(given, languages)):
        sides = _prefix_sides(path, languages)
        if _suffix(path) in _WHOLE or (os.path.isdir(path) and not sides) or (tables and not sides and _is_table(path)):
            files.append(PairFiles((path,)))
        elif sides:
            files.append(PairFiles(sides))
        elif not os.path.exists(path):
            endings = " and ".join(f".{name}" for name in languages if name)
            tried = f"nor with {endings} after it" if endings else "a bare prefix needs source_language and target_language"
            raise DataError("no such file", path, hint=tried)
        elif alone is None:
            alone = path
        else:
            files.append(PairFiles((alone, path)))
            alone = None
    if alone is not None:
        if not _is_table(alone):
            raise DataError("a source without its target", alone, hint=f"pairs are given as {FORMS}")
        files.append(PairFiles((alone,)))
    return files


def _is_table(path: str) -> bool:
    """Whether the first line of a file that is there has a tab."""
    first = next(iter(read_lines(path)), None) if os.path.isfile(path) else None
    return isinstance(first, Line) and "\t" in first.text


def _expanded(path: str, languages: Languages) -> list[str]:
    """`train.{de,en}` to its names; any other path to itself."""
    brace = _BRACE.match(path)
    if brace is None or os.path.exists(path):
        return [path]
    before, inside, after = brace.groups()
    names = inside.split(",")
    if len(names) == 2 and (names[1], names[0]) == languages:
        names.reverse()
    return [before + name + after for name in names]


def _suffix(path: str) -> str:
    """`.tsv` of `a.TSV.gz`."""
    return Path(path.lower().removesuffix(".gz")).suffix


def _prefix_sides(path: str, languages: Languages) -> tuple[str, str] | None:
    """The two files that a bare prefix stands for, when they are there."""
    if None in languages or os.path.isfile(path):
        return None
    for packed in ("", ".gz"):
        source, target = (f"{path}.{language}{packed}" for language in languages)
        if os.path.isfile(source) and os.path.isfile(target):
            return source, target
    return None


def _read(
    files: Sequence[PairFiles], columns: Columns, to_pair: ToPair, on_bad_line: OnBadLine, report: ReadReport
) -> Iterator[Pair]:
    for file in files:
        report.files.append(file.name)
        rows = faults = 0
        for item in _rows(file, columns, to_pair, report):
            rows += 1
            if isinstance(item, Pair):
                report.pairs += 1
                yield item
                continue
            faults += 1
            if on_bad_line == "error":
                raise DataError(item.detail, item.path, item.line, "--on-bad-line skip leaves such lines out and counts them")
            report.skipped.add(item.reason, item.path, item.line)
        if rows == 0:
            raise DataError("no pairs: the file is empty", file.name)
        if rows == faults:
            raise DataError(f"no pairs: each of the {rows:,} lines was skipped", file.name)


def _rows(file: PairFiles, columns: Columns, to_pair: ToPair, report: ReadReport) -> Iterator[Pair | Fault]:
    """The rows of one corpus, good and bad."""
    if len(file.paths) == 2:
        return _parallel(*file.paths)
    path = file.paths[0]
    if os.path.isdir(path):
        return _from_table(_saved_dataset(path), to_pair, path)
    if _suffix(path) == ".parquet":
        return _from_table(_parquet(path), to_pair, path)
    if _suffix(path) == ".jsonl":
        return _json_lines(path, to_pair)
    return _tab_separated(path, columns, report)


def _tab_separated(path: str, columns: Columns, report: ReadReport) -> Iterator[Pair | Fault]:
    for line in read_lines(path):
        if isinstance(line, BadLine):
            yield Fault(path, line.number, line.reason, line.detail)
            continue
        cells = line.text.split("\t")
        report.extra_columns += len(cells) > columns.named
        yield from_columns(cells, columns, path, line.number)


def _json_lines(path: str, to_pair: ToPair) -> Iterator[Pair | Fault]:
    for line in read_lines(path):
        if isinstance(line, BadLine):
            yield Fault(path, line.number, line.reason, line.detail)
            continue
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            why = getattr(error, "msg", None) or "nested too deeply, or a number too long"
            column = f" at character {error.pos + 1} of the line" if isinstance(error, json.JSONDecodeError) else ""
            yield Fault(path, line.number, BAD_JSON, f"{BAD_JSON}: {why[0].lower()}{why[1:]}{column}")
            continue
        yield to_pair(record, path, line.number)


def _parallel(source_path: str, target_path: str) -> Iterator[Pair | Fault]:
    """Two files read side by side. The longer one is read to its end, so that the message can give both counts."""
    both = zip_longest(read_lines(source_path), read_lines(target_path))
    shared = longer = 0
    ended: set[str] = set()
    for source, target in both:
        longer += 1
        if source is None or target is None:
            ended.add(source_path if source is None else target_path)
            continue
        shared += 1
        yield _side_by_side(source, target, source_path, target_path)
    if ended:
        counts = [(path, shared if path in ended else longer) for path in (source_path, target_path)]
        said = " and ".join(f"{path} has {count:,}" for path, count in counts)
        raise DataError(f"unequal numbers of lines: {said}", hint="line n of one must be the partner of line n of the other")


def _side_by_side(source: Line | BadLine, target: Line | BadLine, source_path: str, target_path: str) -> Pair | Fault:
    for path, line in ((source_path, source), (target_path, target)):
        if isinstance(line, BadLine):
            return Fault(path, line.number, line.reason, line.detail)
    assert isinstance(source, Line)
    assert isinstance(target, Line)
    return Pair(source.text, target.text, (), None, source_path, source.number)


def _from_table(records: Iterator[object], to_pair: ToPair, path: str) -> Iterator[Pair | Fault]:
    for row, record in enumerate(records, start=1):
        yield to_pair(record, path, row)


def _parquet(path: str) -> Iterator[object]:
    if not os.path.isfile(path):
        raise DataError("no such file", path)
    parquet: Any = require("pyarrow.parquet", "exchange")
    arrow: Any = require("pyarrow", "exchange")
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file: {_first_line(error)}", path) from error


def _saved_dataset(path: str) -> Iterator[object]:
    """The rows of what `datasets.Dataset.save_to_disk` wrote: `state.json` names Arrow streams."""
    if os.path.isfile(os.path.join(path, "dataset_dict.json")):
        raise DataError("a directory of several splits", path, hint=f"give one of them, such as {os.path.join(path, 'train')}")
    state = os.path.join(path, "state.json")
    if not os.path.isfile(state):
        raise DataError("a directory that is not a saved data set", path, hint=f"pairs are given as {FORMS}")
    arrow: Any = require("pyarrow", "exchange")
    try:
        state_values = json.loads(Path(state).read_bytes())
        for name in [entry["filename"] for entry in state_values["_data_files"]]:
            with arrow.memory_map(os.path.join(path, name)) as stream, arrow.ipc.open_stream(stream) as batches:
                for batch in batches:
                    yield from batch.to_pylist()
    except (arrow.ArrowException, OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise DataError(f"not a readable data set: {_first_line(error)}", path) from error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
