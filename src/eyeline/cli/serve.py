"""`eyeline serve`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyeline.cli.common import Device, Quiet, Seed, Threads, Verbose, prepare, reporter
from eyeline.cli.engines import Engine, check_engine_name, chosen_engine, engaged
from eyeline.cli.searching import Precision

if TYPE_CHECKING:
    from eyeline.predictor import Predictor
    from eyeline.serving.front import Journal


def serve(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Run directories, or NAME=RUN; the first answers where a request names none."),
    ],
    host: Annotated[str, typer.Option("--host", help="Where to listen; 0.0.0.0 is every address of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0: any free one.", min=0, max=65535)] = 5000,
    split: Annotated[bool, typer.Option("--split/--no-split", help="Predict long texts sentence by sentence.")] = False,
    api_keys: Annotated[
        str | None, typer.Option("--api-keys", metavar="FILE", help="Keys, one a line: without one nothing is predicted.")
    ] = None,
    rate: Annotated[int, typer.Option("--rate", metavar="N", help="Requests a minute and client; 0: any number.", min=0)] = 0,
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Seconds that a request may take.", min=0.1, max=86400)
    ] = 60.0,
    queue: Annotated[int, typer.Option("--queue", help="Inputs that may wait for a model.", min=1)] = 2000,
    max_body: Annotated[int, typer.Option("--max-body", help="Bytes of a request.", min=1)] = 1 << 20,
    max_items: Annotated[int, typer.Option("--max-items", help="Inputs of a request.", min=1)] = 1000,
    max_characters: Annotated[int, typer.Option("--max-characters", help="Characters of an input.", min=1)] = 5000,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Most that min_length and max_length may be.", min=1)] = 5000,
    max_beam: Annotated[int, typer.Option("--max-beam", help="Most that beam_size and mbr may be.", min=1)] = 32,
    max_n_best: Annotated[int, typer.Option("--max-n-best", help="Most that n_best may be.", min=1)] = 32,
    precision: Precision = "fp32",
    engine: Engine = "torch",
    log_text: Annotated[bool, typer.Option("--log-text", help="Write down what users typed, too.")] = False,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve trained runs over HTTP: JSON, LibreTranslate's and OpenNMT's shapes, and a page.

    Standard error has a line of JSON for each request (with -q for failures alone), without what users typed. SIGTERM or Ctrl-C
    lets nothing new in, answers what was begun, and ends; a second one ends at once.
    """
    from eyeline.errors import require

    os.environ.setdefault(
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32"
    )  # read with torch; else it keeps code for 1,024 shapes of batches
    require("fastapi", "serve")
    require("uvicorn", "serve")
    require("prometheus_client", "serve")
    require("python_multipart", "serve")
    paths = named(runs)
    check_engine_name(engine, None, None, device, False)
    from eyeline.memory import keep_freed_memory
    from eyeline.serving.limits import Limits
    from eyeline.serving.running import address, is_of_this_machine, listen
    from eyeline.serving.running import serve as serve_app

    limits = Limits(
        body=max_body,
        items=max_items,
        characters=max_characters,
        tokens=max_tokens,
        beam=max_beam,
        n_best=max_n_best,
        queue=queue,
        seconds=time_limit,
        rate=rate,
    )
    with listen(host, port) as listening:  # before the models are read: a taken port is known at once
        report = reporter(quiet, verbose)
        if api_keys is None and not is_of_this_machine(listening):
            report.warn(f"{host}: whoever can reach this machine can ask; --api-keys FILE lets only those in who have a key")
        report.note(f"reading {', '.join(paths)}")
        name = prepare(device, threads, seed)
        keep_freed_memory()
        predictors = {run: _predictor(path, name, precision, engine, threads) for run, path in paths.items()}
        from eyeline.serving.access import Access, read_keys
        from eyeline.serving.app import create_app
        from eyeline.serving.models import Models

        access = Access(read_keys(api_keys) if api_keys is not None else (), rate)
        models = Models(predictors, limits)
        journal = _journal(quiet)
        app = create_app(models, limits, access=access, split=split, seed=seed, journal=journal, log_text=log_text)
        where = address(listening)
        serve_app(app, listening, time_limit, lambda: report.note(f"serving {', '.join(paths)} on {where} (Ctrl-C ends)"))


def named(runs: Sequence[str]) -> dict[str, str]:
    """Name -> run directory, of `NAME=RUN` or of directories that give their own names. Raises ConfigError for a name twice."""
    from eyeline.errors import ConfigError

    paths: dict[str, str] = {}
    for run in runs:
        name, equals, path = run.partition("=")
        if not equals or Path(run).exists():
            name, path = Path(run).resolve().name or run, run
        if name in paths:
            raise ConfigError(f"two runs are named {name}", run, "name them: NAME=RUN")
        if not name:
            raise ConfigError("a run has a name", run, "NAME=RUN")
        paths[name] = path
    return paths


def _predictor(path: str, device: str, precision: str, engine: str, threads: int | None) -> Predictor:
    """Where an engine answers, requests that it cannot be asked are our own search's."""
    from eyeline.predictor import SearchOptions, load

    if chosen_engine(engine, path, SearchOptions(attention=False), elsewhere=device == "mps") == "torch":
        return load(path, device, precision=precision)
    return engaged(load(path, device), threads, precision, otherwise=True)


def _journal(quiet: bool) -> Journal:
    """Writes a line of JSON a request to standard error."""
    import json

    def write(line: dict[str, Any]) -> None:
        if not quiet or line["status"] >= 500:
            sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
            sys.stderr.flush()

    return write
