"""What is out of the ordinary in an evaluation, in sentences that say what to do, and the outputs that are furthest off.

Knows results of `measure` and a run's journal; no models.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from eyeline.contracts import RESERVED, UNKNOWN
from eyeline.evaluation.quality import Measured
from eyeline.metrics.base import plain
from eyeline.predictor import Predictor

LOOPING, UNFINISHED = 0.02, 0.02  # shares of the outputs from which on it is said
SHORT, LONG = 0.9, 1.1  # characters of outputs over those of references
UNKNOWN_SOURCE, UNKNOWN_OUTPUT = 0.02, 0.005  # shares of the tokens
COPYING = 0.05  # share of the outputs
STILL_FALLING = 0.02  # of the loss, from the last validation but one to the last
LITTLE_LEARNT = 0.7  # of the loss of one who guesses


def diagnose(predictor: Predictor, measured: Measured) -> list[str]:
    """A line for each thing out of the ordinary, most serious first; none where there is nothing."""
    result = measured.result
    found = [_training(predictor, result), _looping(result), _length(result), _unknown(result, predictor), _copying(result)]
    return [line for lines in found for line in lines]


def _training(predictor: Predictor, result: dict[str, Any]) -> list[str]:
    """Under-trained: it knows little more than how many symbols there are, or it was still learning when it was stopped."""
    lines = []
    guess = math.log(max(2, predictor.run.target.size))
    if predictor.config.model.outputs != "positions" and result["loss"] > LITTLE_LEARNT * guess:
        lines.append(
            f"under-trained: a loss of {result['loss']:.2f} nats a token, where guessing has {guess:.2f}; "
            "train longer (--resume --more-steps N), or with a higher training.learning_rate"
        )
    losses = validation_losses(predictor.run.path)
    if len(losses) >= 3 and losses[-1] == min(losses) and losses[-2] > 0 and 1 - losses[-1] / losses[-2] > STILL_FALLING:
        lines.append(
            f"under-trained: validation loss was still falling when training ended ({losses[-2]:.4g}, then {losses[-1]:.4g}); "
            "go on with --resume --more-steps N"
        )
    return lines


def validation_losses(run: Path) -> list[float]:
    """The losses of a run's validations, in order; none where it left none."""
    path = run / "metrics.jsonl"
    losses = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("split") == "valid" and isinstance(event.get("loss"), int | float):
            losses.append(float(event["loss"]))
    return losses


def _looping(result: dict[str, Any]) -> list[str]:
    lines = []
    if result["repetition_rate"] > LOOPING:
        lines.append(
            f"looping: {100 * result['repetition_rate']:.1f} % of the outputs repeat themselves where their reference does not; "
            "--no-repeat-ngram 3 forbids it, model.coverage can cure it"
        )
    unfinished = result["unfinished"] / result["n"]
    if unfinished > UNFINISHED:
        lines.append(
            f"unfinished: {100 * unfinished:.1f} % of the outputs reached the maximum length; they loop, or --max-length is small"
        )
    return lines


def _length(result: dict[str, Any]) -> list[str]:
    ratio = result["length_ratio"]
    if ratio < SHORT:
        return [f"too short: outputs have {100 * ratio:.0f} % of the references' characters; a higher --length-penalty helps"]
    if ratio > LONG:
        return [f"too long: outputs have {100 * ratio:.0f} % of the references' characters; a lower --length-penalty helps"]
    return []


def _unknown(result: dict[str, Any], predictor: Predictor) -> list[str]:
    lines = []
    source, said = result["unknown_rate"]["source"], result["unknown_output_rate"]
    if source > UNKNOWN_SOURCE:
        lines.append(
            f"unknown-heavy: {100 * source:.1f} % of the source's tokens are not in the vocabulary; tokenizer.kind bpe or "
            "character has fewer, a pointer-generator copies them"
        )
    if said > UNKNOWN_OUTPUT:
        lines.append(f"unknown-heavy: {100 * said:.1f} % of the tokens of the outputs are {RESERVED[UNKNOWN]}; the same cures it")
    return lines


def _copying(result: dict[str, Any]) -> list[str]:
    copied = result.get("copy_rate")
    if copied and copied["lines"] > COPYING:
        return [
            f"copying: {100 * copied['lines']:.1f} % of the outputs are their source where the reference is not; look for "
            "training pairs whose sides are equal"
        ]
    return []


def worst(measured: Measured, count: int) -> list[dict[str, Any]]:
    """The outputs with the most edits a character of the longer side, those of which the model was surest first among equals."""
    from rapidfuzz.distance import Levenshtein

    found = []
    for place, (said, wanted) in enumerate(zip(measured.outputs, measured.references, strict=True)):
        away = Levenshtein.normalized_distance(plain(said), plain(wanted))
        if away:
            found.append((-away, -measured.predictions[place].normalized_score, place))
    return [
        {
            "line": place + 1,
            "source": measured.pairs[place].source,
            "output": measured.outputs[place],
            "reference": measured.references[place],
            "edits": -away,
            "score": measured.predictions[place].score,
        }
        for away, _, place in sorted(found)[:count]
    ]
