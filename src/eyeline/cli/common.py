"""What commands share: option types, the device, reading input and writing output. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

if TYPE_CHECKING:
    from eyeline.predictor import Predictor
    from eyeline.training.reporting import Reporter

Seed = Annotated[int | None, typer.Option("--seed", help="Random seed; default: the run's or the config's.", min=0)]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
Threads = Annotated[int | None, typer.Option("--threads", help="CPU threads; default: all cores.", min=1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More, and tracebacks of errors.")]
RunPath = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, as `eyeline train` makes.")]
Pairs = Annotated[
    list[str], typer.Argument(metavar="PAIRS", help="FILE.tsv, FILE.jsonl, SOURCE TARGET or a prefix such as test.{de,en}.")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", help="What a TSV's columns hold: source,target,features,alignment or - to leave one out."),
]
OnBadLine = Annotated[str | None, typer.Option("--on-bad-line", help="error stops at a line that is no pair, skip counts it.")]


def prepare(device: str, threads: int | None, seed: int | None = None) -> str:
    """Sets the number of threads and the seed; returns the device's name.

    Raises:
        ConfigError: the device is unknown or not there.
    """
    import torch

    from eyeline.errors import ConfigError, nearest

    if threads is not None:
        torch.set_num_threads(threads)
    if seed is not None:
        torch.manual_seed(seed)
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdecimal()):
        raise ConfigError("not a device", f"--device {device}", nearest(kind, ("auto", "cpu", "cuda", "mps")))
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ConfigError(f"there are {torch.cuda.device_count()} CUDA devices here", f"--device {device}", "use --device cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("there is no MPS device here", f"--device {device}", "use --device cpu")
    return device


def reporter(quiet: bool, verbose: bool) -> Reporter:
    """What writes to standard error."""
    from eyeline.training.reporting import Reporter

    return Reporter(-1 if quiet else 1 if verbose else 0)


def open_predictor(path: str, device: str, threads: int | None, seed: int | None = None) -> Predictor:
    """The run at `path`, ready to predict."""
    name = prepare(device, threads, seed)
    from eyeline.predictor import load

    return load(path, name)


def argument_text(text: str) -> str:
    """An argument that is text and not a path, decoded as UTF-8 whatever the locale."""
    return os.fsencode(text).decode("utf-8", "replace")


@contextmanager
def output(path: str | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that is whole or absent."""
    if path is None or path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from eyeline.files import beside

    with beside(Path(path)) as temporary, temporary.open("wb") as stream:
        yield stream


def input_lines(path: str | None, on_bad_line: str, skipped: list[int]) -> Iterator[str]:
    """The lines of a file, or of standard input when `path` is None or `-`.

    A line that is not UTF-8 or holds a NUL stops with its number, or under `skip` stands as an empty line, so that one line in
    stays one line out; its number is added to `skipped`.
    """
    from eyeline.text.lines import BadLine, read_lines, require_line

    name = "standard input" if path is None or path == "-" else path
    stream = sys.stdin.buffer if path is None or path == "-" else path
    for line in read_lines(stream, name):
        if isinstance(line, BadLine) and on_bad_line == "skip":
            skipped.append(line.number)
            yield ""
        else:
            yield require_line(line, name, "--on-bad-line skip answers it with an empty line").text


def write_json_lines(stream: BinaryIO, values: Iterable[object]) -> None:
    """One JSON object a line, readable characters kept."""
    import json

    for value in values:
        stream.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
