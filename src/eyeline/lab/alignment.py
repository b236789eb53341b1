"""Is attention alignment? Every layer's every head against gold links, when a word is said and when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field

from eyeline.config_base import Settings, Whole
from eyeline.data.batches import sequential_batches
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, DataError, UserError
from eyeline.evaluation import gold_links
from eyeline.evaluation.alignments import given_pairs
from eyeline.figures import Line, Panel
from eyeline.lab.bench import Bench, Experiment, Names, chosen
from eyeline.lab.findings import Findings, Table
from eyeline.lab.looks import looks
from eyeline.lab.practice import backwards, corpus_of, exact, model_of, practise, sequences, widths
from eyeline.ladder import Seq2Seq
from eyeline.metrics import GoldLinks, LinkCounts, Links, attention_links
from eyeline.metrics.base import Numbers
from eyeline.metrics.significance import interval

SYMBOLS, LENGTHS = 20, (3, 12)
RUNGS = ("bahdanau", "luong", "pointer-generator", "transformer", "state-space")
CELLS = 2**22  # attention weights that stand in memory together
DIAGONAL = "the diagonal"


class AlignmentSettings(Settings):
    rungs: Names = RUNGS
    """what is trained to reverse, when no run is given; every one needs attention"""
    steps: Whole = Field(600, ge=1)
    """updates of each"""
    size: Whole = Field(64, ge=8, multiple_of=8)
    """width"""
    layers: Whole = Field(2, ge=1)
    """of encoder and decoder where there are many heads"""
    heads: Whole = Field(2, ge=1)
    """in each layer"""
    held: Whole = Field(150, ge=10)
    """sources that attention is held to"""


class Row(NamedTuple):
    """A pair in words or tokens: its gold links, and for each attention the links when a word is said and when it is read."""

    gold: GoldLinks
    said: dict[str, Links]
    read: dict[str, Links]
    diagonal: Links


def measure(settings: AlignmentSettings, bench: Bench) -> Findings:
    if bench.predictor is not None:
        name = bench.predictor.config.model.architecture
        unit, rows = _rows_of_run(bench)
        scored = [(name, *line) for line in _scores(rows, bench.seed)]
        where = f"{bench.predictor.run.path.resolve().name}: {len(rows)} pairs, between {unit}"
    else:
        scored, where = _small_models(settings, bench)
    table = Table(
        f"Alignment error rate in percent ({where}), 95 % intervals over pairs; said: the look of the step that says a word; "
        "read: of the step that reads it, the next one",
        ("rung", "attention", "AER said", "low", "high", "F1 said", "AER read", "F1 read"),
        list(scored),
    )
    return Findings("Attention against gold links", [table], _panels(scored), _sayings(scored))


def diagonal(sources: int, targets: int) -> Links:
    """Each target word linked to the source word as far along: what a reader of nothing would guess."""
    return frozenset((j * sources // targets, j) for j in range(targets)) if sources else frozenset()


def _small_models(settings: AlignmentSettings, bench: Bench) -> tuple[list[tuple[Any, ...]], str]:
    """Rungs that learn to reverse: symbol i of n comes from symbol n - 1 - i, whatever the symbols."""
    rungs = chosen(settings.rungs, RUNGS, "rungs")
    corpus = corpus_of(sequences(4000, SYMBOLS, LENGTHS, bench.seed, backwards), SYMBOLS)
    pairs = sequences(settings.held, SYMBOLS, LENGTHS, bench.seed + 1, backwards)
    held = corpus_of(pairs, SYMBOLS)
    sizes = widths(settings.size) | {"heads": settings.heads}
    scored: list[tuple[Any, ...]] = []
    for rung in rungs:
        many = (
            {"encoder_layers": settings.layers, "decoder_layers": settings.layers}
            if rung in ("transformer", "state-space")
            else {}
        )
        model = model_of(rung, SYMBOLS, bench.seed, bench.device, {**sizes, **many})
        practise(model, corpus, bench, steps=settings.steps, batch_tokens=1024, name=rung)
        right = 100 * float(exact(model, held, bench.device).mean())
        rows = []
        for place, found in _looked(model, held, bench):
            length = len(pairs[place][0])
            gold = frozenset((length - 1 - i, i) for i in range(length))
            said, read = (_hard(found, shift, length) for shift in (0, 1))
            rows.append(Row(GoldLinks(gold, gold), said, read, diagonal(length, length)))
        scored += [(f"{rung} ({right:.0f} % right)", *line) for line in _scores(rows, bench.seed)]
    return scored, f"small models that reverse {LENGTHS[0]} to {LENGTHS[1]} symbols, {settings.steps} updates"


def _hard(found: dict[str, Numbers], shift: int, length: int) -> dict[str, Links]:
    """Links between tokens, each target's to its heaviest source, from the row `shift` steps after it was said."""
    words: list[int | None] = list(range(length))
    return dict(zip(found, attention_links([w[shift:] for w in found.values()], words, words, words=False), strict=True))


def _looked(model: Seq2Seq, corpus: Corpus, bench: Bench) -> Iterator[tuple[int, dict[str, Numbers]]]:
    """Each row's attentions [T, S], the longest first. Raises UserError where there is none."""
    longest = np.maximum(corpus.source_lengths, corpus.target_lengths)
    for rows in sequential_batches(longest**2 * 16, CELLS):
        batch = corpus.batch(rows).to(bench.device)
        with torch.inference_mode():
            found = {name: weights.double().cpu().numpy() for name, weights in looks(model, batch).items()}
        if not found:
            raise UserError("this architecture looks at its source once and has no attention to hold to gold links")
        for place, row in enumerate(rows.tolist()):
            yield row, {name: weights[place] for name, weights in found.items()}


def _rows_of_run(bench: Bench) -> tuple[str, list[Row]]:
    """The run's pairs, between words where their gold links can be, else between tokens. Raises UserError without gold links."""
    predictor = bench.predictor
    assert predictor is not None
    pairs = list(bench.pairs)
    for pair in pairs:
        if pair.alignment is None:
            raise DataError(
                "no gold links to hold attention to", pair.path, pair.line, "name them: --columns source,target,alignment"
            )
    gold, words = gold_links(predictor, pairs, words=True), True
    if gold is None:
        gold, words = gold_links(predictor, pairs, words=False), False
    assert gold is not None
    asked = predictor.asked(given_pairs(predictor, pairs))
    rows = []
    for place, found in _looked(predictor.model, asked.corpus, bench):
        read, target = asked.reads[place]
        sides = (read.encoded.words, target.words)
        said, late = (
            dict(zip(found, attention_links([w[shift:] for w in found.values()], *sides, words=words), strict=True))
            for shift in (0, 1)
        )
        counts = [_count(side) if words else len(side) for side in sides]
        rows.append(Row(gold[asked.places[place]], said, late, diagonal(*counts)))
    if not rows:
        raise ConfigError("all pairs are blank", "--pairs")
    return "words" if words else "tokens", rows


def _count(words: Sequence[int | None]) -> int:
    return max((word + 1 for word in words if word is not None), default=0)


def _scores(rows: Sequence[Row], seed: int) -> list[tuple[Any, ...]]:
    """(attention, AER, low, high, F1, AER read, F1 read), the lowest of the two error rates first; and the diagonal's."""
    found = []
    for name in rows[0].said:
        said, read = ([getattr(row, which)[name] for row in rows] for which in ("said", "read"))
        late = _sum(read, rows).scores()
        found.append((name, *_with_interval(said, rows, seed), late.aer, late.f1))
    found.sort(key=lambda line: min(line[1], line[5]))
    return [*found, (DIAGONAL, *_with_interval([row.diagonal for row in rows], rows, seed), None, None)]


def _sum(links: Sequence[Links], rows: Sequence[Row]) -> LinkCounts:
    return sum((LinkCounts.of(made, *row.gold) for made, row in zip(links, rows, strict=True)), LinkCounts())


def _with_interval(links: Sequence[Links], rows: Sequence[Row], seed: int) -> tuple[float, float, float, float]:
    """AER, its interval, and F1."""
    counts = [LinkCounts.of(made, *row.gold) for made, row in zip(links, rows, strict=True)]
    statistics = np.array([(c.made, c.sure, c.in_sure, c.in_possible) for c in counts], dtype=np.float64)
    bounds = interval(lambda total: LinkCounts(*(round(float(value)) for value in total)).scores().aer, statistics, seed=seed)
    scores = sum(counts, LinkCounts()).scores()
    return scores.aer, bounds.low, bounds.high, scores.f1


def _panels(scored: Sequence[tuple[Any, ...]]) -> list[Panel]:
    """Attentions of each rung from the best to the worst."""
    lines = []
    for number, rung in enumerate(dict.fromkeys(line[0] for line in scored)):
        own = [line for line in scored if line[0] == rung and line[1] != DIAGONAL]
        places = list(range(1, len(own) + 1))
        lines.append(
            Line(rung, places, [line[2] for line in own], [line[3] for line in own], [line[4] for line in own], colour=number)
        )
        lines.append(Line(f"{rung.partition(' ')[0]}, when read", places, [line[6] for line in own], dashed=True, colour=number))
    most = max(len(line.x) for line in lines)
    guess = next(line[2] for line in scored if line[1] == DIAGONAL)
    lines.append(Line(DIAGONAL, [1, max(2, most)], [guess, guess], dashed=True, colour=8))
    return [Panel("Alignment error rate", "attentions of each, the best first", "AER %, when said", lines)]


def _sayings(scored: Sequence[tuple[Any, ...]]) -> list[str]:
    sayings = []
    for rung in dict.fromkeys(line[0] for line in scored):
        own = [line for line in scored if line[0] == rung and line[1] != DIAGONAL]
        best, worst = own[0], max(own, key=lambda line: min(line[2], line[6]))
        when = "said" if best[2] <= best[6] else "read"
        text = f"{rung}: lowest AER {min(best[2], best[6]):.1f} ({best[1]}, when a word is {when})"
        if len(own) > 1:
            text += f", worst of its {len(own)} heads {min(worst[2], worst[6]):.1f}"
        sayings.append(text + ".")
    return sayings


EXPERIMENT = Experiment(
    "alignment",
    "Attention is alignment: where a word looks is what it translates (Bahdanau et al. 2015, section 5.2.1)",
    AlignmentSettings,
    measure,
    run="pairs",
    links=True,
)
