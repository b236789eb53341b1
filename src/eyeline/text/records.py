"""One row of a file to one pair. Knows the columns of a TSV and the shapes of a JSON object; opens no files.

A row that cannot be a pair is a `Fault`, a value: whether it stops the run or is counted is the caller's choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eyeline.errors import ConfigError, UserError, nearest
from eyeline.text import vectors

Languages = tuple[str | None, str | None]

ROLES = ("source", "target", "features", "alignment")
IGNORED = ("-", "_")

MISSING_COLUMN = "missing column"
BAD_JSON = "bad JSON"
BAD_RECORD = "not a pair"


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and its target, as they came: not normalised, perhaps blank."""

    source: str
    target: str
    features: tuple[str, ...]  # inflection tags and the like; no text, never split or normalised
    alignment: str | None  # Pharaoh links, as written
    path: str
    line: int  # from 1; the row of a Parquet file or data set


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that is not a pair. `reason` is one of a few, for counting; `detail` says what exactly, for the message."""

    path: str
    line: int
    reason: str
    detail: str


@dataclass(frozen=True)
class Columns:
    """Which column of a TSV holds what."""

    places: Mapping[str, int]  # role -> column, from 0
    named: int  # how many columns were named; what lies beyond is ignored and counted
    wanted: int  # how many a row must have: those after the last with a role may be absent

    @classmethod
    def parse(cls, names: Sequence[str]) -> Columns:
        """Checks the names of `data.columns`. Raises ConfigError for an unknown role, one given twice, or one that is missing."""
        shown = ",".join(names)
        for name in names:
            if name not in ROLES and name not in IGNORED:
                hint = nearest(name, ROLES) + ", and - leaves a column out"
                raise ConfigError(f"'{name}' is not the role of a column", f"data.columns={shown}", hint)
        roles = Counter(name for name in names if name in ROLES)
        for name in ("source", "target"):
            if name not in roles:
                raise ConfigError(f"no column is named '{name}'", f"data.columns={shown}", "such as source,target,features")
        for name, count in roles.items():
            if count > 1:
                raise ConfigError(f"{count} columns are named '{name}'", f"data.columns={shown}", "- leaves a column out")
        places = {name: column for column, name in enumerate(names) if name in ROLES}
        return cls(places, len(names), max(places.values()) + 1)


def split_features(cell: str) -> tuple[str, ...]:
    """`V;PST;3` to its symbols; empty ones are dropped."""
    return tuple(symbol for symbol in (part.strip() for part in cell.split(";")) if symbol)


def from_columns(cells: Sequence[str], columns: Columns, path: str, line: int) -> Pair | Fault:
    """A row of a TSV, already cut at its tabs."""
    if len(cells) < columns.wanted:
        found = f"{len(cells)} column{'s' if len(cells) != 1 else ''}"
        return Fault(path, line, MISSING_COLUMN, f"{found} where {columns.wanted} are wanted")
    places = columns.places
    return Pair(
        cells[places["source"]],
        cells[places["target"]],
        split_features(cells[places["features"]]) if "features" in places else (),
        cells[places["alignment"]] if "alignment" in places else None,
        path,
        line,
    )


def from_record(languages: Languages, numbers: bool, record: object, path: str, line: int) -> Pair | Fault:
    """A JSON object, or a row of a table, in one of three shapes.

    `{"source", "target"}` and `{"src", "tgt"}`, either with `"features"` (a list, or text cut at `;`) and `"alignment"`, or
    `{"translation": {"de": …, "en": …}}`, whose keys are `languages`, or, when these are not given, its only two in order.
    A target may be a list of positions; a source may be a list of numbers, or of lists of them, where `numbers` says so.
    """
    try:
        source, target, others = _sides(record, languages, numbers)
        features = _features(others.get("features"))
        alignment = others.get("alignment")
        if alignment is not None:
            _check_text(alignment, "alignment")
        return Pair(source, target, features, str(alignment) if alignment is not None else None, path, line)
    except UserError as error:
        return Fault(path, line, BAD_RECORD, error.what)
    except ValueError as error:
        return Fault(path, line, BAD_RECORD, str(error))


def _sides(record: object, languages: Languages, numbers: bool) -> tuple[str, str, Mapping[str, object]]:
    """Source, target, and the mapping in which the rest may stand. Raises ValueError with what is wrong."""
    if not isinstance(record, Mapping):
        raise ValueError("not an object with a source and a target")
    for names in (("source", "target"), ("src", "tgt")):
        if all(name in record for name in names):
            return _source(record[names[0]], names[0], numbers), _target(record[names[1]], names[1]), record
    translation = record.get("translation")
    if isinstance(translation, Mapping):
        keys = languages if None not in languages else tuple(translation)
        if len(keys) != 2:
            raise ValueError(f"'translation' has {len(keys)} keys; data.source_language and data.target_language choose two")
        for key in keys:
            if key not in translation:
                raise ValueError(f"'translation' has no '{key}' but {', '.join(repr(name) for name in translation)}")
        return _check_text(translation[keys[0]], str(keys[0])), _check_text(translation[keys[1]], str(keys[1])), record
    found = ", ".join(f"'{name}'" for name in record) or "nothing"
    raise ValueError(f"'source' and 'target' are wanted (or 'src' and 'tgt', or 'translation'), found {found}")


def _source(value: object, name: str, numbers: bool) -> str:
    if not isinstance(value, list):
        return _check_text(value, name)
    if not numbers:
        raise ValueError(f"'{name}' is a list, not text; sources of numbers are for pointer-network")
    return vectors.written(value)


def _target(value: object, name: str) -> str:
    """Text, or a list of positions as text."""
    if not isinstance(value, list):
        return _check_text(value, name)
    return vectors.written_positions(value)


def _check_text(value: object, name: str) -> str:
    """A text that can be written as UTF-8 and holds no NUL: JSON's escapes can say what a line cannot."""
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        raise ValueError(f"'{name}' is {kind}, not text")
    if "\0" in value:
        raise ValueError(f"'{name}' holds a NUL character")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"'{name}' holds half of a surrogate pair")
    return value


def _features(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(_check_text(symbol, "features") for symbol in value)
    return split_features(_check_text(value, "features"))
