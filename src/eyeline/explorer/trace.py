"""One pair as everything that can be seen of it, a step an output token. Knows predictors and what they say; draws nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eyeline.contracts import BEGIN, END, PAD, RESERVED, Hypothesis
from eyeline.data.coding import FIRST, Read
from eyeline.errors import DataError, UserError
from eyeline.explorer import telling
from eyeline.explorer.beams import Tree, Watched
from eyeline.explorer.looking import observe
from eyeline.explorer.telling import Told, Wanted
from eyeline.predictor import Predictor, SearchOptions
from eyeline.predictor.answers import Piece
from eyeline.predictor.inputs import check_pairs, check_sources, resolve
from eyeline.predictor.searching import Searcher
from eyeline.search.ensemble import Ensemble
from eyeline.text.tokenizers import Encoded

MOST = 512  # tokens of a source, and of a target, END counted
WIDEST = 12  # the beam of a tree that can be drawn


def trace(
    predictor: Predictor,
    source: Any,
    target: str | None = None,
    *,
    prefix: Sequence[int] = (),
    beam_size: int | None = None,
    tree: bool = False,
    look: Wanted | None = None,
) -> Told:
    """What a model does with `source` at every step of its output, as a JSON-able value.

    Args:
        source: as for `predict`.
        target: the output; what the run predicts when None.
        prefix: ids that a predicted output begins with, of `target.ids` and `candidates` in another trace of the same source.
        beam_size: of the search; the run's when None.
        tree: whether the hypotheses that the beam kept are told, too.
        look: (layer, head) of the attention that is wanted; where there are more than can be sent together the others are named,
            and no more.

    Returns:
        `model`, `source` and `target` with its tokens; `steps`, each with its candidates and what was copied; `looks`, of which
        `shown` is the one to begin with; `coverage`, `beam`, `points` where there are such. A blank source has no steps.

    Raises:
        UserError: a source, target, prefix or look that is none, or more of it than can be drawn.
    """
    if isinstance(predictor.answering, Ensemble):
        raise UserError("several models that answer together have no one attention", hint="look at one of them")
    if target is None:
        (line,) = check_sources([source], predictor.config.numbers > 0)
    else:
        ((line, target),) = check_pairs([(source, target)], predictor.config.numbers > 0, predictor.config.points)
    if predictor.is_blank(line):
        return _nothing(predictor, line)
    piece, grown, best = _piece(predictor, line), None, list[Hypothesis]()
    read, coder = piece.source, predictor.coder
    if target is not None:
        encoded = coder.encode_target(target, read)
        ids, tokens, forced = [*encoded.ids, END], [*encoded.tokens, RESERVED[END]], len(encoded.ids) + 1
    else:
        best, grown = _searched(predictor, piece, prefix, beam_size, tree)
        ids, forced = list(best[0].ids), len(prefix)
        tokens = coder.tokens(ids, read)
    _check_length(len(ids), "target")
    seen = observe(predictor.model, coder.sources([read]).batch(np.zeros(1, dtype=np.int64)).to(predictor.device), ids)
    return {
        **_about(predictor, line, read),
        "target": {
            "text": target if target is not None else coder.decode(ids, read),
            "ids": ids,
            "tokens": tokens,
            "given": target is not None,
            "forced": forced,  # of the tokens, those that nobody searched for
            "finished": ids[-1:] == [END],
            "score": round(sum(one.log_prob for one in seen.said), 4),
        },
        "steps": [telling.step(coder, read, number, said) for number, said in zip(ids, seen.said, strict=True)],
        **telling.looks(predictor.config, seen, look),
        "coverage": telling.coverage(predictor.config, seen),
        "beam": None if grown is None else telling.beam(coder, read, grown, best),
    }


def _piece(predictor: Predictor, line: str) -> Piece:
    try:
        (piece,) = predictor.reader.fit(line, "", 0, 1, None, "source")
    except DataError as error:  # names a line of a file, and there is none
        raise UserError(error.what, hint=error.hint) from None
    _check_length(len(piece.source.encoded.ids) + 1, "source")
    return piece


def _check_length(tokens: int, side: str) -> None:
    if tokens > MOST:
        raise UserError(f"a {side} of {tokens - 1:,} tokens is longer than can be drawn", hint=f"at most {MOST - 1}")


def _searched(
    predictor: Predictor, piece: Piece, prefix: Sequence[int], beam_size: int | None, tree: bool
) -> tuple[list[Hypothesis], Tree | None]:
    """The best outputs that begin with `prefix`, and the tree where one is wanted."""
    begun = _checked(predictor, prefix, piece.source)
    options = SearchOptions(beam_size=beam_size, attention=False)
    settings = resolve(predictor.config, options)
    if tree:
        if settings.beam_size > WIDEST:
            raise UserError("a beam wider than can be drawn as a tree", f"beam_size={settings.beam_size}", f"at most {WIDEST}")
        options = replace(options, n_best=settings.beam_size)
    watched = Watched(predictor.answering, begun)
    model = watched if tree else predictor.answering
    look = Searcher(model, predictor.coder, predictor.config, options, settings, predictor.device)
    asked = replace(piece, prefix=Encoded(begun, [], [], "", []) if begun else None)
    (found,) = look([asked])
    return found, watched.tree if tree else None


def _checked(predictor: Predictor, prefix: Sequence[int], source: Read) -> list[int]:
    """The prefix, once it is sure that an output of this source can begin with it."""
    pointing = predictor.config.model.outputs == "positions"
    size = FIRST + len(source.encoded.ids) if pointing else predictor.run.target.size + len(source.extra)
    ids = list(prefix)
    for number in ids:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < size or number in (PAD, BEGIN):
            raise UserError("no output of this source begins with these ids", f"prefix={ids[:20]}")
    if END in ids[:-1]:
        raise UserError("an output does not go on after its end", f"prefix={ids[:20]}")
    _check_length(len(ids), "prefix")
    return ids


def _about(predictor: Predictor, line: str, source: Read | None) -> Told:
    """Of model and source."""
    model = predictor.config.model
    values = None if source is None else source.values
    tokens = [] if source is None else [*source.encoded.tokens, RESERVED[END]]
    if values is not None:
        tokens = [token.replace(" ", "") for token in tokens]  # (0.5, 1): a blank between numbers says nothing
    return {
        "version": 1,
        "model": {
            "architecture": model.architecture,
            "heads": None if model.cross_attention is None else list(model.cross_attention),
            "pointing": model.outputs == "positions",
            "copying": model.outputs == "copies",
        },
        "source": {"text": line, "tokens": tokens},
        "points": values.astype(np.float64).round(5).tolist() if values is not None and values.shape[1] == 2 else None,
    }


def _nothing(predictor: Predictor, line: str) -> Told:
    """Of a blank source: its output is empty, and the model is not asked."""
    target = {"text": "", "ids": [], "tokens": [], "given": False, "forced": 0, "finished": True, "score": 0.0}
    looks: Told = {"looks": [], "shown": None, "chosen": None, "coverage": None, "beam": None}
    return {**_about(predictor, line, None), "target": target, "steps": [], **looks}
