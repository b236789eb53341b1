"""`eyeline predict`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from eyeline.cli.common import (
    BatchTokens,
    CoveragePenalty,
    Device,
    NoRepeatNgram,
    Quiet,
    RunPath,
    Seed,
    Threads,
    Verbose,
    count_lines,
    input_lines,
    input_name,
    output,
    reporter,
    watched,
)
from eyeline.cli.engines import Engine, check_engine_name, chosen_engine, engaged
from eyeline.cli.formats import ALIGNED, FORMATS, LINKS, written
from eyeline.cli.searching import (
    Constraints,
    Dictionary,
    DiverseGroups,
    Diversity,
    Ensemble,
    EnsembleMean,
    LengthNormalization,
    MaxLengthRatio,
    Mbr,
    MinLengthRatio,
    Patience,
    Precision,
    ReplaceUnknown,
    Sampling,
    Shortlist,
    open_ensemble,
    shortlist_file,
)
from eyeline.cli.shards import COLUMN, check_shards, predict_on_cluster

if TYPE_CHECKING:
    from eyeline.bulk import Means, Output, Seen
    from eyeline.contracts import Prediction
    from eyeline.predictor import Predictor, SearchOptions
    from eyeline.training.reporting import Reporter


def predict(
    run: RunPath,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT", help="Lines of source text; standard input when absent or -. With --cluster: shards."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; with --cluster a directory."),
    ] = None,
    format_: Annotated[
        str,
        typer.Option("--format", help="text, jsonl, nbest (Marian), fairseq, pharaoh (links of words) or pharaoh-tokens."),
    ] = "text",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a FILE that was interrupted.")] = False,
    beam_size: Annotated[int | None, typer.Option("--beam-size", help="Hypotheses kept; 1 is greedy.", min=1)] = None,
    n_best: Annotated[int, typer.Option("--n-best", help="Outputs a line, best first; at most the beam size.", min=1)] = 1,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", help="Rank by score / length^P.", min=0)] = None,
    coverage_penalty: CoveragePenalty = None,
    no_repeat_ngram: NoRepeatNgram = None,
    min_length: Annotated[int | None, typer.Option("--min-length", help="Tokens before the end may come.", min=0)] = None,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", help="Most tokens; default: twice the source's and 30, at most data.max_length.", min=1),
    ] = None,
    length_normalization: LengthNormalization = None,
    min_length_ratio: MinLengthRatio = None,
    max_length_ratio: MaxLengthRatio = None,
    diverse_groups: DiverseGroups = None,
    diversity: Diversity = None,
    patience: Patience = None,
    sampling: Sampling = None,
    mbr: Mbr = 0,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="FILE", help="A line for each line of INPUT: what its output begins with.")
    ] = None,
    constraints: Constraints = None,
    replace_unknown: ReplaceUnknown = False,
    dictionary: Dictionary = None,
    ensemble: Ensemble = None,
    ensemble_mean: EnsembleMean = "log",
    precision: Precision = "fp32",
    shortlist: Shortlist = False,
    engine: Engine = "torch",
    batch_tokens: BatchTokens = None,
    too_long: Annotated[
        str | None,
        typer.Option(
            "--too-long", help="Sources longer than the run's data.max_length: error, truncate or split; default: as they are."
        ),
    ] = None,
    attention: Annotated[bool, typer.Option("--attention/--no-attention", help="jsonl: with the alignment matrix.")] = True,
    on_bad_line: Annotated[
        str, typer.Option("--on-bad-line", help="A line that is no text or no source: error, or skip (an empty line).")
    ] = "error",
    seed: Seed = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="ray: Parquet files on the cluster at RAY_ADDRESS, or on this machine."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="With --cluster: processes; default: all.", min=1)] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="With --cluster: the column of the text; default: source.")
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict one output line for each input line, in order.

    A line of white space alone is answered with an empty line. Where the run has features, a line is TEXT, a tab, and A;B;C.
    Where its sources are numbers, a line is JSON: a list of elements, or an object with a "source".

    What goes to a FILE is kept as far as it is done when something ends the command, and --resume goes on behind it.
    """
    check_shards(cluster, inputs or [], out, format_, prefix, on_bad_line, workers, columns)
    _check(format_, n_best, too_long, on_bad_line, out, resume and cluster is None)
    source = inputs[0] if inputs else None
    check_engine_name(engine, ensemble, cluster, device, shortlist)
    from eyeline.bulk import Seen, predict_lines
    from eyeline.predictor.inputs import CHUNK, SearchOptions, with_prefixes
    from eyeline.predictor.terms import read_terms
    from eyeline.predictor.unknown import read_dictionary

    options = SearchOptions(
        beam_size=beam_size,
        n_best=n_best,
        length_penalty=length_penalty,
        min_length=min_length,
        max_length=max_length,
        batch_tokens=batch_tokens,
        too_long=cast("Any", too_long),
        attention=format_ in ALIGNED or (format_ == "jsonl" and attention),
        coverage_penalty=coverage_penalty,
        no_repeat_ngram=no_repeat_ngram,
        length_normalization=cast("Any", length_normalization),
        min_length_ratio=min_length_ratio,
        max_length_ratio=max_length_ratio,
        diverse_groups=diverse_groups,
        diversity=diversity,
        patience=patience,
        sampling=sampling,
        mbr=mbr,
        seed=seed,
        replace_unknown=replace_unknown,
        dictionary=None if dictionary is None else read_dictionary(dictionary),
    )
    engine = chosen_engine(engine, run, options, elsewhere=bool(ensemble or cluster or shortlist or device == "mps"))
    numbers = "fp32" if engine != "torch" else precision
    predictor = open_ensemble(run, ensemble, ensemble_mean, device, threads, seed, numbers, shortlist)
    if engine != "torch":
        predictor = engaged(predictor, threads, precision)
    terms, report, skipped = [] if constraints is None else read_terms(constraints), reporter(quiet, verbose), Seen()
    files = {"--constraints": constraints, "--dictionary": dictionary, "--shortlist": shortlist_file(predictor)}
    others = {
        "--format": format_,
        "--on-bad-line": on_bad_line,
        "--ensemble-mean": ensemble_mean,
        "--precision": precision,
        "--engine": engine,
        "--columns": columns,
    }
    means = partial(_means, predictor, ensemble, options, files, others)
    if cluster is not None:
        predict_on_cluster(
            predictor,
            [predictor.run.path, *map(Path, ensemble or ())],
            options,
            terms,
            means(),
            inputs=inputs or [],
            out=out or "",
            column=columns or COLUMN,
            tokens=format_ == "jsonl",
            ensemble_mean=ensemble_mean,
            precision=precision,
            shortlist=shortlist,
            threads=threads,
            workers=workers,
            report=report,
        )
        return
    ask = predictor.answerer(options, terms, input_name(source))
    typed = source in (None, "-") and sys.stdin.isatty()  # a person at the keyboard is answered line by line
    given = input_lines(source, partial(skipped.add, "skipped") if on_bad_line == "skip" else None)
    if on_bad_line == "skip":
        given = _possible(predictor, given, skipped)
    coming = with_prefixes(given, None if prefix is None else input_lines(prefix), input_name(source))
    with _output(out, resume, typed, means) as place:
        made = predict_lines(
            ask,
            coming,
            place,
            partial(_form, predictor, format_, n_best),
            longest=predictor.config.most_tokens[0],
            at_once=1 if typed else CHUNK,
            attention=options.attention,
        )
        for _ in watched(made, report, "lines", count_lines(source), place.lines):
            pass
    _warn(report, predictor, place.seen, skipped, too_long)
    if source is not None and source.lower().endswith((".tsv", ".tsv.gz")) and not predictor.run.source.features:
        report.warn(f"every line of {source} was taken as source text, tabs included; `eyeline evaluate` reads pairs")


def _check(format_: str, n_best: int, too_long: str | None, on_bad_line: str, out: str | None, resume: bool) -> None:
    """Raises ConfigError for options that cannot be, or not together."""
    from eyeline.errors import ConfigError, nearest

    for name, value, valid in (
        ("--format", format_, FORMATS),
        ("--too-long", too_long or "error", ("error", "truncate", "split")),
        ("--on-bad-line", on_bad_line, ("error", "skip")),
    ):
        if value not in valid:
            raise ConfigError("not a valid value", f"{name} {value}", nearest(value, valid))
    if format_ in LINKS and n_best > 1:
        raise ConfigError(
            "alignments are of the best output alone", f"--format {format_} --n-best {n_best}", "leave --n-best out"
        )
    if format_ in LINKS and too_long == "split":
        raise ConfigError("sources in pieces have no alignment", f"--format {format_} --too-long split", "truncate, or error")
    if resume and not _is_file(out):
        raise ConfigError("only a file can be gone on with", "--resume", "name it with -o FILE")


def _is_file(path: str | None) -> bool:
    """Whether an output is a file, there or to be: standard output, a device and a pipe are none."""
    return path not in (None, "-") and (not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path))


@contextmanager
def _output(path: str | None, resume: bool, typed: bool, means: Callable[[], Means]) -> Iterator[Output]:
    """Where predictions go."""
    from eyeline.bulk import ToStream, resumable

    if path is None or not _is_file(path):
        with output(path) as stream:
            yield ToStream(stream, typed)
    else:
        with resumable(Path(path), means(), resume) as place:
            yield place


def _means(
    predictor: Predictor,
    ensemble: list[str] | None,
    options: SearchOptions,
    files: Mapping[str, str | None],
    others: dict[str, Any],
) -> Means:
    """What the bytes of an output depend on."""
    from dataclasses import asdict, replace

    from eyeline import __version__
    from eyeline.bulk import Means, files_digest, run_digest

    runs = {"the run": predictor.run.path, **{f"--ensemble {path}": Path(path) for path in ensemble or ()}}
    digests = {name: run_digest(path) for name, path in runs.items()}
    digests |= {name: files_digest([Path(path)]) for name, path in files.items() if path is not None}
    return Means.of(digests, {**asdict(replace(options, dictionary=None)), **others, "version": __version__})


def _form(predictor: Predictor, format_: str, n_best: int, number: int, prediction: Prediction) -> bytes:
    if format_ in LINKS and prediction.tokens and prediction.alignment is None:
        from eyeline.evaluation.alignments import no_attention

        raise no_attention(predictor)
    return written(format_, number, prediction, n_best)


def _possible(predictor: Predictor, lines: Iterator[str], skipped: Seen) -> Iterator[str]:
    """The lines, with an empty one for each that the run cannot take for a source."""
    from eyeline.errors import UserError

    for number, line in enumerate(lines, 1):
        try:
            predictor.read(line)
        except UserError:
            skipped.add("skipped", number)
            line = ""
        yield line


def _warn(report: Reporter, predictor: Predictor, seen: Seen, skipped: Seen, too_long: str | None) -> None:
    """Tells of lines that a person should look at."""
    if long := seen.counts.get("long"):
        done = {"truncate": "cut to it", "split": "predicted in pieces"}.get(too_long or "", "predicted whole")
        _, bound = predictor.config.most_tokens
        report.warn(f"sources of more tokens than {bound}: {long:,}, {done} (--too-long): {_lines(seen, 'long')}")
    if unfinished := seen.counts.get("unfinished"):
        what = f"outputs that did not end before their maximum length: {unfinished:,} (--max-length)"
        report.warn(f"{what}: {_lines(seen, 'unfinished')}")
    if count := skipped.counts.get("skipped"):
        what = "text" if not predictor.config.points else "source"
        report.warn(f"lines that are no {what}, answered with an empty line: {count:,} ({skipped.places('skipped')})")


def _lines(seen: Seen, kind: str) -> str:
    return f"line{'s' if seen.counts[kind] > 1 else ''} {seen.places(kind)}"
