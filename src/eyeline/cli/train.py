"""`eyeline train`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyeline.cli.common import (
    ARCHITECTURES,
    ColumnsOption,
    Device,
    OnBadLine,
    Quiet,
    Seed,
    Threads,
    Verbose,
    prepare,
    reporter,
    writable_path,
)

Paths = list[str] | None


def train(
    config: Annotated[str | None, typer.Argument(metavar="[CONFIG]", help="Settings in YAML; see `eyeline init`.")] = None,
    architecture: Annotated[str | None, typer.Option("--architecture", help=ARCHITECTURES)] = None,
    train_pairs: Annotated[Paths, typer.Option("--train", metavar="PATH…", help="Training pairs.")] = None,
    valid_pairs: Annotated[Paths, typer.Option("--valid", metavar="PATH…", help="Validation pairs.")] = None,
    test_pairs: Annotated[Paths, typer.Option("--test", metavar="PATH…", help="Test pairs, evaluated at the end.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="RUN", help="The run directory to make or go on with.")] = None,
    set_: Annotated[Paths, typer.Option("--set", metavar="KEY.SUB=VALUE", help="Override any setting; may be repeated.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Total number of updates.", min=1)] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Passes over the data.", min=1)] = None,
    target_tokens: Annotated[int | None, typer.Option("--target-tokens", help="Target tokens to see.", min=1)] = None,
    for_: Annotated[str | None, typer.Option("--for", help="Wall-clock time, such as 45m.")] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="RUN", help="A run whose weights, and without CONFIG settings, this one starts from."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from RUN's newest checkpoint; start when there is none.")
    ] = False,
    more_steps: Annotated[int | None, typer.Option("--more-steps", help="With --resume: so many updates more.", min=1)] = None,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a model on pairs of source and target.

    `eyeline train --architecture bahdanau --train train.tsv --valid dev.tsv --out runs/first --epochs 20`
    """
    from pathlib import Path

    from eyeline.config import Config
    from eyeline.config_yaml import override, put, read_yaml
    from eyeline.errors import ConfigError
    from eyeline.memory import keep_freed_memory

    if out is None:
        raise ConfigError("where shall the run be written?", "--out", "name a directory, such as --out runs/first")
    stored = Path(out) / "config.yaml"
    named = {"--train": train_pairs, "--valid": valid_pairs, "--test": test_pairs, "--out": [out], "--from": from_ and [from_]}
    for option, paths in named.items():
        for path in paths or ():
            writable_path(option, path)
    base = config if config is not None else str(stored) if resume and stored.exists() else None
    values: dict[str, Any] = read_yaml(base) if base is not None else {}
    if base is None and from_ is not None:
        values = _to_start_from(from_)
    given = {
        "model.architecture": architecture,
        "data.train": train_pairs,
        "data.valid": valid_pairs,
        "data.test": test_pairs,
        "data.columns": columns,
        "data.on_bad_line": on_bad_line,
        "seed": seed,
        "training.from": from_,
    }
    bounds = {"steps": steps, "epochs": epochs, "target_tokens": target_tokens, "for": for_}
    if any(value is not None for value in bounds.values()):  # a bound on the command line replaces the one in the file
        given |= {f"training.{name}": value for name, value in bounds.items()}
    for name, value in given.items():
        if value is not None or name.removeprefix("training.") in bounds:
            put(values, name.split("."), value)
    settings = Config.from_dict(override(values, set_ or []), base or "")
    if not settings.data.all_corpora:
        raise ConfigError("nothing to train on", "--train", "name a file of pairs, such as --train train.tsv")
    name = prepare(device, threads)
    keep_freed_memory()
    from eyeline.training import train as run_training

    run_training(settings, out, resume=resume, more_steps=more_steps, device=name, reporter=reporter(quiet, verbose))


def _to_start_from(run: str) -> dict[str, Any]:
    """The settings of a run, for another that starts from its weights: without its pairs, and without what it began from."""
    from eyeline.runs import open_run

    values = open_run(run).config.to_dict()
    own = {"data": ("train", "valid", "test", "corpora"), "training": ("source_vectors", "target_vectors", "freeze")}
    for section, names in own.items():
        values[section] = {name: value for name, value in values[section].items() if name not in names}
    values["training"] = {name: value for name, value in values["training"].items() if not name.startswith("from")}
    return values
