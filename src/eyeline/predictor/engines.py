"""What else than our own search may answer: an engine, and what it is not asked. Knows options; no engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from eyeline.config import SearchSettings
from eyeline.contracts import Hypothesis
from eyeline.errors import ConfigError
from eyeline.predictor.inputs import SearchOptions


class Engine(Protocol):
    """Greedy and beam search over a model that it has a copy of. Thread-safe."""

    def __call__(
        self,
        sources: Sequence[Sequence[int]],
        most: Sequence[int],
        *,
        beam_size: int,
        n_best: int,
        length_penalty: float,
        patience: float | None,
        normalize: Callable[[float, int], float],
    ) -> list[list[Hypothesis] | None]:
        """The best hypotheses of each of one batch of sources; None where it has none that are sure to be those of our search.

        Args:
            sources: ids without END.
            most: tokens of each output, END apart.
            patience: after how many times as many ended hypotheses as the beam keeps it may stop; None: when none can be better.
            normalize: (score, length) -> what is ranked by.
        """
        ...


def check_engine(options: SearchOptions, settings: SearchSettings) -> None:
    """Raises ConfigError for what an engine cannot be asked."""
    for name, wanted in (
        ("attention", options.attention),
        ("replace_unknown", options.replace_unknown),
        ("sampling", options.sampling is not None),
        ("mbr", options.mbr),
        ("coverage_penalty", settings.coverage_penalty),
        ("no_repeat_ngram", settings.no_repeat_ngram),
        ("diverse_groups", settings.diverse_groups > 1),
        ("min_length", settings.min_length),
        ("min_length_ratio", settings.min_length_ratio),
        ("length_normalization", settings.length_normalization != "average"),
    ):
        if wanted:
            value = getattr(options, name, None) or getattr(settings, name, None)
            raise ConfigError("an engine does not know this", f"{name}={value}", "leave it out, or predict with torch")


def where_able(engine: Engine | None, options: SearchOptions, settings: SearchSettings, otherwise: bool) -> Engine | None:
    """The engine, if it can be asked; None where it cannot and our own search answers `otherwise`; else raises ConfigError."""
    try:
        if engine is not None:
            check_engine(options, settings)
    except ConfigError:
        if not otherwise:
            raise
        return None
    return engine
