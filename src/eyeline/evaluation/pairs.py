"""The pairs that a run is measured on. Knows predictors and files of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eyeline.errors import ConfigError, DataError
from eyeline.predictor import Predictor
from eyeline.text.lines import Line, read_lines
from eyeline.text.pairs import ReadReport, read_pairs
from eyeline.text.records import Fault, Pair


def read_for(
    predictor: Predictor,
    paths: Sequence[str],
    columns: str | None = None,
    on_bad_line: str | None = None,
    *,
    alignment: bool = False,
    warn: Callable[[str], None] | None = None,
) -> list[Pair]:
    """The pairs of `paths`, read with the run's own data settings where none are given. Blank sides stay: nothing is dropped.

    Args:
        alignment: whether gold links are wanted, where the pairs have them; a column of them may always be absent.
        warn: is told what was left out, a line a reason.

    Raises:
        ConfigError: a column or a choice that cannot be.
        DataError: there are none, or one is bad.
    """
    given: dict[str, Any] = {}
    if columns is not None:
        given["columns"] = [name.strip() for name in columns.split(",")]
    elif not (alignment and _have_links(paths, predictor.config.data.columns)):
        given["columns"] = ["-" if name == "alignment" else name for name in predictor.config.data.columns]
    if on_bad_line is not None:
        if on_bad_line not in ("error", "skip"):
            raise ConfigError("not a valid value", f"--on-bad-line {on_bad_line}", "valid: error, skip")
        given["on_bad_line"] = on_bad_line
    data = predictor.config.data.model_copy(update=given)
    found = ReadReport()
    points = predictor.config.points
    pairs = list(
        read_pairs(paths, data.columns, data.on_bad_line, data.source_language, data.target_language, found, numbers=points)
    )
    if points:
        pairs = _possible(predictor, pairs, data.on_bad_line, found)
    if not pairs:
        raise DataError("no pairs", " ".join(paths))
    if warn is not None:
        for reason, count, places in found.skipped.rows():
            warn(f"left out, {reason}: {count:,} ({places})")
    return pairs


def _possible(predictor: Predictor, pairs: list[Pair], on_bad_line: str, found: ReadReport) -> list[Pair]:
    """The pairs whose targets are positions of their sources."""
    kept = []
    for pair, row in zip(pairs, predictor.coder.rows(pairs), strict=True):
        if not isinstance(row, Fault):
            kept.append(pair)
        elif on_bad_line == "error":
            raise DataError(row.detail, row.path, row.line, "--on-bad-line skip leaves such lines out and counts them")
        else:
            found.skipped.add(row.reason, row.path, row.line)
    return kept


def _have_links(paths: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether the first line of every TSV reaches as far as the column of gold links."""
    if "alignment" not in columns:
        return False
    tables = [path for path in paths if path.lower().removesuffix(".gz").endswith(".tsv")]
    first = [next(iter(read_lines(path)), None) for path in tables]
    return all(isinstance(line, Line) and line.text.count("\t") >= columns.index("alignment") for line in first)


def source_lines(predictor: Predictor, pairs: Sequence[Pair]) -> list[str]:
    """The pairs' sources as `predict` takes them: with their features behind a tab where the run has features."""
    if predictor.run.source.features:
        return [f"{pair.source}\t{';'.join(pair.features)}" for pair in pairs]
    return [pair.source for pair in pairs]
