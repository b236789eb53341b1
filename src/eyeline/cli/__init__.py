"""The command line: parse, call, print. One file a command; what a command does is elsewhere, and imported when it runs."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from eyeline import __version__
from eyeline.cli.align import align
from eyeline.cli.attend import attend
from eyeline.cli.evaluate import evaluate
from eyeline.cli.info import info
from eyeline.cli.init import init
from eyeline.cli.predict import predict
from eyeline.cli.quickstart import quickstart
from eyeline.cli.score import score
from eyeline.cli.train import train
from eyeline.errors import Interrupted, UserError

COMMANDS = (quickstart, init, train, predict, score, evaluate, align, attend, info)
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
            option, filled = (argument, False) if argument in MANY else (None, False)
        elif option is not None and filled:
            result.append(option)
        result.append(argument)
        filled = option is not None and not argument.startswith("-")
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):  # UTF-8 whatever the locale, and a message never kills a run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(_status(given))


def _status(arguments: list[str]) -> int:
    verbose = any(argument in ("-v", "--verbose") for argument in arguments)
    try:
        result = app(spread(arguments), prog_name="eyeline", standalone_mode=False)
    except UserError as error:
        return _say(f"error: {error}", 2, verbose)
    except Interrupted as error:
        return _say(f"interrupted: {error}", 130, verbose)
    except KeyboardInterrupt:
        return _say("interrupted", 130, verbose)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has had enough; the last flush must not fail
        return 0
    except Exception as error:
        if hasattr(error, "format_message"):  # what the command line parser found wrong
            message = " ".join(str(error.format_message()).split())
            return _say(f"error: {message}; see `eyeline --help`", 2, verbose) if message else 2
        traceback.print_exc()
        return _say(f"defect: {type(error).__name__}: {error}; this is ours to mend, please report it", 1, False)
    return result if isinstance(result, int) else 0


def _say(message: str, status: int, verbose: bool) -> int:
    if verbose:
        traceback.print_exc()
    sys.stderr.write(message + "\n")
    return status
