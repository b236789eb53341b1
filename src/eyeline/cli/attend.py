"""`eyeline attend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, RunPath, Seed, Threads, Verbose, argument_text, open_predictor, reporter


def attend(
    run: RunPath,
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="The source text.")],
    out: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="FILE.png, FILE.svg or FILE.json.")],
    target: Annotated[
        str | None, typer.Option("--target", metavar="TEXT", help="The target; default: what the run predicts.")
    ] = None,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Draw running sums: how much each source token had been looked at after each step.")
    ] = False,
    beam_size: Annotated[int | None, typer.Option("--beam-size", help="For the prediction; 1 is greedy.", min=1)] = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Draw the alignment matrix of one pair: rows are output tokens, columns source tokens."""
    from eyeline.errors import ConfigError
    from eyeline.figures import FORMATS, CoverageMatrix

    if Path(out).suffix.lower() not in FORMATS:
        raise ConfigError("not a kind of file that a figure is written as", f"--output {out}", f"valid: {', '.join(FORMATS)}")
    predictor = open_predictor(run, device, threads, seed)
    from eyeline.evaluation import alignment_matrix

    given = None if target is None else argument_text(target)
    matrix = alignment_matrix(predictor, argument_text(source), given, beam_size)
    (CoverageMatrix(matrix) if coverage else matrix).save(out)
    reporter(quiet, verbose).note(f"written: {out}")
