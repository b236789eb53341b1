"""`--engine`: which one answers. Imports nothing heavy."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from eyeline.predictor import Predictor, SearchOptions

ENGINES = ("torch", "ctranslate2", "auto")
Engine = Annotated[
    str, typer.Option("--engine", help="torch, ctranslate2 (a transformer, plain searches), or auto: the latter where it can.")
]


def check_engine_name(engine: str, ensemble: list[str] | None, cluster: str | None, device: str, shortlist: bool) -> None:
    """Raises ConfigError for an engine that is none, or that does not go with the other options."""
    from eyeline.errors import ConfigError, nearest

    if engine not in ENGINES:
        raise ConfigError("not a valid value", f"--engine {engine}", nearest(engine, ENGINES))
    if engine != "ctranslate2":
        return
    mps = (f"--device {device}", device == "mps")
    for name, given in (("--ensemble", ensemble), ("--cluster", cluster), ("--shortlist", shortlist), mps):
        if given:
            raise ConfigError("CTranslate2 does not know this", name, "leave it out, or --engine torch")


def chosen_engine(engine: str, run: str, options: SearchOptions, elsewhere: bool) -> str:
    """The engine itself; for `auto` CTranslate2 where it is installed and can answer.

    Args:
        elsewhere: whether something else stands against it, such as an ensemble.
    """
    from eyeline.errors import ConfigError
    from eyeline.exchange.ctranslate2 import check_convertible
    from eyeline.predictor.engines import check_engine
    from eyeline.predictor.inputs import resolve
    from eyeline.runs import open_run

    if engine == "torch":
        return engine
    config = open_run(run).config
    try:
        check_convertible(config.model)
        check_engine(options, resolve(config, options))
    except ConfigError:
        if engine == "auto":
            return "torch"
        raise
    able = not elsewhere and importlib.util.find_spec("ctranslate2") is not None
    return "ctranslate2" if engine == "ctranslate2" or able else "torch"


def engaged(predictor: Predictor, threads: int | None, precision: str, otherwise: bool = False) -> Predictor:
    """The predictor with CTranslate2 in the place of our search, which answers what that cannot be asked where `otherwise`."""
    from eyeline.exchange.ctranslate2_engine import CTranslate2Engine
    from eyeline.predictor import Predictor

    run, model = predictor.run, predictor.model
    device = str(predictor.device)
    engine = CTranslate2Engine(run, model, device=device, threads=threads or 0, precision=precision)
    return Predictor(run, model, predictor.device, engine=engine, otherwise=otherwise)
