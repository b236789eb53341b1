"""Asks a served model about whole texts, or about their parts and joins the answers. Knows models and texts; no HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eyeline.contracts import Prediction
from eyeline.predictor import SearchOptions, Term
from eyeline.predictor.inputs import resolve
from eyeline.search import WORTHS
from eyeline.search.limits import Ranking
from eyeline.serving.limits import Refused
from eyeline.serving.models import Served
from eyeline.serving.sentences import Parts


def can_part(served: Served) -> bool:
    """Whether the model's sources are texts that can be cut: not those whose positions count, or that carry features."""
    return not (served.predictor.config.points or served.predictor.run.source.features)


async def ask(
    served: Served,
    lines: Sequence[str],
    options: SearchOptions,
    *,
    cut: Callable[[str], Parts] | None = None,
    prefixes: Sequence[str] | None = None,
    terms: Sequence[Term] = (),
) -> list[Prediction]:
    """One prediction a line.

    Args:
        cut: parts each line; its prefix is that of its first part.

    Raises:
        Refused, UserError: as `Served.predict` does.
    """
    if cut is None:
        return await served.predict(lines, options, prefixes=prefixes, terms=terms)
    if not can_part(served):
        raise Refused(400, "the sources of this model cannot be cut into sentences", "split=true")
    each = [_not_empty(cut(line), line) for line in lines]
    parts = [part for one in each for part in one.parts]
    numbers = [number for number, one in enumerate(each, 1) for _ in one.parts]
    begun = None
    if prefixes is not None:
        begun = [text for prefix, one in zip(prefixes, each, strict=True) for text in [prefix, *[""] * (len(one.parts) - 1)]]
    answers = iter(await served.predict(parts, options, prefixes=begun, terms=terms, numbers=numbers))
    settings = resolve(served.predictor.config, options)
    ranking = Ranking(settings.length_penalty, WORTHS[settings.length_normalization], settings.coverage_penalty)
    return [
        one.prediction(line, [next(answers) for _ in one.parts], ranking.normalize) for line, one in zip(lines, each, strict=True)
    ]


def _not_empty(parts: Parts, line: str) -> Parts:
    """A blank line is its own part: it is answered with an empty text."""
    return parts if parts.parts else Parts((line,), ("", ""))
