"""`eyeline compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyeline.cli.common import Device, Quiet, Seed, TestLengths, Verbose, prepare, reporter, test_lengths_of, writable_path

if TYPE_CHECKING:
    from eyeline.config_compare import Comparison

GENERATED = ("reversal", "numerals")
Paths = list[str] | None


def compare(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="Settings in YAML; or reversal or numerals, which make their own pairs.")
    ],
    train: Annotated[Paths, typer.Option("--train", metavar="PATH…", help="Training pairs.")] = None,
    valid: Annotated[Paths, typer.Option("--valid", metavar="PATH…", help="Validation pairs, which choose the weights.")] = None,
    test: Annotated[Paths, typer.Option("--test", metavar="PATH…", help="Test pairs, which rungs are compared by.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Where to work; given again, it goes on where it was.")
    ] = None,
    ladder: Annotated[bool, typer.Option("--ladder", help="Every rung that fits the task, beside those of CONFIG.")] = False,
    train_max_length: Annotated[
        int | None,
        typer.Option("--train-max-length", metavar="N", help="Train on sources of at most N tokens; the test keeps all.", min=1),
    ] = None,
    test_lengths: TestLengths = None,
    steps: Annotated[int | None, typer.Option("--steps", help="The budget, in updates.", min=1)] = None,
    target_tokens: Annotated[int | None, typer.Option("--target-tokens", help="The budget, in target tokens.", min=1)] = None,
    for_: Annotated[str | None, typer.Option("--for", help="The budget of each rung and seed, in time, such as 10m.")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", metavar="A,B,…", help="Train each rung once with each.")] = None,
    set_: Annotated[Paths, typer.Option("--set", metavar="KEY.SUB=VALUE", help="Override any setting; may be repeated.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Runs side by side; default: cores / --threads, on a GPU 1.", min=1)
    ] = None,
    threads: Annotated[int, typer.Option("--threads", help="CPU threads of each run.", min=1)] = 1,
    language: Annotated[str, typer.Option("--language", help="Of the report's words: en or ko.")] = "en",
    seed: Seed = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train rungs on the same pairs under one budget and report, with intervals, which to take.

    Leaves report.html and report.json in DIR. Stopped and started again, it goes on where it was. `--seed` decides the resamples
    behind the intervals and, without `--seeds`, is the one seed that is trained with.
    """
    import os

    from eyeline.errors import ConfigError, nearest

    if out is None:
        raise ConfigError("where shall it work?", "--out", "name a directory, such as --out runs/compared")
    writable_path("--out", out)
    if language not in ("en", "ko"):
        raise ConfigError("not a language of reports", f"--language {language}", nearest(language, ("en", "ko")))
    bounds = {"steps": steps, "target_tokens": target_tokens, "for": for_}
    given = {name: value for name, value in bounds.items() if value is not None}
    chosen = {"train_max_length": train_max_length, "test_lengths": test_lengths, "seeds": _seeds(seeds, seed)}
    changes = {"budget": given or None, **chosen}
    changes = {name: value for name, value in changes.items() if value is not None}
    files = {name: paths for name, paths in (("train", train), ("valid", valid), ("test", test)) if paths}
    for option, paths in files.items():
        for path in paths:
            writable_path(f"--{option}", path)
    comparison = _comparison(config, Path(out), files, changes, set_ or [], ladder)
    name = prepare(device, threads)
    from eyeline.compare import Machine, summary
    from eyeline.compare import compare as run

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    machine = Machine(name, threads, jobs or (max(1, cores // threads) if name == "cpu" else 1))
    found = run(comparison, out, machine, language=language, seed=1 if seed is None else seed, reporter=reporter(quiet, verbose))
    typer.echo(summary(found))


def _seeds(seeds: str | None, seed: int | None) -> list[int] | None:
    from eyeline.errors import ConfigError

    if seeds is None:
        return None if seed is None else [seed]
    parts = [part.strip() for part in seeds.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise ConfigError("seeds are whole numbers", f"--seeds {seeds}", "such as --seeds 1,2,3")
    return [int(part) for part in parts]


def _comparison(
    config: str, out: Path, files: dict[str, list[str]], changes: dict[str, Any], settings: list[str], ladder: bool
) -> Comparison:
    """The settings of a file, or of a generated task, with what the command line says in their place."""
    from eyeline.config_compare import Comparison
    from eyeline.config_yaml import override, read_yaml
    from eyeline.errors import ConfigError, nearest

    if "test_lengths" in changes:
        changes["test_lengths"] = test_lengths_of(changes["test_lengths"])
    if config in GENERATED and not Path(config).is_file():
        from eyeline.compare.tasks import task_settings

        values = task_settings(config, out, changes.get("train_max_length"), changes.get("test_lengths"))
        where = config
    elif not config.lower().endswith((".yaml", ".yml")) and not Path(config).exists():
        raise ConfigError("no such config file, and no task that makes its own pairs", config, nearest(config, GENERATED))
    else:
        values, where = read_yaml(config), config
    Comparison.from_dict(values, where)  # a fault of the file's own is told with its name
    values = override(values, settings)
    comparison = Comparison.from_dict({**values, **changes, "data": {**(values.get("data") or {}), **files}})
    if not ladder:
        return comparison
    from eyeline.compare.preparing import points

    return comparison.with_ladder(points(comparison))
