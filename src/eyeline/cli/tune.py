"""`eyeline tune`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyeline.cli.common import Device, Quiet, Seed, Threads, Verbose, prepare, reporter, writable_path


def tune(
    config: Annotated[
        str | None, typer.Argument(metavar="[CONFIG]", help="Settings in YAML with a section `tune` of ranges and choices.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", help="The study's directory, to make or go on with.")] = None,
    trials: Annotated[int | None, typer.Option("--trials", metavar="N", help="How many in the end; default: 30.", min=1)] = None,
    for_: Annotated[str | None, typer.Option("--for", help="No trial begins after so much time, such as 30m.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the study in DIR; start when there is none.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY.SUB=VALUE", help="Override any setting; may be repeated.")
    ] = None,
    pruning: Annotated[
        bool, typer.Option("--pruning/--no-pruning", help="End trials that are worse than the median at the same step.")
    ] = True,
    keep_runs: Annotated[bool, typer.Option("--keep-runs", help="Keep the runs of all trials, not the best alone.")] = False,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Search for the settings with the best validation, by training many small runs. Needs the extra `tune`.

    `eyeline tune search.yaml --out runs/search --trials 40`
    """
    import sys
    from pathlib import Path

    from eyeline.config_tuning import seconds_of, space_of
    from eyeline.config_yaml import override, read_yaml
    from eyeline.errors import ConfigError, require

    if out is None:
        raise ConfigError("where shall the study be written?", "--out", "name a directory, such as --out runs/search")
    require("optuna", "tune")
    writable_path("--out", out)
    stored = Path(out, "study.yaml")
    base = config if config is not None else str(stored) if resume and stored.exists() else None
    if base is None:
        raise ConfigError(
            "nothing to tune", "CONFIG", "name a config with a section `tune`; `eyeline init` writes the rest of it"
        )
    values: dict[str, Any] = override(read_yaml(base), set_ or [])
    if seed is not None:
        values["seed"] = seed
    rest, space = space_of(values, base)
    seconds = None if for_ is None else seconds_of(for_)
    name = prepare(device, threads)
    from eyeline.memory import keep_freed_memory
    from eyeline.tuning import BEST
    from eyeline.tuning import tune as search

    keep_freed_memory()
    result = search(
        rest,
        space,
        out,
        trials=trials,
        seconds=seconds,
        resume=resume,
        prune=pruning,
        keep_runs=keep_runs,
        device=name,
        reporter=reporter(quiet, verbose),
    )
    sys.stdout.write(f"{result.table()}\n")
    reporter(quiet, verbose).note(f"written: {Path(out, BEST)}; `eyeline train {Path(out, BEST)} --out RUN` trains it anew")
