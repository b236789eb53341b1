"""What commands share: option types, the device, reading input and writing output. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TypeVar

import typer

if TYPE_CHECKING:
    from eyeline.predictor import Predictor
    from eyeline.training.reporting import Reporter

ARCHITECTURES = (
    "seq2seq, bahdanau, luong, pointer-network, pointer-generator, transformer, pointer-generator-transformer or state-space."
)
PLAIN_EVERY, LIVE_EVERY = 10.0, 0.1  # seconds between reports of progress
Seed = Annotated[
    int | None, typer.Option("--seed", help="Random seed; default: the run's or the config's.", min=0, max=2**63 - 1)
]
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

BatchTokens = Annotated[
    int | None, typer.Option("--batch-tokens", help="Padded tokens at a time; in a search, once for every hypothesis.", min=1)
]
CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty", help="Rank by what of the source was looked at, too: Wu et al.'s beta, such as 0.2.", min=0
    ),
]
NoRepeatNgram = Annotated[
    int | None,
    typer.Option("--no-repeat-ngram", metavar="N", help="N tokens in a row come at most once in an output; 0: they may.", min=0),
]
TestLengths = Annotated[
    str | None,
    typer.Option("--test-lengths", metavar="A,B,…", help="Show quality up to each of these lengths, such as 20,40,…,120."),
]
T = TypeVar("T")


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
    kind, colon, number = device.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (colon and not number.isdecimal()):
        raise ConfigError("not a device", f"--device {device}", nearest(kind, ("auto", "cpu", "cuda", "mps")))
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ConfigError(f"there are {torch.cuda.device_count()} CUDA devices here", f"--device {device}", "use --device cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("there is no MPS device here", f"--device {device}", "use --device cpu")
    return device


def reporter(quiet: bool, verbose: bool) -> Reporter:
    """What writes to standard error; of several processes that `torchrun` started, the first alone."""
    from eyeline.training.reporting import Reporter, silent

    return silent() if int(os.environ.get("RANK", "0")) else Reporter(-1 if quiet else 1 if verbose else 0)


def open_predictor(path: str, device: str, threads: int | None, seed: int | None = None) -> Predictor:
    """The run at `path`, ready to predict."""
    name = prepare(device, threads, seed)
    from eyeline.predictor import load

    return load(path, name)


def argument_text(text: str) -> str:
    """An argument that is text and not a path, decoded as UTF-8 whatever the locale."""
    return os.fsencode(text).decode("utf-8", "replace")


def writable_path(option: str, path: str) -> str:
    """The path itself, when a settings file can hold it: under a locale that is not UTF-8, Python reads some as raw bytes.

    Raises:
        ConfigError: it holds such bytes.
    """
    from eyeline.errors import ConfigError

    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        hint = "set PYTHONUTF8=1, or a UTF-8 locale such as LC_ALL=C.UTF-8"
        raise ConfigError("this locale cannot read the path", f"{option} {path}", hint) from None
    return path


def test_lengths_of(text: str | None) -> list[int] | None:
    """The bounds that --test-lengths names.

    Raises:
        ConfigError: they are no rising lengths.
    """
    from eyeline.config_compare import lengths
    from eyeline.errors import ConfigError

    try:
        return None if text is None else lengths(text)
    except ValueError as error:
        raise ConfigError(str(error), f"--test-lengths {text}") from None


def watched(items: Iterator[T], report: Reporter, unit: str, total: int | None = None, before: int = 0) -> Iterator[T]:
    """The items as they come, with how many, how fast and how long still on standard error: a live line on a terminal, plain
    lines elsewhere. Of `total` an earlier process did the first `before`."""
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from eyeline.training.reporting import duration

    live = report.verbosity >= 0 and report.console.is_terminal and not (sys.stdout.isatty() or sys.stdin.isatty())
    rate = TextColumn("{task.fields[rate]:,.1f} " + unit + "/s  left")
    columns = (BarColumn(20), MofNCompleteColumn(), rate, TimeRemainingColumn())
    began = told = time.monotonic()
    with Progress(*columns, console=report.console, transient=True, disable=not live) as progress:
        task = progress.add_task("", total=total, rate=0.0)
        for number, item in enumerate(items, before + 1):
            yield item
            now = time.monotonic()
            if now - told < (LIVE_EVERY if live else PLAIN_EVERY):
                continue
            told, pace = now, (number - before) / max(now - began, 1e-9)
            progress.update(task, completed=number, rate=pace)
            if not live:
                left = f"  left {duration((total - number) / pace)}" if total else ""
                report.note(f"{number:,} {unit}  {pace:,.1f} {unit}/s{left}")


def count_lines(path: str | None) -> int | None:
    """How many lines a file has, when that is quickly known."""
    if path is None or path == "-" or path.lower().endswith(".gz") or not os.path.isfile(path):
        return None
    with open(path, "rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b"")) or None


def silence() -> None:
    """Lets what is left in the buffer of standard output go nowhere: written where it was bound, it would fail once more."""
    with suppress(OSError):  # in a notebook it is no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def output(path: str | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that is whole or absent."""
    if path is None or path == "-":
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            from eyeline.errors import UserError

            silence()
            raise UserError(f"cannot write: {error.strerror}", "standard output") from error
        return
    from eyeline.files import beside

    with beside(Path(path)) as temporary, temporary.open("wb") as stream:
        yield stream


def input_name(path: str | None) -> str:
    """What messages call the input."""
    return "standard input" if path is None or path == "-" else path


def input_lines(path: str | None, skipped: Callable[[int], None] | None = None) -> Iterator[str]:
    """The lines of a file, or of standard input when `path` is None or `-`.

    A line that is not UTF-8 or holds a NUL stops with its number; or `skipped` is told that, and it stands as an empty line, so
    that one line in stays one line out.
    """
    from eyeline.text.lines import BadLine, read_lines, require_line

    name = input_name(path)
    stream = sys.stdin.buffer if path is None or path == "-" else path
    for line in read_lines(stream, name):
        if isinstance(line, BadLine) and skipped is not None:
            skipped(line.number)
            yield ""
        else:
            yield require_line(line, name, "--on-bad-line skip answers it with an empty line").text


def write_json_lines(stream: BinaryIO, values: Iterable[object]) -> None:
    """One JSON object a line, readable characters kept."""
    import json

    for value in values:
        stream.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
