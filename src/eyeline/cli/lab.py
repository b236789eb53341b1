"""`eyeline lab`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eyeline.cli.common import (
    ColumnsOption,
    Device,
    OnBadLine,
    Quiet,
    Seed,
    Threads,
    Verbose,
    open_predictor,
    prepare,
    reporter,
    watched,
)

if TYPE_CHECKING:
    from eyeline.lab import Experiment
    from eyeline.predictor import Predictor
    from eyeline.text.records import Pair
    from eyeline.training.reporting import Reporter

NAMES = "saturation, gradients, dilution, order, cost, capacity, faithfulness or alignment."


def lab(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help=NAMES)],
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="Do it on this run: saturation, faithfulness, alignment. Without: on small models."),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", help="Where to write; default: lab/EXPERIMENT.")] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs", metavar="PAIRS", help="With RUN: the pairs to do it on; default: the run's data.test or data.valid."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the experiment: --set lengths=50,100.")
    ] = None,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Put a claim about these architectures to the test: a figure, a table, and result.json.

    Each takes less than five minutes on two cores at its default size. What was claimed, what was measured and what came of it is
    told in docs/lab.
    """
    from eyeline.lab import Bench, conduct
    from eyeline.lab import experiment as named

    chosen = named(experiment)
    _check(chosen, run, pairs)
    report = reporter(quiet, verbose)
    name = prepare(device, threads)
    import torch

    predictor = None if run is None else open_predictor(run, name, None)
    read = [] if predictor is None else _pairs(chosen, predictor, pairs, columns, on_bad_line, report)
    bench = Bench(
        1 if seed is None else seed,
        torch.device(name),
        predictor,
        read,
        lambda items, unit, total: watched(items, report, unit, total),
        report.note,
    )
    findings, files = conduct(chosen, out or f"lab/{chosen.name}", bench, settings or [], report.warn)
    typer.echo(f"claim: {chosen.claim}\n")
    for table in findings.tables:
        typer.echo(table.render() + "\n")
    for sentence in findings.verdict:
        typer.echo(f"found: {sentence}")
    for file in files:
        report.note(f"written: {file}")


def _check(experiment: Experiment, run: str | None, pairs: list[str] | None) -> None:
    """Raises ConfigError for a run that is of no use, and for pairs without one."""
    from eyeline.errors import ConfigError

    if run is not None and experiment.run == "none":
        raise ConfigError(f"{experiment.name} makes models of its own and takes no run", run, "leave it out")
    if run is None and pairs:
        raise ConfigError(
            "pairs are those of a run, and none is given", f"--pairs {pairs[0]}", f"eyeline lab {experiment.name} RUN"
        )


def _pairs(
    experiment: Experiment,
    predictor: Predictor,
    paths: list[str] | None,
    columns: str | None,
    on_bad_line: str | None,
    report: Reporter,
) -> list[Pair]:
    from eyeline.errors import ConfigError
    from eyeline.evaluation import read_for

    data = predictor.config.data
    given = paths or list(data.test) or list(data.valid)
    if not given:
        hint = f"name some: eyeline lab {experiment.name} RUN --pairs FILE.tsv"
        raise ConfigError("the run names no pairs to do it on", f"{predictor.run.path}", hint)
    return read_for(predictor, given, columns, on_bad_line, alignment=experiment.links, warn=report.warn)
