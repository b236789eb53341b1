"""`eyeline average`."""

from __future__ import annotations

from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, RunPath, Seed, Threads, Verbose, prepare, reporter, writable_path


def average(
    run: RunPath,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="PATH", help="A new run directory, or FILE.safetensors for weights alone."),
    ] = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", help="The newest N of the weights kept.", min=1)] = None,
    best: Annotated[int | None, typer.Option("--best", metavar="N", help="The N best by the validation metric.", min=1)] = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Take the mean of weights that a run has kept: of its checkpoints, and of the snapshots of `training.average`.

    `eyeline average runs/first --best 3 --out runs/first-mean`
    """
    from pathlib import Path

    from eyeline.errors import ConfigError

    if out is None:
        raise ConfigError("where shall the mean be written?", "--out", "name a directory, or a file such as mean.safetensors")
    if last is not None and best is not None:
        raise ConfigError("the last ones or the best ones, not both", f"--last {last} --best {best}")
    writable_path("--out", out)
    prepare(device, threads, seed)
    from eyeline.runs import open_run
    from eyeline.training.means import average as write_mean
    from eyeline.training.means import chosen

    opened = open_run(run)
    weights = chosen(opened, last=last, best=best)
    write_mean(opened, weights, Path(out))
    told = ", ".join(f"{one.step:,}" + ("" if one.score is None else f" ({one.score:.4f})") for one in weights)
    by = f" ({opened.config.training.metric})" if any(one.score is not None for one in weights) else ""
    reporter(quiet, verbose).note(f"written: {out}, the mean of {len(weights)}: steps{by} {told}")
