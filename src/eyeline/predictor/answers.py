"""From what a search or a score says in ids to what a person reads. Knows coders and hypotheses; no model, no files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyeline.contracts import END, RESERVED, UNKNOWN, Alternative, Hypothesis, Prediction
from eyeline.data.coding import Coder, Read
from eyeline.data.corpus import Corpus
from eyeline.text.tokenizers import Encoded


@dataclass(frozen=True)
class PairScore:
    """The log-probability of a given pair."""

    score: float  # summed natural-log probability, END counted
    normalized_score: float
    tokens: list[str]  # END last; none where both sides are blank
    token_scores: list[float]
    source_tokens: list[str]
    alignment: list[list[float]] | None  # [len(tokens)][len(source_tokens)]
    source_words: list[int | None]  # the word of each source token, None for one in no word
    target_words: list[int | None]
    p_gen: list[float] | None = None  # how likely each token was generated rather than copied; None where nothing is copied


@dataclass(frozen=True)
class Asked:
    """Given pairs as the model reads them, but for those that are blank on both sides."""

    given: int  # how many pairs there were
    places: list[int]  # of each among them
    reads: list[tuple[Read, Encoded]]
    corpus: Corpus


@dataclass(frozen=True)
class Piece:
    """What the model is given at a time: a line, or a part of one."""

    line: int  # its place in the chunk
    source: Read
    cut: bool  # the line was longer, and its end is not looked at
    prefix: Encoded | None = None  # what its outputs begin with
    required: tuple[tuple[int, ...], ...] = ()  # phrases that its outputs have
    forbidden: tuple[tuple[int, ...], ...] = ()  # phrases that they have not


Words = Callable[[Hypothesis], Mapping[int, str]]  # place -> the word that stands there instead of an unknown token


def nothing(hypothesis: Hypothesis) -> Mapping[int, str]:
    """Every token stands as it is."""
    return {}


def prediction(
    line: str, piece: Piece, hypotheses: Sequence[Hypothesis], coder: Coder, words: Words, attention: bool
) -> Prediction:
    """The answer to one piece of `line`."""
    n_best = [alternative(hypothesis, piece, coder, words) for hypothesis in hypotheses]
    first, weights = n_best[0], hypotheses[0].attention.get("source") if attention else None
    linked = weights is not None
    ids, source = _written(hypotheses[0], piece, coder, words) if linked else ([], piece.source)
    return Prediction(
        source=line,
        text=first.text,
        score=first.score,
        normalized_score=first.normalized_score,
        source_tokens=[*piece.source.encoded.tokens, RESERVED[END]],
        tokens=first.tokens,
        token_scores=first.token_scores,
        alignment=None if weights is None else weights.tolist(),
        n_best=n_best,
        truncated=piece.cut,
        finished=first.finished,
        source_words=piece.source.encoded.words if linked else [],
        target_words=coder.words(ids[: len(ids) - first.finished], source) if linked else [],
    )


def alternative(hypothesis: Hypothesis, piece: Piece, coder: Coder, words: Words) -> Alternative:
    """An output as a person reads it."""
    ids, source = _written(hypothesis, piece, coder, words)
    return Alternative(
        text=coder.decode(ids, source),
        score=hypothesis.score,
        normalized_score=hypothesis.normalized_score,
        tokens=coder.tokens(ids, source),
        token_scores=list(hypothesis.token_scores),
        finished=hypothesis.finished,
    )


def _written(hypothesis: Hypothesis, piece: Piece, coder: Coder, words: Words) -> tuple[list[int], Read]:
    """What is written of an output: its ids, and the source whose own words some of these are. What is unknown in a prefix stands
    as it was typed."""
    instead = dict(words(hypothesis))
    if piece.prefix is not None:
        typed = (surface.strip(" ") for surface in piece.prefix.surfaces)
        instead.update({place: word for place, word in enumerate(typed) if hypothesis.ids[place : place + 1] == (UNKNOWN,)})
    return coder.with_words(hypothesis.ids, piece.source, instead)


def pair_score(hypothesis: Hypothesis, source: Encoded, target: Encoded) -> PairScore:
    """What is said of a given pair."""
    weights = hypothesis.attention.get("source")
    return PairScore(
        score=hypothesis.score,
        normalized_score=hypothesis.normalized_score,
        tokens=[*target.tokens, RESERVED[END]],
        token_scores=list(hypothesis.token_scores),
        source_tokens=[*source.tokens, RESERVED[END]],
        alignment=None if weights is None else weights.tolist(),
        source_words=source.words,
        target_words=target.words,
        p_gen=None if hypothesis.generating is None else list(hypothesis.generating),
    )


def as_json(prediction: Prediction) -> dict[str, Any]:
    """What `predict --format jsonl` and the service write of a prediction."""
    rows = prediction.alignment
    alignment = None if rows is None else [[round(weight, 8) for weight in row] for row in rows]
    value = {**vars(prediction), "alignment": alignment, "n_best": [vars(one) for one in prediction.n_best]}
    del value["source_words"], value["target_words"]
    return value


def empty(source: str, n_best: int) -> Prediction:
    """The answer to a source of white space alone: the model is not asked."""
    nothing = [Alternative("", 0.0, 0.0, [], [], True) for _ in range(n_best)]
    return Prediction(source, "", 0.0, 0.0, [], [], [], None, nothing, False, True)


def nothing_said() -> PairScore:
    """The score of the empty output of a blank source."""
    return PairScore(0.0, 0.0, [], [], [], None, [], [])
