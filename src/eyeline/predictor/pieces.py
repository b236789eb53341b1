"""A long source in pieces, and the answers to them in one. Knows encoded text and predictions; no model, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from eyeline.contracts import Alternative, Prediction
from eyeline.text.tokenizers import Encoded

Normalize = Callable[[float, int], float]


def pieces(encoded: Encoded, features: int, most: int) -> list[Encoded]:
    """Parts of at most `most` tokens that hold all of the source's tokens but for blanks at the cuts, in order.

    A cut falls between words where a word begins in reach, else inside a word. The `features` that the source begins with stand
    before every part, and count; one token of text is in each even where they fill it.
    """
    words = encoded.words
    room = max(1, most - features)
    result, start = [], features
    while start < len(words):
        if words[start] is None:  # a blank at the start of a piece says nothing
            start += 1
            continue
        end = _cut(words, start, room)
        last = end
        while words[last - 1] is None:
            last -= 1
        result.append(_part(encoded, features, start, last))
        start = end
    return result


def _cut(words: Sequence[int | None], start: int, room: int) -> int:
    """One past the last token of the piece that begins at `start`."""
    end = start + room
    if end >= len(words):
        return len(words)
    for place in range(end, start, -1):
        if words[place] is not None and words[place] != words[place - 1]:
            return place
    return end


def _part(encoded: Encoded, features: int, start: int, end: int) -> Encoded:
    """Tokens `start` to `end`, behind the `features` that the whole begins with."""
    return Encoded(
        encoded.ids[:features] + encoded.ids[start:end],
        encoded.tokens[:features] + encoded.tokens[start:end],
        encoded.spans[:features] + encoded.spans[start:end],
        encoded.text,
        encoded.surfaces[:features] + encoded.surfaces[start:end],
    )


def joined(source: str, parts: Sequence[Prediction], normalize: Normalize) -> Prediction:
    """The answer to a source that was predicted in `parts`: their texts with a blank between, their scores summed.

    Entry k of the n-best list is made of entry k of each part. There is no alignment: each part looked at itself only.

    Args:
        normalize: (score, length) -> what outputs are ranked by, but for a coverage penalty.
    """
    if len(parts) == 1:
        return parts[0]
    ranks = min(len(part.n_best) for part in parts)
    n_best = [_in_a_row([part.n_best[rank] for part in parts], normalize) for rank in range(ranks)]
    best = n_best[0]
    return Prediction(
        source=source,
        text=best.text,
        score=best.score,
        normalized_score=best.normalized_score,
        source_tokens=list(chain.from_iterable(part.source_tokens for part in parts)),
        tokens=best.tokens,
        token_scores=best.token_scores,
        alignment=None,
        n_best=n_best,
        truncated=False,
        finished=best.finished,
    )


def _in_a_row(parts: Sequence[Alternative], normalize: Normalize) -> Alternative:
    tokens = list(chain.from_iterable(part.tokens for part in parts))
    score = sum(part.score for part in parts)
    # what a coverage penalty took off is a sum over source tokens, so that of the whole is that of its parts
    uncovered = sum(part.normalized_score - normalize(part.score, len(part.tokens)) for part in parts)
    return Alternative(
        text=" ".join(part.text for part in parts if part.text),
        score=score,
        normalized_score=normalize(score, len(tokens)) + uncovered,
        tokens=tokens,
        token_scores=list(chain.from_iterable(part.token_scores for part in parts)),
        finished=all(part.finished for part in parts),
    )
