"""`eyeline align`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from eyeline.cli.common import (
    ColumnsOption,
    Device,
    OnBadLine,
    Pairs,
    Quiet,
    RunPath,
    Seed,
    Threads,
    Verbose,
    open_predictor,
    output,
    reporter,
)

if TYPE_CHECKING:
    from eyeline.evaluation import Head
    from eyeline.metrics import Links
    from eyeline.predictor import Predictor
    from eyeline.text.records import Pair
    from eyeline.training.reporting import Reporter


def align(
    run: RunPath,
    pairs: Pairs,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; default: standard output.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Link the model's tokens instead of words.")] = False,
    layer: Annotated[
        int | None,
        typer.Option("--layer", help="Align by this decoder layer, from 0; -1 is the last. Default: what the run shows."),
    ] = None,
    head: Annotated[
        int | None, typer.Option("--head", help="Align by this head of the layer, from 0. Default: the mean of its heads.")
    ] = None,
    best_head: Annotated[
        bool, typer.Option("--best-head", help="Find the head that agrees best with the pairs' gold links, and align by it.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Make it the head that the run shows: attend, predict and align use it from now on.")
    ] = False,
    columns: ColumnsOption = None,
    on_bad_line: OnBadLine = None,
    seed: Seed = None,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print the alignment of each pair as a Pharaoh line, `0-0 1-2`: zero-based, source-target, in words.

    Each target word is linked to the source word that its attention is heaviest on. Where the pairs have an `alignment` column,
    precision, recall, F1 and AER against it follow on standard error.
    """
    from eyeline.errors import ConfigError

    if best_head and not (layer is head is None):
        raise ConfigError("there is nothing to find where the head is given", "--best-head", "leave --layer and --head out")
    if keep and not best_head and layer is head is None:
        raise ConfigError("no head to keep is named", "--keep", "add --best-head, or --layer and --head")
    predictor = open_predictor(run, device, threads, seed)
    from eyeline.evaluation import align_by, check_keeping, chosen_head, keep_head, read_for
    from eyeline.metrics import format_links

    report = reporter(quiet, verbose)
    chosen = chosen_head(predictor, layer, head)
    if keep:
        check_keeping(predictor)
    read = read_for(predictor, pairs, columns, on_bad_line, alignment=True, warn=report.warn)
    if best_head:
        chosen = _best(predictor, read, not tokens, report, keep)
    if keep and chosen is not None:
        keep_head(predictor, chosen)
        report.note(f"kept: {predictor.run.path / 'config.yaml'} says {chosen.settings}")
    links = align_by(predictor, read, chosen, words=not tokens)
    with output(out) as stream:
        stream.writelines(f"{format_links(line)}\n".encode() for line in links)
    _measure(predictor, read, links, not tokens, report)


def _best(predictor: Predictor, pairs: Sequence[Pair], words: bool, report: Reporter, keep: bool) -> Head | None:
    """The head that aligns best, once the table of them all is told; None: it is what the run shows and no head of a layer."""
    from eyeline.evaluation import rank_heads, selects, table

    ranked = rank_heads(predictor, pairs, words=words)
    for line in table(ranked):
        report.note(line)
    best = ranked[0].head
    if best is None or ranked[0].shown:
        report.note("best: what the run shows as it is")
    elif not keep:
        report.note(f"best: {selects(predictor, best)}")
    return best


def _measure(predictor: Predictor, pairs: Sequence[Pair], links: Sequence[Links], words: bool, report: Reporter) -> None:
    """Tells how well links agree with the pairs' own, where they have some."""
    from eyeline.evaluation import gold_links
    from eyeline.metrics import alignment_scores

    if any(pair.alignment is None for pair in pairs):
        return
    gold = gold_links(predictor, pairs, words=words)
    if gold is None:
        report.note("the pairs' own links reach beyond their words, so they link tokens: --tokens measures against them")
        return
    scores = alignment_scores(links, [line.sure for line in gold], [line.possible for line in gold])
    figures = f"precision {scores.precision:.2f}  recall {scores.recall:.2f}  F1 {scores.f1:.2f}  AER {scores.aer:.2f}"
    report.note(f"against the gold links: {figures}")
