"""Outputs against references. Knows predictors and metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eyeline.contracts import RESERVED, UNKNOWN, Prediction
from eyeline.errors import ConfigError, nearest
from eyeline.evaluation.pairs import source_lines
from eyeline.metrics import METRICS, copy_rate, report
from eyeline.metrics.pointing import TASKS, pointing_report
from eyeline.predictor import Predictor, SearchOptions
from eyeline.text import vectors
from eyeline.text.records import Pair

SCORED = ("exact_match", "symbol_error_rate", "wer", "cer", "bleu", "chrf", "ter", "rougeL")
LOWER_IS_BETTER = frozenset({"symbol_error_rate", "wer", "cer", "ter"})
SCORED_POSITIONS = ("exact_match", "symbol_error_rate")

Watch = Callable[[Iterator[Prediction]], Iterator[Prediction]]  # sees predictions pass, to report how fast they come


@dataclass(frozen=True)
class Measured:
    """Outputs held to their references, and both in the spelling in which they were compared."""

    result: dict[str, Any]  # the contract's `evaluate --json`
    pairs: Sequence[Pair]
    outputs: list[str]
    references: list[str]
    predictions: list[Prediction]


def evaluate(
    predictor: Predictor,
    pairs: Sequence[Pair],
    options: SearchOptions | None = None,
    seed: int = 1,
    watch: Watch | None = None,
    geometry: str | None = None,
) -> dict[str, Any]:
    """The `result` of `measure`."""
    return measure(predictor, pairs, options, seed, watch, geometry).result


def measure(
    predictor: Predictor,
    pairs: Sequence[Pair],
    options: SearchOptions | None = None,
    seed: int = 1,
    watch: Watch | None = None,
    geometry: str | None = None,
    edges: Sequence[int] | None = None,
) -> Measured:
    """Predicts every source and measures the outputs as the user would see them: the contract's `evaluate --json`.

    References get the Unicode form of the outputs, and their case where the run is trained on lower case.

    Args:
        geometry: the pointing task that outputs are held to as well, where positions are pointed at: sorting, convex-hull,
            delaunay or tsp.
        edges: the largest length of each bucket of source lengths; chosen from the data by default.

    Raises:
        ConfigError: for a task that is none, or a run that points at no numbers.
    """
    if geometry is not None:
        _check_geometry(predictor, geometry)
    options = replace(options or SearchOptions(), attention=False)
    sources = source_lines(predictor, pairs)
    began = time.perf_counter()
    coming = predictor.stream(sources, options)
    predictions = list(watch(coming) if watch else coming)
    seconds = time.perf_counter() - began
    code = predictor.coder
    outputs = [code.judged(prediction.text) for prediction in predictions]
    references = [code.compared(pair.target) for pair in pairs]
    reads = [predictor.read(source) for source in sources]
    targets = [code.encode_target(pair.target, read) for pair, read in zip(pairs, reads, strict=True)]
    lengths = [len(read.encoded.ids) for read in reads]
    unknown = {
        "source": _share(sum(read.unknown for read in reads), sum(lengths)),
        "target": _share(sum(one.ids.count(UNKNOWN) for one in targets), sum(len(one.ids) for one in targets)),
    }
    names = _metrics(predictor)
    measured = report(outputs, references, source_lengths=lengths, metrics=names, edges=edges, unknown_rate=unknown, seed=seed)
    scores = predictor.score(list(zip(sources, (pair.target for pair in pairs), strict=True)))
    tokens = sum(len(score.token_scores) for score in scores)
    loss = -sum(score.score for score in scores) / tokens if tokens else 0.0
    result = {"n": measured.pop("n"), "loss": loss, "perplexity": math.exp(min(loss, 700.0)), **measured}
    result["unfinished"] = sum(not prediction.finished for prediction in predictions)
    tokens_said = [token for prediction in predictions for token in prediction.tokens]
    result["unknown_output_rate"] = _share(tokens_said.count(RESERVED[UNKNOWN]), len(tokens_said))
    if not predictor.config.points:
        result["copy_rate"] = copy_rate([code.compared(pair.source) for pair in pairs], outputs, references)
    result["speed"] = {
        "sentences_per_s": len(pairs) / seconds,
        "target_tokens_per_s": sum(len(prediction.tokens) for prediction in predictions) / seconds,
    }
    if geometry is not None:
        elements = [vectors.elements(pair.source) for pair in pairs]
        said, wanted = ([vectors.positions(line) for line in lines] for lines in (outputs, references))
        result["geometry"] = pointing_report(geometry, elements, said, wanted, seed=seed)
    return Measured(result, pairs, outputs, references, predictions)


def _check_geometry(predictor: Predictor, task: str) -> None:
    if task not in TASKS:
        raise ConfigError("no such task", f"geometry={task}", nearest(task, TASKS))
    if not predictor.config.numbers:
        where = f"model.architecture={predictor.config.model.architecture}"
        raise ConfigError("geometry is measured where positions of numbers are pointed at", where, "leave --geometry out")


def _metrics(predictor: Predictor) -> list[str]:
    """Which scores, the one by source length first: what the run was chosen by, or what suits its target."""
    symbols = predictor.run.target.kind in ("character", "whitespace-symbols")
    chosen = predictor.config.training.metric
    first = chosen if chosen in METRICS else "exact_match" if symbols else "bleu"
    return [first, *(name for name in (SCORED_POSITIONS if predictor.config.points else SCORED) if name != first)]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def render(result: dict[str, Any]) -> str:
    """An evaluation as plain text."""
    lines = [f"{result['n']:,} pairs   loss {result['loss']:.4f}   perplexity {result['perplexity']:.3f}"]
    for name, score in result["metrics"].items():
        interval = f"  [{score['low']:.2f}, {score['high']:.2f}]" if "low" in score else ""
        lines.append(f"{name:18}{score['score']:8.2f}{interval}  {score.get('signature', '')}")
    for name, score in result.get("geometry", {"metrics": {}})["metrics"].items():
        figure = f"{'FAIL':>8}" if score["score"] is None else f"{score['score']:8.2f}  [{score['low']:.2f}, {score['high']:.2f}]"
        lines.append(f"{name:18}{figure}  {score['signature']}")
    if result["by_length"]:
        lines.append(f"by source length, {result['by_length'][0]['metric']}:")
    for bucket in result["by_length"]:
        span = f"{bucket['min']}–{bucket['max']}"
        lines.append(f"  {span:>9}  n {bucket['n']:5}  {bucket['score']:7.2f}  [{bucket['low']:.2f}, {bucket['high']:.2f}]")
    speed, unknown = result["speed"], result["unknown_rate"]
    lines.append(
        f"unknown: source {100 * unknown['source']:.2f} %, target {100 * unknown['target']:.2f} %   "
        f"repeating outputs {100 * result['repetition_rate']:.2f} %   length ratio {result['length_ratio']:.3f}   "
        f"unfinished {result['unfinished']}"
    )
    copied = result.get("copy_rate")
    lines.append(
        f"unknown outputs {100 * result['unknown_output_rate']:.2f} %"
        + (
            f"   copied: lines {100 * copied['lines']:.2f} %, words {100 * copied['words']:.2f} % "
            f"(references {100 * copied['reference_words']:.2f} %)"
            if copied
            else ""
        )
    )
    lines.append(f"{speed['sentences_per_s']:,.1f} sentences/s, {speed['target_tokens_per_s']:,.0f} target tokens/s")
    return "\n".join(lines)


def scored_by(metric: str, delta: float, p: float) -> str:
    """Which of two systems a difference speaks for, where it is more than chance gives once in twenty times."""
    if p >= 0.05 or not delta:
        return ""
    return "this is better" if (delta > 0) != (metric in LOWER_IS_BETTER) else "the other is better"
