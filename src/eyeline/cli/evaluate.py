"""`eyeline evaluate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from eyeline.cli.common import (
    BatchTokens,
    ColumnsOption,
    CoveragePenalty,
    Device,
    NoRepeatNgram,
    OnBadLine,
    Pairs,
    Quiet,
    RunPath,
    Seed,
    TestLengths,
    Threads,
    Verbose,
    reporter,
    test_lengths_of,
    watched,
)
from eyeline.cli.searching import (
    DiverseGroups,
    Diversity,
    Ensemble,
    EnsembleMean,
    LengthNormalization,
    Mbr,
    Patience,
    Precision,
    Sampling,
    Shortlist,
    open_ensemble,
)

if TYPE_CHECKING:
    from eyeline.contracts import Prediction


def evaluate(
    run: RunPath,
    pairs: Pairs,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Also write everything as JSON; - for standard output.")
    ] = None,
    beam_size: Annotated[int | None, typer.Option("--beam-size", help="Hypotheses kept; 1 is greedy.", min=1)] = None,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", help="Rank by score / length^P.", min=0)] = None,
    coverage_penalty: CoveragePenalty = None,
    no_repeat_ngram: NoRepeatNgram = None,
    max_length: Annotated[int | None, typer.Option("--max-length", help="Most tokens of an output.", min=1)] = None,
    length_normalization: LengthNormalization = None,
    diverse_groups: DiverseGroups = None,
    diversity: Diversity = None,
    patience: Patience = None,
    sampling: Sampling = None,
    mbr: Mbr = 0,
    ensemble: Ensemble = None,
    ensemble_mean: EnsembleMean = "log",
    precision: Precision = "fp32",
    shortlist: Shortlist = False,
    batch_tokens: BatchTokens = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            "--geometry", metavar="TASK", help="Pointing at numbers: sorting, convex-hull, delaunay or tsp, measured too."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="RUN2|FILE", help="Compare with another run, or with a file of outputs, a line a pair."
        ),
    ] = None,
    test_lengths: TestLengths = None,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", help="Show the N outputs that are furthest off; 0: none.", min=0)
    ] = 3,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict the sources and measure the outputs against the targets, as the user would see them.

    Every score stands beside its signature and a 95 % bootstrap interval; quality by source length, the outputs furthest off, and
    what is out of the ordinary follow. With --against, each difference has an interval and two tests.
    """
    bounds = test_lengths_of(test_lengths)
    predictor = open_ensemble(run, ensemble, ensemble_mean, device, threads, seed, precision, shortlist)
    from eyeline.evaluation import compare_outputs, diagnose, measure, other_outputs, read_for, render, render_comparison, worst
    from eyeline.files import write_json
    from eyeline.predictor import SearchOptions

    report = reporter(quiet, verbose)
    read = read_for(predictor, pairs, columns, on_bad_line, warn=report.warn)
    options = SearchOptions(
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length=max_length,
        batch_tokens=batch_tokens,
        coverage_penalty=coverage_penalty,
        no_repeat_ngram=no_repeat_ngram,
        length_normalization=cast("Any", length_normalization),
        diverse_groups=diverse_groups,
        diversity=diversity,
        patience=patience,
        sampling=sampling,
        mbr=mbr,
        seed=seed,
    )
    chance = predictor.config.seed if seed is None else seed

    def seen(coming: Iterator[Prediction]) -> Iterator[Prediction]:
        return watched(coming, report, "pairs", len(read))

    theirs = None if against is None else other_outputs(against, predictor, read, options, seen)
    measured = measure(predictor, read, options, chance, seen, geometry, bounds)
    result = measured.result
    if against is not None and theirs is not None:
        result["against"] = compare_outputs(measured, theirs, against, chance)
    result["worst"] = worst(measured, examples)
    result["diagnosis"] = diagnose(predictor, measured)
    if json_ == "-":
        typer.echo(json.dumps(result, ensure_ascii=False, indent=1))
        return
    if json_ is not None:
        write_json(json_, result)
        report.note(f"written: {json_}")
    typer.echo(render(result))
    if against is not None:
        typer.echo(render_comparison(result["against"]))
    for one in result["worst"]:
        typer.echo(f"furthest off, line {one['line']}: {one['source']}\n  said   {one['output']}\n  wanted {one['reference']}")
    for line in result["diagnosis"]:
        typer.echo(f"diagnose: {line}")
