"""The command line: parse, call, print. One file a command; what a command does is elsewhere, and imported when it runs."""

from __future__ import annotations

import codecs
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from eyeline import __version__
from eyeline.cli.align import align
from eyeline.cli.attend import attend
from eyeline.cli.average import average
from eyeline.cli.common import silence
from eyeline.cli.compare import compare
from eyeline.cli.evaluate import evaluate
from eyeline.cli.export import export
from eyeline.cli.generate import generate
from eyeline.cli.info import info
from eyeline.cli.init import init
from eyeline.cli.lab import lab
from eyeline.cli.predict import predict
from eyeline.cli.prepare import prepare
from eyeline.cli.quickstart import quickstart
from eyeline.cli.score import score
from eyeline.cli.serve import serve
from eyeline.cli.shortlist import shortlist
from eyeline.cli.train import train
from eyeline.cli.tune import tune
from eyeline.errors import Interrupted, UserError

COMMANDS = (
    quickstart,
    init,
    generate,
    prepare,
    train,
    predict,
    score,
    evaluate,
    align,
    attend,
    serve,
    compare,
    lab,
    average,
    tune,
    shortlist,
    export,
    info,
)
MANY = ("--train", "--valid", "--test")  # options that take every path up to the next option

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for command in COMMANDS:
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"eyeline {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Train, run, compare and understand sequence-to-sequence models.

    Exit status: 0 done, 2 something you can mend, 1 a defect of ours, 130 interrupted with the state saved.
    """


def spread(arguments: Sequence[str]) -> list[str]:
    """`--train A B --out R` as `--train A --train B --out R`: a shell makes two words of `train.{de,en}`."""
    result: list[str] = []
    option: str | None = None  # the one that the next bare word belongs to
    filled = False
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            name, equals, _ = argument.partition("=")
            option, filled = name if name in MANY else None, bool(equals)
        elif option is not None and filled:
            result.append(option)
        result.append(argument)
        filled = filled or not argument.startswith("-") or argument == "-"
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    codecs.register_error("eyeline", _as_it_came)
    for stream in (sys.stdout, sys.stderr):  # UTF-8 whatever the locale, and a message never kills a run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="eyeline")
    sys.exit(_status(given))


def _as_it_came(error: UnicodeError) -> tuple[str | bytes, int]:
    """Bytes that the locale could not read, such as those of a path, are written as they came; nothing else fails either."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


def _status(arguments: list[str]) -> int:
    verbose = any(argument in ("-v", "--verbose") for argument in arguments)
    try:
        result = app(spread(arguments), prog_name="eyeline", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        return _say(f"error: {error}", 2, verbose)
    except Interrupted as error:
        return _say(f"interrupted: {error}", 130, verbose)
    except KeyboardInterrupt:
        return _say("interrupted", 130, verbose)
    except BrokenPipeError:
        return _closed()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # how the libraries that write help answer to it
            return _closed()
        raise
    except Exception as error:
        return _other(error, verbose)
    if result == 130:  # what the parser makes of the signal
        return _say("interrupted", 130, False)
    return result if isinstance(result, int) else 0


def _closed() -> int:
    """The reader of our output has had enough, as `head` has: that is no fault, and the last flush must not fail."""
    silence()
    return 0


def _other(error: Exception, verbose: bool) -> int:
    """What is not ours by name: the parser's complaints, the system's refusals, and defects."""
    if hasattr(error, "format_message"):
        message = " ".join(str(error.format_message()).split()).rstrip(".")
        command = getattr(getattr(error, "ctx", None), "command_path", "eyeline")
        return _say(f"error: {message}; see `{command} --help`", 2, verbose) if message else 2
    if type(error).__name__ == "Abort":  # the parser's name for an interruption
        return _say("interrupted", 130, verbose)
    if isinstance(error, OSError):  # with no name to it, it was standard output: the disk behind it is full
        place = f" ({os.fsdecode(error.filename)})" if error.filename is not None else ""
        silence()
        return _say(f"error: {(error.strerror or str(error)).lower()}{place}", 2, verbose)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error):
        return _say("error: the memory does not suffice; lower --batch-tokens or training.batch_tokens", 2, verbose)
    return _say(f"defect: {type(error).__name__}: {error}; this is ours to mend, please report it", 1, True)


def _say(message: str, status: int, verbose: bool) -> int:
    if not _speaks():
        return status
    if verbose:
        traceback.print_exc()
    sys.stderr.write(message + "\n")
    return status


def _speaks() -> bool:
    """Of several processes that `torchrun` started, the first that fails speaks for all."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return True
    from eyeline.training.distributed import speaks

    return speaks()
