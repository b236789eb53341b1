"""A trained run measured: outputs against references, alignments against gold links. Knows predictors, metrics and figures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eyeline.contracts import UNKNOWN, Prediction
from eyeline.data.coding import coder
from eyeline.errors import ConfigError, DataError, UserError
from eyeline.figures import AlignmentMatrix, heading
from eyeline.metrics import (
    METRICS,
    AlignmentScores,
    alignment_scores,
    attention_between_words,
    links_from_attention,
    parse_links,
    report,
)
from eyeline.metrics.alignment import Links
from eyeline.predictor import Predictor, SearchOptions
from eyeline.runs import open_run, weights_metadata
from eyeline.text.lines import Line, read_lines
from eyeline.text.pairs import ReadReport, read_pairs
from eyeline.text.records import Fault, Pair
from eyeline.text.words import word_spans
from eyeline.training.checkpoints import peek

SCORED = ("exact_match", "symbol_error_rate", "wer", "cer", "bleu", "chrf", "ter", "rougeL")
SCORED_POSITIONS = ("exact_match", "symbol_error_rate")


Watch = Callable[[Iterator[Prediction]], Iterator[Prediction]]  # sees predictions pass, to report how fast they come


def read_for(
    predictor: Predictor,
    paths: Sequence[str],
    columns: str | None = None,
    on_bad_line: str | None = None,
    *,
    alignment: bool = False,
    warn: Callable[[str], None] | None = None,
) -> list[Pair]:
    """The pairs of `paths`, read with the run's own data settings where none are given. Blank sides stay: nothing is dropped.

    Args:
        alignment: whether gold links are wanted, where the pairs have them; a column of them may always be absent.
        warn: is told what was left out, a line a reason.

    Raises:
        ConfigError: a column or a choice that cannot be.
        DataError: there are none, or one is bad.
    """
    given: dict[str, Any] = {}
    if columns is not None:
        given["columns"] = [name.strip() for name in columns.split(",")]
    elif not (alignment and _have_links(paths, predictor.config.data.columns)):
        given["columns"] = ["-" if name == "alignment" else name for name in predictor.config.data.columns]
    if on_bad_line is not None:
        if on_bad_line not in ("error", "skip"):
            raise ConfigError("not a valid value", f"--on-bad-line {on_bad_line}", "valid: error, skip")
        given["on_bad_line"] = on_bad_line
    data = predictor.config.data.model_copy(update=given)
    found = ReadReport()
    points = predictor.config.points
    pairs = list(
        read_pairs(paths, data.columns, data.on_bad_line, data.source_language, data.target_language, found, numbers=points)
    )
    if points:
        pairs = _possible(predictor, pairs, data.on_bad_line, found)
    if not pairs:
        raise DataError("no pairs", " ".join(paths))
    if warn is not None:
        for reason, count, places in found.skipped.rows():
            warn(f"left out, {reason}: {count:,} ({places})")
    return pairs


def _possible(predictor: Predictor, pairs: list[Pair], on_bad_line: str, found: ReadReport) -> list[Pair]:
    """The pairs whose targets are positions of their sources."""
    kept = []
    for pair, row in zip(pairs, predictor.coder.rows(pairs), strict=True):
        if not isinstance(row, Fault):
            kept.append(pair)
        elif on_bad_line == "error":
            raise DataError(row.detail, row.path, row.line, "--on-bad-line skip leaves such lines out and counts them")
        else:
            found.skipped.add(row.reason, row.path, row.line)
    return kept


def _have_links(paths: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether the first line of every TSV reaches as far as the column of gold links."""
    if "alignment" not in columns:
        return False
    tables = [path for path in paths if path.lower().removesuffix(".gz").endswith(".tsv")]
    first = [next(iter(read_lines(path)), None) for path in tables]
    return all(isinstance(line, Line) and line.text.count("\t") >= columns.index("alignment") for line in first)


def source_lines(predictor: Predictor, pairs: Sequence[Pair]) -> list[str]:
    """The pairs' sources as `predict` takes them: with their features behind a tab where the run has features."""
    if predictor.run.source.features:
        return [f"{pair.source}\t{';'.join(pair.features)}" for pair in pairs]
    return [pair.source for pair in pairs]


def evaluate(
    predictor: Predictor,
    pairs: Sequence[Pair],
    options: SearchOptions | None = None,
    seed: int = 1,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Predicts every source and measures the outputs as the user would see them: the contract's `evaluate --json`.

    References get the Unicode form of the outputs, and their case where the run is trained on lower case.
    """
    options = replace(options or SearchOptions(), attention=False)
    sources = source_lines(predictor, pairs)
    began = time.perf_counter()
    coming = predictor.stream(sources, options)
    predictions = list(watch(coming) if watch else coming)
    seconds = time.perf_counter() - began
    code = predictor.coder
    outputs = [code.spelling.cased(prediction.text) for prediction in predictions]
    references = [code.compared(pair.target) for pair in pairs]
    reads = [predictor.read(source) for source in sources]
    targets = [code.encode_target(pair.target, read) for pair, read in zip(pairs, reads, strict=True)]
    lengths = [len(read.encoded.ids) for read in reads]
    unknown = {
        "source": _share(sum(read.unknown for read in reads), sum(lengths)),
        "target": _share(sum(one.ids.count(UNKNOWN) for one in targets), sum(len(one.ids) for one in targets)),
    }
    names = _metrics(predictor)
    measured = report(outputs, references, source_lengths=lengths, metrics=names, unknown_rate=unknown, seed=seed)
    scores = predictor.score(list(zip(sources, (pair.target for pair in pairs), strict=True)))
    tokens = sum(len(score.token_scores) for score in scores)
    loss = -sum(score.score for score in scores) / tokens if tokens else 0.0
    result = {"n": measured.pop("n"), "loss": loss, "perplexity": math.exp(min(loss, 700.0)), **measured}
    result["unfinished"] = sum(not prediction.finished for prediction in predictions)
    result["speed"] = {
        "sentences_per_s": len(pairs) / seconds,
        "target_tokens_per_s": sum(len(prediction.tokens) for prediction in predictions) / seconds,
    }
    return result


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
    lines.append(f"{speed['sentences_per_s']:,.1f} sentences/s, {speed['target_tokens_per_s']:,.0f} target tokens/s")
    return "\n".join(lines)


def align_pairs(predictor: Predictor, pairs: Sequence[Pair], *, words: bool) -> list[Links]:
    """Each target word (or token) linked to the source word (or token) that it attends to most.

    Raises:
        UserError: the architecture has no attention.
    """
    given = list(zip(source_lines(predictor, pairs), (pair.target for pair in pairs), strict=True))
    links: list[Links] = []
    for score in predictor.score(given, attention=True):
        if not score.tokens:  # both sides are blank
            links.append(frozenset())
            continue
        if score.alignment is None:
            raise _no_attention(predictor)
        weights, sources, targets = score.alignment, len(score.source_words), len(score.target_words)
        if words:
            between = attention_between_words(weights, score.source_words, score.target_words)
            links.append(links_from_attention(between, between.shape[1], between.shape[0]))
        else:
            links.append(links_from_attention(weights, sources, targets))
    return links


def alignment_against_gold(links: Sequence[Links], pairs: Sequence[Pair], *, linked_only: bool = False) -> AlignmentScores | None:
    """Precision, recall, F1 and AER against the pairs' own links; None when they have none.

    Args:
        linked_only: leave out target positions that the gold links to nothing. Attention always looks somewhere, so where the
            gold says "from nothing" (the hyphens of an ISO date) the standard measure counts a fault that no attention avoids.
    """
    if any(pair.alignment is None for pair in pairs):
        return None
    gold = [parse_links(pair.alignment or "", pair.path, pair.line) for pair in pairs]
    if linked_only:
        linked = [{target for _, target in line.possible} for line in gold]
        links = [frozenset(link for link in line if link[1] in known) for line, known in zip(links, linked, strict=True)]
    return alignment_scores(links, [line.sure for line in gold], [line.possible for line in gold])


def links_words(pairs: Sequence[Pair]) -> bool:
    """Whether the pairs' gold links can be between words: none reaches beyond the last word of its side."""
    for pair in pairs:
        sources, targets = len(word_spans(pair.source)), len(word_spans(pair.target))
        gold = parse_links(pair.alignment or "", pair.path, pair.line).possible
        if any(source >= sources or target >= targets for source, target in gold):
            return False
    return True


def alignment_matrix(
    predictor: Predictor, source: str, target: str | None = None, beam_size: int | None = None
) -> AlignmentMatrix:
    """The attention of one pair, ready to be drawn; the target is what the run predicts when none is given.

    Raises:
        UserError: the source is blank, or the architecture has no attention.
    """
    if predictor.is_blank(source):
        raise UserError("there is nothing to look at in a source of white space", "--source")
    name = f"{predictor.run.path.resolve().name} ({predictor.config.model.architecture})"
    shown = source.replace("\t", " ")
    if target is None:
        prediction = predictor.predict([source], beam_size=beam_size)[0]
        if prediction.alignment is None:
            raise _no_attention(predictor)
        note = f"{name}: predicted, log-probability {prediction.score:.3f}"
        return AlignmentMatrix(
            prediction.source_tokens, prediction.tokens, prediction.alignment, heading(shown, prediction.text), note
        )
    score = predictor.score([(source, target)], attention=True)[0]
    if score.alignment is None:
        raise _no_attention(predictor)
    note = f"{name}: given, log-probability {score.score:.3f}"
    return AlignmentMatrix(score.source_tokens, score.tokens, score.alignment, heading(shown, target), note)


def _no_attention(predictor: Predictor) -> UserError:
    return UserError(
        "this architecture looks at its source once and has no attention to show",
        f"model.architecture={predictor.config.model.architecture}",
        "train bahdanau or luong",
    )


def describe(path: str | Path) -> dict[str, Any]:
    """What a run is: sizes, settings, how far it was trained and how well it did."""
    run = open_run(path)
    parameters = sum(parameter.numel() for parameter in run.build().parameters())
    facts: dict[str, Any] = {
        "run": str(path),
        "architecture": run.config.model.architecture,
        "parameters": parameters,
        "source_vocabulary": run.source.size,
        "target_vocabulary": run.target.size,
        "tokenizer": {"source": run.source.kind, "target": run.target.kind, **coder(run.config, run.source, run.target).instead},
        "features": len(run.source.features),
    }
    if run.weights.exists():
        facts["weights_of_step"] = weights_metadata(run.weights).get("step")
    state = peek(run.path / "checkpoints")
    if state is not None:
        position, progress = state
        facts |= {
            "steps": position.step,
            "epochs": position.epoch,
            "target_tokens": position.target_tokens,
            "training_seconds": round(position.seconds, 1),
            "best": None if progress.best is None else {progress.metric: progress.best, "step": progress.best_step},
        }
    facts["settings"] = run.config.to_dict()
    return facts
