"""`eyeline quickstart`."""

from __future__ import annotations

from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, Seed, Threads, Verbose, prepare, reporter


def quickstart(
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="The run directory to make.")] = "runs/quickstart",
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Do the main job once: train on dates in twelve languages, predict dates never seen, measure, and draw the attention.

    Needs neither network nor files; takes minutes on two CPU cores.
    """
    name = prepare(device, threads)
    from eyeline.quickstart import run

    run(out, seed=seed, device=name, reporter=reporter(quiet, verbose))
