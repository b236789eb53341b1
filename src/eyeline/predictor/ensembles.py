"""Runs that answer together. Knows runs and their vocabularies; no search."""

from __future__ import annotations

from collections.abc import Sequence

from eyeline.data.coding import coder
from eyeline.errors import ConfigError, nearest
from eyeline.runs import Run
from eyeline.search.ensemble import MEANS, Mean
from eyeline.text.tokenizers import Tokenizer


def mean_of(name: str) -> Mean:
    """The mean of that name. Raises ConfigError."""
    if name not in MEANS:
        raise ConfigError("not a mean", f"ensemble_mean={name}", nearest(name, MEANS))
    return MEANS[name]


def check_same(first: Run, others: Sequence[tuple[str, Run]]) -> None:
    """Raises ConfigError for a run whose ids, on either side, do not mean what those of the first do."""
    for name, other in others:
        where = f"ensemble={name}"
        mine, theirs = (run.config.model.outputs for run in (first, other))
        if mine != theirs or first.config.numbers != other.config.numbers:
            raise ConfigError(f"the first run's outputs are {mine}, this one's {theirs}", where, "join runs of one kind")
        for side, left, right in (("source", first.source, other.source), ("target", first.target, other.target)):
            if difference := _difference(left, right):
                raise ConfigError(
                    f"the {side} vocabularies differ: {difference}", where, "train the runs with the same tokenizers"
                )
        if coder(first.config, first.source, first.target).spelling != coder(other.config, other.source, other.target).spelling:
            raise ConfigError("the runs spell text differently", where, "data.normalization and data.lowercase have to be equal")
        bound, longest = other.config.model.longest, first.config.model.longest
        if bound is not None and (longest is None or bound < longest):
            raise ConfigError(f"this run reads {bound} positions, the first one more", where, "name it first")


def _difference(left: Tokenizer, right: Tokenizer) -> str:
    """The first symbol in which two vocabularies differ, or that they cut text differently; empty where they are the same."""
    mine, theirs = (one.tokens_of(range(one.size)) for one in (left, right))
    for number, (here, there) in enumerate(zip(mine, theirs, strict=False)):
        if here != there:
            return f"symbol {number} is '{here}' and '{there}'"
    if len(mine) != len(theirs):
        return f"{len(mine):,} and {len(theirs):,} symbols"
    return "" if left.content == right.content else "equal symbols, but text is cut into them differently"
