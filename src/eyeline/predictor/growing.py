"""One output as it grows, token by token, as a person reads it. Knows searches and answers; no files."""

from __future__ import annotations

from collections.abc import Iterator

from eyeline.contracts import Prediction
from eyeline.data.coding import Coder
from eyeline.errors import ConfigError
from eyeline.predictor.answers import Piece, Words, nothing, prediction
from eyeline.predictor.inputs import SearchOptions
from eyeline.predictor.searching import Searcher


def check_single(options: SearchOptions) -> None:
    """Raises ConfigError for options under which an output is not known before its end."""
    searched = options.sampling is None and options.beam_size not in (None, 1)
    for wrong, where, hint in (
        (searched, f"beam_size={options.beam_size}", "a stream is greedy or sampled"),
        (options.n_best != 1, f"n_best={options.n_best}", "a stream is one output"),
        (options.mbr > 0, f"mbr={options.mbr}", "the one nearest to all is known when all are drawn"),
        (options.too_long == "split", "too_long=split", "truncate, or error"),
    ):
        if wrong:
            raise ConfigError("this cannot be told token by token", where, hint)


def growing(look: Searcher, piece: Piece, line: str, coder: Coder, words: Words) -> Iterator[Prediction]:
    """The prediction after each token; the last one is the whole, and alone has its alignment and its replaced words."""
    for hypothesis, whole in look.unfold(piece):
        yield prediction(line, piece, [hypothesis], coder, words if whole else nothing, whole and look.options.attention)
