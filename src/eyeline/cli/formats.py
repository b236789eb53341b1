"""How `predict` writes what it found: the lines of each format. Knows predictions and numbers; no files, nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyeline.contracts import Alternative, Prediction

LOG_2 = 0.6931471805599453  # fairseq writes scores to the base 2, and END in P- but not in H-


def written(format_: str, number: int, prediction: Prediction, n_best: int) -> bytes:
    """All lines of one prediction in one of the FORMATS, the `number`-th of the input from 0."""
    from eyeline.text.lines import output_line

    return b"".join(output_line(line) for line in FORMATS[format_](number, prediction, n_best))


def _text(number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    for alternative in _all_of(prediction, n_best):
        yield alternative.text


def _jsonl(number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    from eyeline.predictor.answers import as_json

    yield json.dumps(as_json(prediction), ensure_ascii=False)


def _nbest(number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    for alternative in _all_of(prediction, n_best):
        yield f"{number} ||| {alternative.text} ||| F0= {alternative.score:.6f} ||| {alternative.normalized_score:.6f}"


def _fairseq(number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    yield f"S-{number}\t{prediction.source}"
    for alternative in prediction.n_best:
        score, said = alternative.normalized_score / LOG_2, alternative.tokens[: -1 if alternative.finished else None]
        yield f"H-{number}\t{score:.6f}\t{' '.join(said)}"
        yield f"D-{number}\t{score:.6f}\t{alternative.text}"
        yield f"P-{number}\t{' '.join(f'{score / LOG_2:.4f}' for score in alternative.token_scores)}"
    if prediction.alignment is not None:
        yield f"A-{number}\t{_links(prediction, words=False)}"


def _pharaoh(number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    yield _links(prediction, words=True)


def _pharaoh_tokens(number: int, prediction: Prediction, n_best: int) -> Iterator[str]:
    yield _links(prediction, words=False)


def _links(prediction: Prediction, *, words: bool) -> str:
    """`source-target` of the heaviest source word (or token) of each output word (or token), END of either side apart."""
    from eyeline.metrics import attention_links, format_links

    if prediction.alignment is None:
        return ""
    (links,) = attention_links([prediction.alignment], prediction.source_words, prediction.target_words, words=words)
    return format_links(links)


def _all_of(prediction: Prediction, n_best: int) -> Iterator[Alternative]:
    """The n-best list with exactly `n_best` entries: those that no output is left for are empty and impossible."""
    from eyeline.contracts import Alternative

    yield from prediction.n_best
    for _ in range(n_best - len(prediction.n_best)):
        yield Alternative("", float("-inf"), float("-inf"), [], [], False)


FORMATS: Mapping[str, Callable[[int, Prediction, int], Iterator[str]]] = MappingProxyType(
    {
        "text": _text,
        "jsonl": _jsonl,
        "nbest": _nbest,
        "fairseq": _fairseq,
        "pharaoh": _pharaoh,
        "pharaoh-tokens": _pharaoh_tokens,
    }
)
LINKS = ("pharaoh", "pharaoh-tokens")  # links are all that these write
ALIGNED = ("fairseq", *LINKS)  # those that want attention
