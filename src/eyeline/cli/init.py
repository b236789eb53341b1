"""`eyeline init`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from eyeline.cli.common import ARCHITECTURES, Device, Quiet, Seed, Threads, Verbose, reporter


def init(
    architecture: Annotated[str, typer.Option("--architecture", help=ARCHITECTURES)] = "bahdanau",
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Where to write; default: standard output.")] = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a complete, commented config that runs: on a sample that ships with eyeline, until you name your own pairs."""
    from pathlib import Path

    from eyeline.config_yaml import commented_yaml
    from eyeline.errors import ConfigError
    from eyeline.files import write_text
    from eyeline.starter import starting_config

    text = commented_yaml(starting_config(architecture, seed))
    if out is None or out == "-":
        sys.stdout.write(text)
        return
    if Path(out).exists():
        raise ConfigError("this file exists already", f"--out {out}", "name another, or remove it")
    write_text(out, text)
    reporter(quiet, verbose).note(f"written: {out}; `eyeline train {out} --out runs/first` trains it")
