"""What a predictor is asked: options, sources and pairs, checked. Knows settings and strings; no model and no vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from eyeline.config import Config, SearchSettings
from eyeline.errors import ConfigError, UserError, nearest
from eyeline.search.limits import check_beam
from eyeline.text import vectors

TooLong = Literal["error", "truncate", "split"]
CHUNK = 4096  # lines that are sorted by length together: enough to fill batches with like lengths
CHUNK_SIZE = 4_000_000  # characters of a chunk, or cells of its alignments: at about 32 bytes a cell, 128 MB


@dataclass(frozen=True)
class SearchOptions:
    """How outputs are looked for; a run's own `search` settings where a value is None."""

    beam_size: int | None = None  # None: the run's, or n_best if that is more
    n_best: int = 1
    length_penalty: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    batch_tokens: int | None = None
    too_long: TooLong | None = None  # what to do with a source longer than the run's data.max_length; None: predict it as it is
    attention: bool = True
    coverage_penalty: float | None = None
    no_repeat_ngram: int | None = None  # tokens in a row that no output has twice; 0 allows it


def resolve(config: Config, options: SearchOptions) -> SearchSettings:
    """The run's search settings with the options in their place. Raises ConfigError for what cannot be."""
    if options.too_long not in (None, *get_args(TooLong)):
        hint = nearest(str(options.too_long), get_args(TooLong))
        raise ConfigError("not a valid value", f"too_long={options.too_long}", hint)
    if options.too_long == "split" and config.points:
        raise ConfigError("the positions of a source cannot be found piece by piece", "too_long=split", "truncate, or error")
    names = ("beam_size", "length_penalty", "coverage_penalty", "no_repeat_ngram", "min_length", "max_length", "batch_tokens")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    values = config.to_dict()
    settings = Config.from_dict({**values, "search": {**values["search"], **given}}).search
    if options.beam_size is None and options.n_best > settings.beam_size:
        settings = settings.model_copy(update={"beam_size": options.n_best})
    check_beam(settings.beam_size, options.n_best)
    return settings


def chunks(sources: Iterable[str], at_once: int, attention: bool) -> Iterator[list[str]]:
    """Lines in portions of at most `at_once`, fewer where they are long: alignments grow with the square of the length."""
    lines: list[str] = []
    size = 0
    for line in sources:
        lines.append(line)
        size += len(line) ** 2 if attention else len(line)
        if len(lines) >= at_once or size >= CHUNK_SIZE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def check_sources(sources: Iterable[Any], numbers: bool = False) -> list[str]:
    """The sources as text, once it is sure that they are strings which can be written as UTF-8.

    Args:
        numbers: they may be nested lists, arrays or tensors of numbers.
    """
    if isinstance(sources, str | bytes) or not isinstance(sources, Iterable):
        raise UserError("sources are a list of strings", type(sources).__name__, 'write model.predict(["…"])')
    return [_text(source, f"sources[{place}]", vectors.written if numbers else None) for place, source in enumerate(sources)]


def check_pairs(pairs: Iterable[tuple[Any, Any]], numbers: bool = False, points: bool = False) -> list[tuple[str, str]]:
    """The pairs as text, once it is sure that each is two strings.

    Args:
        numbers: sources may be numbers, as for `check_sources`.
        points: targets may be lists of positions.
    """
    hint = 'write model.score([("…", "…")])'
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise UserError("pairs are a list of (source, target)", type(pairs).__name__, hint)
    given = []
    for place, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UserError("a pair is (source, target)", f"pairs[{place}]", hint)
        source = _text(pair[0], f"pairs[{place}][0]", vectors.written if numbers else None)
        given.append((source, _text(pair[1], f"pairs[{place}][1]", vectors.written_positions if points else None)))
    return given


def _text(value: Any, where: str, write: Callable[[Any], str] | None) -> str:
    """A string as it is; what `write` can make one of."""
    if write is None or isinstance(value, str):
        _check_text(value, where)
        return str(value)
    try:
        return write(value)
    except UserError as error:
        raise UserError(error.what, where, error.hint) from None


def _check_text(text: object, where: str) -> None:
    if not isinstance(text, str):
        raise UserError(f"a string is wanted, not {type(text).__name__}", where)
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError("half of a surrogate pair is no text", where, "decode bytes as UTF-8")
