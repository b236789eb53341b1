"""What a predictor is asked: options, sources and pairs, checked. Knows settings and strings; no model and no vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from eyeline.config import Config, SearchSettings
from eyeline.config_search import LengthNormalization
from eyeline.errors import ConfigError, DataError, UserError, nearest
from eyeline.search.limits import check_beam, check_groups
from eyeline.search.sampling import Filter, drawn_from
from eyeline.text import vectors

TooLong = Literal["error", "truncate", "split"]
Line = tuple[str, str]  # a source, and what its output begins with
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
    length_normalization: LengthNormalization | None = None
    min_length_ratio: float | None = None  # of the source's tokens
    max_length_ratio: float | None = None
    diverse_groups: int | None = None
    diversity: float | None = None
    patience: float | None = None
    sampling: str | None = None  # "top-k=20,temperature=0.8": outputs are drawn, not searched
    mbr: int = 0  # samples among which the one is chosen that is nearest to all; 0: no such thing
    seed: int | None = None  # of samples; None: the run's
    replace_unknown: bool = False
    dictionary: Mapping[str, str] | None = None  # source word -> what replaces an unknown token; others replace it by themselves


def resolve(config: Config, options: SearchOptions) -> SearchSettings:
    """The run's search settings with the options in their place. Raises ConfigError for what cannot be."""
    if options.too_long not in (None, *get_args(TooLong)):
        hint = nearest(str(options.too_long), get_args(TooLong))
        raise ConfigError("not a valid value", f"too_long={options.too_long}", hint)
    if options.too_long == "split" and config.points:
        raise ConfigError("the positions of a source cannot be found piece by piece", "too_long=split", "truncate, or error")
    if options.dictionary is not None and not options.replace_unknown:
        raise ConfigError("a dictionary is for replacing unknown tokens", "dictionary", "replace_unknown is wanted beside it")
    names = (field.name for field in fields(options) if field.name in SearchSettings.model_fields)
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    values = config.to_dict()
    settings = Config.from_dict({**values, "search": {**values["search"], **given}}).search
    if options.sampling is not None or options.mbr:
        _check_samples(options)
        return settings.model_copy(update={"beam_size": options.mbr or options.n_best})
    if options.beam_size is None and options.n_best > settings.beam_size:
        settings = settings.model_copy(update={"beam_size": options.n_best})
    check_beam(settings.beam_size, options.n_best)
    check_groups(settings.beam_size, settings.diverse_groups, settings.diversity, False)
    return settings


def _check_samples(options: SearchOptions) -> None:
    sampled_from(options.sampling or "")
    if options.n_best < 1:
        raise ConfigError("at least 1 answer is wanted", f"n_best={options.n_best}")
    if options.mbr < 0 or 0 < options.mbr < options.n_best:
        raise ConfigError("more answers are asked for than samples drawn", f"n_best={options.n_best}, mbr={options.mbr}")
    for name, value in (("beam_size", options.beam_size), ("diverse_groups", options.diverse_groups)):
        if value is not None and value > 1:
            raise ConfigError("samples are drawn without a beam", f"{name}={value}", "leave it or the sampling out")


SAMPLED: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "top-k": ("top_k", int),
    "top-p": ("top_p", float),
    "nucleus": ("top_p", float),
    "typical": ("typical_p", float),
    "temperature": ("temperature", float),
}


def sampled_from(text: str) -> tuple[Filter, ...]:
    """`top-k=20,temperature=0.8` as what is drawn from; nothing: all that the model says. Raises ConfigError for what is none."""
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in SAMPLED or not equals:
            raise ConfigError("not a way of sampling", f"sampling {part}", nearest(name, SAMPLED))
        key, read = SAMPLED[name]
        try:
            values[key] = read(value)
        except ValueError:
            raise ConfigError("a number is wanted", f"sampling {part}") from None
    return drawn_from(**values)


def chunks(lines_in: Iterable[Line], at_once: int, attention: bool) -> Iterator[list[Line]]:
    """Lines and their prefixes in portions of at most `at_once`, fewer where they are long: alignments grow with the square of
    the length."""
    lines: list[Line] = []
    size = 0
    for line in lines_in:
        lines.append(line)
        size += len(line[0]) ** 2 if attention else len(line[0])
        if len(lines) >= at_once or size >= CHUNK_SIZE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def with_prefixes(sources: Iterable[str], prefixes: Iterable[str] | None, name: str) -> Iterator[Line]:
    """Each source with what its output begins with. Raises DataError where there are not as many of both."""
    if prefixes is None:
        yield from ((source, "") for source in sources)
        return
    given = iter(prefixes)
    count = 0
    for count, source in enumerate(sources, 1):
        prefix = next(given, None)
        if prefix is None:
            raise DataError(f"there are {count - 1:,} prefixes, and more sources", name, count, "one a source; it may be empty")
        yield source, prefix
    if next(given, None) is not None:
        raise DataError(f"there are {count:,} sources, and more prefixes", name, hint="one a source; it may be empty")


def check_sources(sources: Iterable[Any], numbers: bool = False, name: str = "sources") -> list[str]:
    """The sources as text, once it is sure that they are strings which can be written as UTF-8.

    Args:
        numbers: they may be nested lists, arrays or tensors of numbers.
        name: what messages call them.
    """
    if isinstance(sources, str | bytes) or not isinstance(sources, Iterable):
        raise UserError("sources are a list of strings", type(sources).__name__, 'write model.predict(["…"])')
    return [_text(source, f"{name}[{place}]", vectors.written if numbers else None) for place, source in enumerate(sources)]


def check_prefixes(prefixes: Iterable[Any] | None) -> list[str] | None:
    """The prefixes as text, where there are any."""
    if prefixes is None:
        return None
    if isinstance(prefixes, str | bytes):
        raise UserError("prefixes are a list of strings, one a source", type(prefixes).__name__)
    return [_text(prefix, f"prefixes[{place}]", None) for place, prefix in enumerate(prefixes)]


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
