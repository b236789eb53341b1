"""`eyeline generate`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, Seed, Threads, Verbose, output, reporter, watched

_NAMES = {".tsv": "columns between tabs", ".jsonl": "JSON lines"}


def generate(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="dates, numerals, reversal, sorting, convex-hull, delaunay, tsp or tally."),
    ],
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", help="How many.", min=1)] = 1000,
    length: Annotated[
        str | None,
        typer.Option("--length", metavar="A-B", help="Symbols, numbers or points of a source: 10, or a range such as 5-50."),
    ] = None,
    symbols: Annotated[
        int | None,
        typer.Option("--symbols", metavar="N", help="reversal, sorting, tally: over the symbols 0 to N - 1.", min=1),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write, .gz allowed; default: standard output."),
    ] = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Make pairs of a task from its rules. The same arguments and seed (default: 1) give the same file.

    Text comes as lines `source TAB target TAB alignment`, numbers and points as JSON lines
    `{"source": [[x, y], …], "target": [i, j, …]}`, positions counted from zero.
    """
    from eyeline.data.generated.tasks import JSONL, TSV, generated
    from eyeline.errors import ConfigError

    made, format_ = generated(task, pairs, 1 if seed is None else seed, length=_length(length), symbols=symbols)
    bare = (out or "").lower().removesuffix(".gz")
    other = TSV if format_ is JSONL else JSONL
    if bare.endswith(other.suffix):
        hint = f"end its name in {format_.suffix}, since the name says how a file is read"
        raise ConfigError(f"{task} is written as {_NAMES[format_.suffix]}", f"--output {out}", hint)
    report = reporter(quiet, verbose)
    coming = watched(iter(made), report, "pairs", pairs)
    if out is None or out == "-":
        with output(out) as stream:
            stream.writelines(format_.lines(coming))
        return
    report.note(f"written: {out}, {format_.write(coming, out):,} pairs")


def _length(text: str | None) -> int | tuple[int, int] | None:
    from eyeline.errors import ConfigError

    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", text)
    if match is None:
        raise ConfigError("not a length", f"--length {text}", "write 10, or a range such as 5-50")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))
