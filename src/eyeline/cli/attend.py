"""`eyeline attend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, RunPath, Seed, Threads, Verbose, argument_text, open_predictor, reporter

PAGE = ".html"


def attend(
    run: RunPath,
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="The source text.")],
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="FILE.png, .svg, .json, or .html: a page to step through.")
    ],
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
    """Draw the alignment matrix of one pair: rows are output tokens, columns source tokens.

    As a page (.html) it shows each step: scores, weights, what they sum up, the likeliest next tokens, every head, the beam.
    """
    from eyeline.errors import ConfigError
    from eyeline.figures import FORMATS, CoverageMatrix

    suffix, valid = Path(out).suffix.lower(), (*FORMATS, PAGE)
    if suffix not in valid:
        raise ConfigError("not a kind of file that a figure is written as", f"--output {out}", f"valid: {', '.join(valid)}")
    if suffix == PAGE and coverage:
        raise ConfigError("a page shows running sums where a model has coverage", "--coverage", "leave it out")
    predictor = open_predictor(run, device, threads, seed)
    given = None if target is None else argument_text(target)
    if suffix == PAGE:
        from eyeline.explorer import explain

        explain(predictor, argument_text(source), given, beam_size=beam_size).save(out)
    else:
        from eyeline.evaluation import alignment_matrix

        matrix = alignment_matrix(predictor, argument_text(source), given, beam_size)
        (CoverageMatrix(matrix) if coverage else matrix).save(out)
    reporter(quiet, verbose).note(f"written: {out}")
