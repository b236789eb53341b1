"""What commands that search share: the options that say how. Imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eyeline.cli.common import prepare

if TYPE_CHECKING:
    from eyeline.predictor import Predictor

Ensemble = Annotated[
    list[str] | None,
    typer.Option("--ensemble", metavar="RUN", help="A run that answers together with the first; may be given again."),
]
EnsembleMean = Annotated[
    str, typer.Option("--ensemble-mean", help="log (mean of log-probabilities) or arithmetic (mean of probabilities).")
]
LengthNormalization = Annotated[
    str | None,
    typer.Option("--length-normalization", help="average, or wu: rank by score / ((5 + length) / 6)^P (Wu et al. 2016)."),
]
DiverseGroups = Annotated[
    int | None, typer.Option("--diverse-groups", metavar="G", help="Parts of the beam that shun each other's words.", min=1)
]
Diversity = Annotated[
    float | None, typer.Option("--diversity", help="What a word costs for each earlier group that says it there.", min=0)
]
Patience = Annotated[
    float | None,
    typer.Option("--patience", metavar="P", help="A beam of K looks for better outputs until P times K have ended, or longer."),
]
MinLengthRatio = Annotated[
    float | None, typer.Option("--min-length-ratio", help="Tokens before the end may come, for each of the source's.", min=0)
]
MaxLengthRatio = Annotated[float | None, typer.Option("--max-length-ratio", help="Most tokens, for each of the source's.", min=0)]
Sampling = Annotated[
    str | None,
    typer.Option(
        "--sampling", metavar="HOW", help="Draw outputs: top-k=20,temperature=0.8, of top-k, top-p, typical, temperature."
    ),
]
Mbr = Annotated[int, typer.Option("--mbr", metavar="N", help="Draw N outputs and take the one nearest to all, by chrF.", min=0)]
Constraints = Annotated[
    str | None,
    typer.Option(
        "--constraints", metavar="FILE", help="A terminology: SOURCE, tab, TARGET lines, or JSON lines; see docs/search.md."
    ),
]
ReplaceUnknown = Annotated[
    bool, typer.Option("--replace-unknown", help="Write the source word that was looked at most for an unknown token.")
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        "--dictionary", metavar="FILE", help="With --replace-unknown: SOURCE, tab, TARGET lines of what to write instead."
    ),
]


Precision = Annotated[
    str, typer.Option("--precision", help="fp32, or int8: weights rounded to 8 bits, faster and less exact; on a CPU.")
]
Shortlist = Annotated[
    bool, typer.Option("--shortlist", help="Choose outputs from the run's shortlist, which `eyeline shortlist` makes.")
]


def open_ensemble(
    path: str,
    others: list[str] | None,
    mean: str,
    device: str,
    threads: int | None,
    seed: int | None = None,
    precision: str = "fp32",
    shortlist: bool = False,
) -> Predictor:
    """The run at `path`, alone or together with others, ready to predict."""
    name = prepare(device, threads, seed)
    from eyeline.memory import keep_freed_memory
    from eyeline.predictor import load

    keep_freed_memory()
    return load(path, name, ensemble=others or (), ensemble_mean=mean, precision=precision, shortlist=shortlist)


def shortlist_file(predictor: Predictor) -> str | None:
    """The file of the shortlist that outputs are chosen from, where there is one."""
    from eyeline.predictor.shortlist import SHORTLIST

    return None if predictor.shortlist is None else str(predictor.run.path / SHORTLIST)
