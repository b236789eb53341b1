"""`eyeline score`."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from eyeline.cli.common import (
    BatchTokens,
    ColumnsOption,
    CoveragePenalty,
    Device,
    OnBadLine,
    Pairs,
    Quiet,
    RunPath,
    Seed,
    Threads,
    Verbose,
    output,
    reporter,
)
from eyeline.cli.searching import Ensemble, EnsembleMean, LengthNormalization, Precision, open_ensemble


def score(
    run: RunPath,
    pairs: Pairs,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; default: standard output.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="text (one score a line) or jsonl (with token scores).")] = "text",
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", help="For jsonl's normalized_score.", min=0)] = None,
    coverage_penalty: CoveragePenalty = None,
    length_normalization: LengthNormalization = None,
    ensemble: Ensemble = None,
    ensemble_mean: EnsembleMean = "log",
    precision: Precision = "fp32",
    batch_tokens: BatchTokens = None,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print the summed natural-log probability of each given pair, the end of the target counted."""
    from eyeline.errors import ConfigError, nearest

    if format_ not in ("text", "jsonl"):
        raise ConfigError("not a valid value", f"--format {format_}", nearest(format_, ("text", "jsonl")))
    predictor = open_ensemble(run, ensemble, ensemble_mean, device, threads, seed, precision)
    from eyeline.cli.common import write_json_lines
    from eyeline.evaluation import read_for, source_lines

    read = read_for(predictor, pairs, columns, on_bad_line, warn=reporter(quiet, verbose).warn)
    lines = source_lines(predictor, read)
    given = list(zip(lines, (pair.target for pair in read), strict=True))
    scores = predictor.score(
        given,
        length_penalty=length_penalty,
        batch_tokens=batch_tokens,
        coverage_penalty=coverage_penalty,
        length_normalization=cast("Any", length_normalization),
    )
    with output(out) as stream:
        if format_ == "text":
            stream.writelines(f"{one.score:.6f}\n".encode() for one in scores)
            return
        write_json_lines(
            stream,
            (
                {
                    "source": source,
                    "target": pair.target,
                    "score": one.score,
                    "normalized_score": one.normalized_score,
                    "tokens": one.tokens,
                    "token_scores": one.token_scores,
                    **({} if one.p_gen is None else {"p_gen": one.p_gen}),
                }
                for source, pair, one in zip(lines, read, scores, strict=True)
            ),
        )
