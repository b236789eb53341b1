"""`eyeline shortlist`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

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
    input_lines,
    reporter,
    watched,
)
from eyeline.cli.searching import open_ensemble

if TYPE_CHECKING:
    from eyeline.predictor import Predictor
    from eyeline.predictor.shortlist import Shortlist
    from eyeline.training.reporting import Reporter


def shortlist(
    run: RunPath,
    pairs: Pairs,
    likely: Annotated[int, typer.Option("--likely", metavar="N", help="Most output tokens for a source token.", min=1)] = 40,
    always: Annotated[
        int, typer.Option("--always", metavar="N", help="The N most frequent output tokens, which any source may have.", min=0)
    ] = 100,
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="FILE", help="Lines of source text: predict them with and without, and compare."),
    ] = None,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn from PAIRS which output tokens each source token may turn into, for `predict --shortlist`.

    PAIRS are best those that the run was trained on. The run's attention says what belongs together. Written into the run.
    """
    predictor = open_ensemble(run, None, "log", device, threads, seed)
    from eyeline.evaluation import read_for
    from eyeline.evaluation.shortlists import make_shortlist
    from eyeline.predictor.shortlist import SHORTLIST

    report = reporter(quiet, verbose)
    read = read_for(predictor, pairs, columns, on_bad_line, warn=report.warn)
    lines = None if check is None else list(input_lines(check))

    def seen(coming: Iterator[int]) -> Iterator[int]:
        """A turn for each pair, that one sees how many are done."""
        return watched((1 for done in coming for _ in range(done)), report, "pairs", len(read))

    made = make_shortlist(predictor, read, likely=likely, always=always, watch=seen)
    made.save(predictor.run.path)
    known = int((made.likely > 0).any(1).sum())
    report.note(f"{known:,} of {len(made.likely):,} source tokens have likely outputs, from {len(read):,} pairs")
    if lines is not None:
        _check(predictor, lines, made, report)
    report.note(f"written: {predictor.run.path / SHORTLIST}; `eyeline predict {run} --shortlist` uses it")


def _check(predictor: Predictor, lines: list[str], made: Shortlist, report: Reporter) -> None:
    from eyeline.evaluation.shortlists import exactness

    report.note(f"with the shortlist: {exactness(predictor, lines, made)}")
