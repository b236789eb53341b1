"""`predict --cluster`: Parquet shards on a Ray cluster. Parses, calls, tells; what is done is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eyeline.cli.common import watched

if TYPE_CHECKING:
    from eyeline.bulk import Done, Means, Shard
    from eyeline.predictor import Predictor, SearchOptions, Term
    from eyeline.training.reporting import Reporter

CLUSTERS = ("ray",)
FORMATS = ("text", "jsonl")  # what a table has columns for
COLUMN = "source"


def check_shards(
    cluster: str | None,
    inputs: Sequence[str],
    out: str | None,
    format_: str,
    prefix: str | None,
    on_bad_line: str,
    workers: int | None,
    columns: str | None,
) -> None:
    """Raises ConfigError for options that do not go with a cluster, or not without one."""
    from eyeline.errors import ConfigError, nearest

    if cluster is None:
        if len(inputs) > 1:
            hint = "one file at a time, or --cluster ray for Parquet files"
            raise ConfigError(f"{len(inputs)} files are given", " ".join([*inputs[:2], "…"][: len(inputs)]), hint)
        if inputs and inputs[0].lower().endswith(".parquet"):
            raise ConfigError("Parquet files are predicted shard by shard", inputs[0], "add --cluster ray -o DIR")
        for name, value in (("--workers", workers), ("--columns", columns)):
            if value is not None:
                raise ConfigError("this is for shards", f"{name} {value}", "add --cluster ray")
        return
    if cluster not in CLUSTERS:
        raise ConfigError("not a valid value", f"--cluster {cluster}", nearest(cluster, CLUSTERS))
    if not inputs or "-" in inputs:
        raise ConfigError("a cluster reads Parquet files, not standard input", "INPUT", "such as 'folder/*.parquet'")
    if out in (None, "-"):
        raise ConfigError("outputs of shards are files in a directory", "-o", "name it with -o DIR")
    if format_ not in FORMATS:
        raise ConfigError("tables have no such lines", f"--format {format_}", f"valid: {', '.join(FORMATS)}")
    if prefix is not None:
        raise ConfigError("a file of prefixes is for a file of lines", f"--prefix {prefix}", "leave --cluster or it out")
    if on_bad_line != "error":
        raise ConfigError("shards have no lines to be skipped", f"--on-bad-line {on_bad_line}", "leave it out")


def predict_on_cluster(
    predictor: Predictor,
    runs: Sequence[Path],
    options: SearchOptions,
    terms: Sequence[Term],
    means: Means,
    *,
    inputs: Sequence[str],
    out: str,
    column: str,
    tokens: bool,
    ensemble_mean: str,
    precision: str,
    shortlist: bool,
    threads: int | None,
    workers: int | None,
    report: Reporter,
) -> None:
    """Predicts the shards that are not done yet, and tells what became of them."""
    from eyeline.bulk import Place, Work, find_shards, remove_leftovers
    from eyeline.bulk.cluster import Asking, predict_shards
    from eyeline.errors import Interrupted, UserError

    predictor.answerer(options, terms)  # what cannot be is said before a cluster is started
    shards = find_shards(inputs, out)
    remove_leftovers(Place.of(out))
    asking = Asking(options, terms, ensemble_mean, precision, shortlist, str(predictor.device), threads or 1)
    work = Work(column, means, options.n_best, tokens, options.attention)
    results: list[Done] = []
    coming = predict_shards(shards, runs, asking, work, workers)
    try:
        for shard, result in watched(coming, report, "shards", len(shards)):
            results.append(result)
            _tell(report, shard, result)
    except KeyboardInterrupt:
        done = f"{len(results):,} of {len(shards):,} shards are whole ({out})"
        raise Interrupted(f"{done}, the same command goes on with the others") from None
    failures = [result.failure for result in results if result.failure]
    _sum_up(report, results, out)
    if failures:
        hint = "mend it and give the same command again: what is whole stays"
        raise UserError(f"{len(failures):,} of {len(shards):,} shards were not predicted: {failures[0]}", "", hint)


def _tell(report: Reporter, shard: Shard, result: Done) -> None:
    if result.failure:
        report.warn(f"not predicted: {result.failure}")
    elif report.verbosity > 0:
        report.note(f"{shard.output}: {result.rows:,} rows" + ("" if result.made else ", there already"))


def _sum_up(report: Reporter, results: Sequence[Done], out: str) -> None:
    done = [result for result in results if not result.failure]
    rows, old = sum(one.rows for one in done), sum(not one.made for one in done)
    report.note(f"written: {len(done):,} shards, {rows:,} rows ({out})" + (f", {old:,} of them there already" if old else ""))
    for what, count in (
        ("sources that were cut to data.max_length", sum(one.truncated for one in done)),
        ("outputs that did not end before their maximum length", sum(one.unfinished for one in done)),
    ):
        if count:
            report.warn(f"{what}: {count:,}")
