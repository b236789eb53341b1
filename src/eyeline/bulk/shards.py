"""One Parquet file through a predictor: all its columns again, and what is predicted of one of them beside. Knows tables and
predictions; not who asks for which shard."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from eyeline.bulk.fingerprints import Means
from eyeline.bulk.lines import Ask
from eyeline.bulk.places import Place, Shard
from eyeline.contracts import Prediction
from eyeline.errors import DataError, UserError, require
from eyeline.predictor.inputs import CHUNK, chunks

METADATA = b"eyeline"  # the entry of a Parquet file that says how it was made
TEXT = ("string", "large_string", "string_view", "null")  # types of columns of text; the last of one that is all empty
LEFTOVER = ".partial"  # how the name of an output ends that is not whole yet

Column = tuple[str, Callable[[Any], Any], Callable[[Prediction], Any]]  # a name, its Arrow type, its value


@dataclass(frozen=True)
class Work:
    """What is asked of every shard."""

    column: str  # the one that has the sources
    means: Means
    n_best: int = 1
    tokens: bool = False  # whether tokens and their scores are wanted, too
    attention: bool = False  # and the alignment between them


@dataclass(frozen=True)
class Done:
    """What became of a shard."""

    rows: int = 0
    made: bool = False  # by this call; False: it was there already
    unfinished: int = 0
    truncated: int = 0
    failure: str = ""  # why it has no output


def predict_shard(ask: Ask, shard: Shard, work: Work) -> Done:
    """Writes the output of a shard, whole or not at all; leaves one alone that is there and was made by the same means.

    Raises:
        UserError: an output of other means is there, the shard is damaged or has no such column of text, or a row is no source.
    """
    parquet: Any = require("pyarrow.parquet", "cluster")
    there = _made(shard, work, parquet)
    if there is not None:
        return there
    system, path = shard.output.open()
    folder, _, name = path.rpartition("/")
    system.create_dir(folder, recursive=True)
    beside = f"{folder}/.{name[:40]}.{uuid.uuid4().hex[:8]}{LEFTOVER}"
    try:
        done = _write(ask, shard, work, system, beside)
        system.move(beside, path)
    except BaseException:
        with suppress(OSError):
            system.delete_file(beside)
        raise
    return done


def remove_leftovers(out: Place) -> None:
    """Removes what killed processes have left below `out`; nobody else may be writing there."""
    fs: Any = require("pyarrow.fs", "cluster")
    system, path = out.open()
    for info in system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True)):
        if info.base_name.startswith(".") and info.base_name.endswith(LEFTOVER):
            system.delete_file(info.path)


def _made(shard: Shard, work: Work, parquet: Any) -> Done | None:
    """What an earlier process made of the shard; None where it has to be made."""
    fs: Any = require("pyarrow.fs", "cluster")
    system, path = shard.output.open()
    if system.get_file_info(path).type != fs.FileType.File:
        return None
    where, anew = str(shard.output), "name another -o DIR, or remove it"
    try:
        stored = json.loads((parquet.read_metadata(path, filesystem=system).metadata or {})[METADATA])
        before, size, done = Means(**stored["means"]), stored["size"], Done(**stored["done"])
    except Exception as error:  # pyarrow has many kinds
        raise UserError("another file stands in the place of an output", where, anew) from error
    if difference := work.means.difference(before):
        raise UserError(difference, where, anew)
    return replace(done, made=False) if size == shard.size else None


def _write(ask: Ask, shard: Shard, work: Work, system: Any, path: str) -> Done:
    """Writes to `path`. The schema at the end of the file says how it was made: it is there when all rows are."""
    arrow: Any = require("pyarrow", "cluster")
    parquet: Any = require("pyarrow.parquet", "cluster")
    source, source_path = shard.source.open()
    rows = unfinished = truncated = 0
    with _opened(parquet, source, source_path, shard) as table, system.open_output_stream(path) as sink:
        columns = _columns(work)
        given = _checked(arrow, table.schema_arrow, shard, work, columns)
        schema = arrow.schema([*given, *(arrow.field(name, kind(arrow)) for name, kind, _ in columns)], metadata=given.metadata)
        with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
            for batch in _batches(table, shard):
                texts = [text or "" for text in batch.column(work.column).to_pylist()]
                answers = list(_answers(ask, texts, rows + 1, work.attention))
                added = [arrow.array([value(one) for one in answers], kind(arrow)) for _, kind, value in columns]
                writer.write_batch(arrow.record_batch([*batch.columns, *added], schema=schema))
                rows += len(answers)
                unfinished += sum(not one.finished for one in answers)
                truncated += sum(one.truncated for one in answers)
            done = Done(rows, True, unfinished, truncated)
            made = {"means": asdict(work.means), "size": shard.size, "done": asdict(done)}
            writer.add_key_value_metadata({METADATA: json.dumps(made).encode()})
    return done


def _answers(ask: Ask, texts: Sequence[str], first: int, attention: bool) -> Iterator[Prediction]:
    for lines in chunks(((text, "") for text in texts), CHUNK, attention):
        yield from ask(lines, first)
        first += len(lines)


def _columns(work: Work) -> list[Column]:
    """What is added to a table."""
    columns: list[Column] = [
        ("prediction", lambda arrow: arrow.string(), lambda one: one.text),
        ("score", lambda arrow: arrow.float64(), lambda one: one.score),
        ("normalized_score", lambda arrow: arrow.float64(), lambda one: one.normalized_score),
        ("finished", lambda arrow: arrow.bool_(), lambda one: one.finished),
        ("truncated", lambda arrow: arrow.bool_(), lambda one: one.truncated),
    ]
    if work.n_best > 1:
        columns.append(("n_best", _n_best, lambda one: [_entry(vars(each)) for each in one.n_best]))
    if work.tokens:
        columns += [
            ("source_tokens", lambda arrow: arrow.list_(arrow.string()), lambda one: one.source_tokens),
            ("tokens", lambda arrow: arrow.list_(arrow.string()), lambda one: one.tokens),
            ("token_scores", lambda arrow: arrow.list_(arrow.float64()), lambda one: one.token_scores),
        ]
    if work.attention:
        columns.append(("alignment", lambda arrow: arrow.list_(arrow.list_(arrow.float32())), lambda one: one.alignment))
    return columns


def _n_best(arrow: Any) -> Any:
    number = arrow.float64()
    return arrow.list_(arrow.struct([("text", arrow.string()), ("score", number), ("normalized_score", number)]))


def _entry(alternative: dict[str, Any]) -> dict[str, Any]:
    return {name: alternative[name] for name in ("text", "score", "normalized_score")}


def _checked(arrow: Any, schema: Any, shard: Shard, work: Work, columns: Sequence[Column]) -> Any:
    """The schema of a source. Raises DataError where the column is absent or no text, or a name would come twice."""
    where, names = str(shard.source), ", ".join(schema.names)
    if work.column not in schema.names:
        raise DataError(f"there is no column {work.column}", where, hint=f"--columns names one of {names}")
    kind = schema.field(work.column).type
    if str(kind.value_type if arrow.types.is_dictionary(kind) else kind) not in TEXT:
        raise DataError(f"column {work.column} holds {kind}, not text", where, hint=f"--columns names one of {names}")
    for name, _, _ in columns:
        if name in schema.names:
            raise DataError(f"there is a column {name} already, which a prediction has, too", where, hint="rename it")
    return schema


def _opened(parquet: Any, system: Any, path: str, shard: Shard) -> Any:
    try:
        return parquet.ParquetFile(path, filesystem=system)
    except Exception as error:
        raise DataError(f"not a readable Parquet file: {' '.join(str(error).split())}", str(shard.source)) from error


def _batches(table: Any, shard: Shard) -> Iterator[Any]:
    try:
        yield from table.iter_batches(batch_size=CHUNK)
    except OSError as error:
        raise DataError(f"a damaged Parquet file: {' '.join(str(error).split())}", str(shard.source)) from error
