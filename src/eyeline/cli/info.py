"""`eyeline info`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, RunPath, Seed, Threads, Verbose


def info(
    run: RunPath,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say what a run is: architecture, sizes, vocabularies, settings, how far it was trained and how well it did."""
    from eyeline.config_yaml import dump_yaml
    from eyeline.evaluation import describe

    facts = describe(run)
    if json_:
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    settings = dump_yaml(facts.pop("settings"))
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        shown = value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
        typer.echo(f"{name.replace('_', ' '):{width}}  {shown}")
    typer.echo(f"settings\n  {settings.rstrip().replace(chr(10), chr(10) + '  ')}")
