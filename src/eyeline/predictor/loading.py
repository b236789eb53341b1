"""From the path of a run, or of several, to a predictor. Knows runs and how they are held while they predict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from eyeline.errors import ConfigError
from eyeline.predictor.ensembles import check_same, mean_of
from eyeline.predictor.precision import PRECISIONS, check_precision
from eyeline.predictor.predictor import Predictor
from eyeline.predictor.shortlist import load_shortlist
from eyeline.runs import open_run


def load(
    path: str | Path,
    device: torch.device | str = "cpu",
    *,
    ensemble: Sequence[str | Path] = (),
    ensemble_mean: str = "log",
    precision: str = "fp32",
    shortlist: bool = False,
) -> Predictor:
    """A trained run, ready to predict.

    Args:
        ensemble: further runs that answer together with it; its settings and tokenizers count.
        ensemble_mean: "log", the mean of log-probabilities, shared out anew, or "arithmetic", that of probabilities.
        precision: "fp32", or "int8": the weights of linear layers rounded to 8 bits, on a CPU, which is faster and less exact.
        shortlist: whether outputs are chosen from the first run's shortlist, which `eyeline shortlist` makes: faster with a
            vocabulary of thousands, and less exact.

    Raises:
        RunError: when a path is not a run directory, or is incomplete or damaged; when it has no shortlist and one is wanted.
        ConfigError: when `device` or `precision` is none, or the runs' vocabularies are not the same.
    """
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise ConfigError("not a device", f"device={device}", "such as cpu or cuda:0") from error
    check_precision(precision, place)
    run, others = open_run(path), [(str(other), open_run(other)) for other in ensemble]
    mean = mean_of(ensemble_mean)
    check_same(run, others)
    models = [each.load(place) for each in (run, *(other for _, other in others))]
    for model in models:
        PRECISIONS[precision](model)
    chosen = load_shortlist(run, models[0]) if shortlist else None
    return Predictor(run, models[0], place, others=models[1:], mean=mean, shortlist=chosen)
