"""`eyeline align`."""

from __future__ import annotations

from typing import Annotated

import typer

from eyeline.cli.common import (
    ColumnsOption,
    Device,
    OnBadLine,
    Pairs,
    Quiet,
    RunPath,
    Seed,
    Threads,
    Verbose,
    open_predictor,
    output,
    reporter,
)


def align(
    run: RunPath,
    pairs: Pairs,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; default: standard output.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Link the model's tokens instead of words.")] = False,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print the alignment of each pair as a Pharaoh line, `0-0 1-2`: zero-based, source-target, in words.

    Each target word is linked to the source word that its attention is heaviest on. Where the pairs have an `alignment` column,
    precision, recall, F1 and AER against it follow on standard error.
    """
    predictor = open_predictor(run, device, threads, seed)
    from eyeline.evaluation import align_pairs, alignment_against_gold, links_words, read_for
    from eyeline.metrics.alignment import format_links

    report = reporter(quiet, verbose)
    read = read_for(predictor, pairs, columns, on_bad_line, alignment=True, warn=report.warn)
    links = align_pairs(predictor, read, words=not tokens)
    with output(out) as stream:
        stream.writelines(f"{format_links(line)}\n".encode() for line in links)
    if not tokens and not links_words(read):
        report.note("the pairs' own links reach beyond their words, so they link tokens: --tokens measures against them")
        return
    scores = alignment_against_gold(links, read)
    if scores is not None:
        figures = f"precision {scores.precision:.2f}  recall {scores.recall:.2f}  F1 {scores.f1:.2f}  AER {scores.aer:.2f}"
        report.note(f"against the gold links: {figures}")
