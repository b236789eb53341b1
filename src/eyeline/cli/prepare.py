"""`eyeline prepare`."""

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
    reporter,
    watched,
    writable_path,
)

Paths = list[str] | None


def prepare(
    config: Annotated[str | None, typer.Argument(metavar="[CONFIG]", help="Settings in YAML; see `eyeline init`.")] = None,
    train_pairs: Annotated[Paths, typer.Option("--train", metavar="PATH…", help="Training pairs.")] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", help="The directory to make.")] = None,
    architecture: Annotated[str | None, typer.Option("--architecture", help=ARCHITECTURES)] = None,
    set_: Annotated[Paths, typer.Option("--set", metavar="KEY.SUB=VALUE", help="Override any setting; may be repeated.")] = None,
    duplicates: Annotated[
        str | None, typer.Option("--duplicates", help="Pairs that came before: drop (the default here) or keep.")
    ] = None,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Make tokenizers and shards of ids from training pairs of any number, to be trained on with `--train DIR`.

    `eyeline prepare --train big.tsv.gz --out data/big --set tokenizer.kind=bpe --set data.too_long=skip`
    """
    from eyeline.config import Config
    from eyeline.config_yaml import override, put, read_yaml
    from eyeline.errors import ConfigError
    from eyeline.training.storing import store

    if out is None:
        raise ConfigError("where shall it be written?", "--out", "name a directory, such as --out data/prepared")
    for option, paths in (("--train", train_pairs), ("--out", [out])):
        for path in paths or ():
            writable_path(option, path)
    values: dict[str, Any] = read_yaml(config) if config is not None else {}
    given = {
        "model.architecture": architecture,
        "data.train": train_pairs,
        "data.columns": columns,
        "data.on_bad_line": on_bad_line,
        "data.filter.duplicates": duplicates,
        "seed": seed,
    }
    for name, value in given.items():
        if value is not None:
            put(values, name.split("."), value)
    values = override(values, set_ or [])
    settings = Config.from_dict(values, config or "")
    if "duplicates" not in settings.data.filter.model_fields_set:
        put(values, ["data", "filter", "duplicates"], "drop")
        settings = Config.from_dict(values, config or "")
    if not settings.data.all_corpora:
        raise ConfigError("nothing to prepare", "--train", "name a file of pairs, such as --train train.tsv")
    report = reporter(quiet, verbose)
    made = store(settings, out, lambda pairs, unit, count: watched(pairs, report, unit, count))
    report.note(made.render())
    report.note(f"written: {out}")
