"""`eyeline export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eyeline.cli.common import Device, Quiet, RunPath, Seed, Threads, Verbose, prepare, reporter

FORMS = ("ctranslate2",)


def export(
    run: RunPath,
    to: Annotated[str, typer.Option("--to", help="ctranslate2.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where to write.")],
    quantization: Annotated[
        str, typer.Option("--quantization", help="float32, int8, int16 or float16: how weights are stored.")
    ] = "float32",
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a run as other tools read it.

    ctranslate2: a `transformer` with full attention and sinusoidal, learned or no positions, as a directory for
    `ctranslate2.Translator`, with the run's tokenizers beside it.
    """
    from eyeline.errors import ConfigError, UserError, nearest

    if to not in FORMS:
        raise ConfigError("not a valid value", f"--to {to}", nearest(to, FORMS))
    if Path(out).exists():
        raise UserError("it is there already", out, "name another --out, or remove it")
    from eyeline.exchange.ctranslate2 import QUANTIZATIONS
    from eyeline.exchange.ctranslate2_engine import export_run
    from eyeline.runs import open_run

    if quantization not in QUANTIZATIONS:
        raise ConfigError("not a valid value", f"--quantization {quantization}", nearest(quantization, QUANTIZATIONS))
    prepare(device, threads, seed)
    export_run(open_run(run), Path(out), quantization)
    reporter(quiet, verbose).note(f"written: {out}")
