"""`eyeline predict`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

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
    ReplaceUnknown,
    Sampling,
    open_ensemble,
)

if TYPE_CHECKING:
    from eyeline.contracts import Alternative, Prediction
    from eyeline.predictor import Predictor
    from eyeline.training.reporting import Reporter

FORMATS = ("text", "jsonl", "nbest", "fairseq")
LOG_2 = 0.6931471805599453  # fairseq writes scores to the base 2, and END in P- but not in H-


def predict(
    run: RunPath,
    source: Annotated[
        str | None, typer.Argument(metavar="INPUT", help="Lines of source text; standard input when absent or -.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; default: standard output.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="text, jsonl, nbest (Marian) or fairseq.")] = "text",
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
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict one output line for each input line, in order.

    A line of white space alone is answered with an empty line. Where the run has features, a line is TEXT, a tab, and A;B;C.
    Where its sources are numbers, a line is JSON: a list of elements, or an object with a "source".
    """
    from eyeline.errors import ConfigError, nearest

    for name, value, valid in (
        ("--format", format_, FORMATS),
        ("--too-long", too_long or "error", ("error", "truncate", "split")),
        ("--on-bad-line", on_bad_line, ("error", "skip")),
    ):
        if value not in valid:
            raise ConfigError("not a valid value", f"{name} {value}", nearest(value, valid))
    predictor = open_ensemble(run, ensemble, ensemble_mean, device, threads, seed)
    from eyeline.predictor.inputs import CHUNK, SearchOptions
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
        attention=format_ == "fairseq" or (format_ == "jsonl" and attention),
        coverage_penalty=coverage_penalty,
        no_repeat_ngram=no_repeat_ngram,
        length_normalization=cast("Any", length_normalization),
        min_length_ratio=min_length_ratio,
        max_length_ratio=max_length_ratio,
        diverse_groups=diverse_groups,
        diversity=diversity,
        sampling=sampling,
        mbr=mbr,
        seed=seed,
        replace_unknown=replace_unknown,
        dictionary=None if dictionary is None else read_dictionary(dictionary),
    )
    terms = [] if constraints is None else read_terms(constraints)
    prefixes = None if prefix is None else input_lines(prefix, "error", [])
    report, counts, skipped = reporter(quiet, verbose), Counter[str](), list[int]()
    typed = source in (None, "-") and sys.stdin.isatty()  # a person at the keyboard is answered line by line
    given = input_lines(source, on_bad_line, skipped)
    if on_bad_line == "skip":
        given = _possible(predictor, given, skipped)
    at_once = 1 if typed else CHUNK
    coming = predictor.stream(given, options, prefixes=prefixes, terms=terms, name=input_name(source), at_once=at_once)
    with output(out) as stream:
        for number, prediction in enumerate(watched(coming, report, "lines", count_lines(source))):
            _count(counts, prediction, predictor.config.most_tokens[0])
            write(stream, format_, number, prediction, n_best)
            if typed:
                stream.flush()
    _warn(report, predictor, counts, skipped, too_long)
    if source is not None and source.lower().endswith((".tsv", ".tsv.gz")) and not predictor.run.source.features:
        report.warn(f"every line of {source} was taken as source text, tabs included; `eyeline evaluate` reads pairs")


def _possible(predictor: Predictor, lines: Iterator[str], skipped: list[int]) -> Iterator[str]:
    """The lines, with an empty one for each that the run cannot take for a source."""
    from eyeline.errors import UserError

    for number, line in enumerate(lines, 1):
        try:
            predictor.read(line)
        except UserError:
            skipped.append(number)
            line = ""
        yield line


def _count(counts: Counter[str], prediction: Prediction, most: int) -> None:
    """Counts what a person should hear of at the end."""
    counts["unfinished"] += not prediction.finished
    counts["long"] += prediction.truncated or len(prediction.source_tokens) - 1 > most


def _warn(report: Reporter, predictor: Predictor, counts: Counter[str], skipped: list[int], too_long: str | None) -> None:
    if counts["long"]:
        done = {"truncate": "cut to it", "split": "predicted in pieces"}.get(too_long or "", "predicted whole")
        _, bound = predictor.config.most_tokens
        report.warn(f"sources of more tokens than {bound}: {counts['long']:,}, {done} (--too-long)")
    if counts["unfinished"]:
        report.warn(f"outputs that did not end before their maximum length: {counts['unfinished']:,} (--max-length)")
    if skipped:
        what = "text" if not predictor.config.points else "source"
        first = ", ".join(map(str, skipped[:5])) + (" …" if len(skipped) > 5 else "")
        report.warn(f"lines that are no {what}, answered with an empty line: {len(skipped):,} ({first})")


def write(stream: BinaryIO, format_: str, number: int, prediction: Prediction, n_best: int) -> None:
    """One prediction in one of the FORMATS."""
    from eyeline.text.lines import output_line

    for line in lines(format_, number, prediction, n_best):
        stream.write(output_line(line))


def lines(format_: str, number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    """The lines that one prediction is written as; `text` and `nbest` have `n_best`, whatever is possible."""
    import json

    from eyeline.predictor.answers import as_json

    if format_ == "jsonl":
        yield json.dumps(as_json(prediction), ensure_ascii=False)
    elif format_ == "nbest":
        for alternative in all_of(prediction, n_best):
            yield f"{number} ||| {alternative.text} ||| F0= {alternative.score:.6f} ||| {alternative.normalized_score:.6f}"
    elif format_ == "fairseq":
        yield f"S-{number}\t{prediction.source}"
        for alternative in prediction.n_best:
            score, said = alternative.normalized_score / LOG_2, alternative.tokens[: -1 if alternative.finished else None]
            yield f"H-{number}\t{score:.6f}\t{' '.join(said)}"
            yield f"D-{number}\t{score:.6f}\t{alternative.text}"
            yield f"P-{number}\t{' '.join(f'{score / LOG_2:.4f}' for score in alternative.token_scores)}"
        if prediction.alignment is not None:
            yield f"A-{number}\t{' '.join(hard_links(prediction))}"
    else:
        for alternative in all_of(prediction, n_best):
            yield alternative.text


def all_of(prediction: Prediction, n_best: int) -> Iterator[Alternative]:
    """The n-best list with exactly `n_best` entries: those that no output is left for are empty and impossible."""
    from eyeline.contracts import Alternative

    yield from prediction.n_best
    for _ in range(n_best - len(prediction.n_best)):
        yield Alternative("", float("-inf"), float("-inf"), [], [], False)


def hard_links(prediction: Prediction) -> Iterator[str]:
    """`source-target` of each output token's heaviest source token, END of either side apart."""
    from eyeline.metrics.alignment import format_links, links_from_attention

    assert prediction.alignment is not None
    targets = len(prediction.tokens) - prediction.finished
    yield format_links(links_from_attention(prediction.alignment, len(prediction.source_tokens) - 1, targets))
