"""Which head of which layer aligns best, and how a run is told to show it. Knows predictors, gold links and a run's settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from eyeline.config import Config
from eyeline.config_models import Seq2SeqSettings, StateSpaceSettings, TransformerSettings
from eyeline.data.batches import sequential_batches
from eyeline.data.corpus import Corpus
from eyeline.errors import ConfigError, DataError, RunError
from eyeline.evaluation.alignments import Head, align_pairs, given_pairs, gold_links, shown_head
from eyeline.metrics import AlignmentScores, GoldLinks, LinkCounts, Links, attention_links
from eyeline.predictor import Predictor
from eyeline.runs import save_config
from eyeline.text.records import Pair

CELLS = 2**22  # attention weights of all layers and heads that stand in memory together, but for a single pair that has more

Looks = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Ranked:
    """How well a head aligns."""

    head: Head | None  # None: an attention of the run's own, which copies and is no head of a layer
    scores: AlignmentScores
    shown: bool  # what the run shows, aligns by and guides as it is


def chosen_head(predictor: Predictor, layer: int | None, head: int | None) -> Head | None:
    """The head that `--layer` (from 0, or from -1 backwards) and `--head` name; what is not named is as the run shows it, and a
    layer alone is the mean of its heads. None where neither is named.

    Raises:
        ConfigError: it is none, or the architecture has no choice of them.
    """
    if layer is None and head is None:
        return None
    layers, heads = _layers_and_heads(predictor, "--head" if layer is None else "--layer")
    shown = shown_head(predictor.config)
    if layer is None:
        layer = -1 if shown is None else shown.layer
    if not -layers <= layer < layers:
        raise ConfigError(f"the decoder has {layers} layers, which count from 0", f"--layer {layer}", "-1 is the last")
    if head is not None and not 0 <= head < heads:
        raise ConfigError(f"each layer has {heads} heads, which count from 0", f"--head {head}")
    return Head(range(layers)[layer], head)


def align_by(predictor: Predictor, pairs: Sequence[Pair], head: Head | None, *, words: bool) -> list[Links]:
    """As `align_pairs`, by one head, or by what the run shows where it is None.

    Raises:
        ConfigError: a head, and the architecture has no choice of them.
        UserError: none, and the architecture has no attention.
    """
    if head is None:
        return align_pairs(predictor, pairs, words=words)
    links: list[Links] = [frozenset() for _ in pairs]
    for place, found in _links(predictor, pairs, words, [head]):
        links[place] = found[head]
    return links


def rank_heads(predictor: Predictor, pairs: Sequence[Pair], *, words: bool) -> list[Ranked]:
    """Every head of every layer, and the mean of each layer's, by the pairs' gold links: the lowest error rate first, of equal
    ones the higher F1, then the earlier.

    Raises:
        UserError: the pairs have no gold links, or such as count something else.
        ConfigError: the architecture has no choice of heads.
    """
    layers, heads = _layers_and_heads(predictor, "--best-head")
    gold = _required(predictor, pairs, words)
    all_of_them = [Head(layer, number) for layer in range(layers) for number in (*range(heads), None)]
    counts = dict.fromkeys(all_of_them, LinkCounts())
    unasked = set(range(len(pairs)))
    for place, found in _links(predictor, pairs, words, all_of_them):
        unasked.discard(place)
        for head, links in found.items():
            counts[head] += LinkCounts.of(links, *gold[place])
    nothing = sum((LinkCounts.of((), *gold[place]) for place in unasked), LinkCounts())  # blank on both sides
    shown = shown_head(predictor.config)
    ranked = [Ranked(head, (count + nothing).scores(), head == shown) for head, count in counts.items()]
    if shown is None:
        links_shown = align_pairs(predictor, pairs, words=words)
        own = sum((LinkCounts.of(a, *line) for a, line in zip(links_shown, gold, strict=True)), LinkCounts())
        ranked.append(Ranked(None, own.scores(), True))
    return sorted(ranked, key=lambda one: (one.scores.aer, -one.scores.f1))


def table(ranked: Sequence[Ranked]) -> Iterator[str]:
    """The ranking as lines of text."""
    yield "layer  head     AER      F1  precision  recall"
    for one in ranked:
        layer, number = ("own", "") if one.head is None else (one.head.layer, one.head.number)
        scores = one.scores
        figures = f"{scores.aer:6.2f}  {scores.f1:6.2f}     {scores.precision:6.2f}  {scores.recall:6.2f}"
        yield f"{layer:>5}  {'mean' if number is None else number:>4}  {figures}" + ("  shown" if one.shown else "")


def selects(predictor: Predictor, head: Head) -> str:
    """What to type for a head: the options, and the settings where the architecture has them."""
    if not _can_keep(predictor.config):
        return head.options
    return f"{head.options}, or {head.settings} in the run's config.yaml, which --keep writes"


def check_keeping(predictor: Predictor) -> None:
    """Raises ConfigError where no setting of the architecture says which head is shown."""
    _layers_and_heads(predictor, "--keep")
    if not _can_keep(predictor.config):
        where = f"model.architecture={predictor.config.model.architecture}"
        raise ConfigError("this architecture shows where it copies from, and no other head", where, "leave --keep out")


def keep_head(predictor: Predictor, head: Head) -> None:
    """Makes `head` what the run shows, aligns by and guides from now on: its config.yaml is written anew, and nothing else.

    Raises:
        ConfigError: the architecture has no such setting.
        UserError: the file cannot be written.
    """
    check_keeping(predictor)
    values = predictor.config.to_dict()
    model = {**values["model"], "alignment_layer": head.layer, "alignment_head": head.number}
    save_config(predictor.run.path, Config.from_dict({**values, "model": model}))


def _required(predictor: Predictor, pairs: Sequence[Pair], words: bool) -> list[GoldLinks]:
    """The pairs' gold links. Raises UserError where they have none to measure by."""
    for pair in pairs:
        if pair.alignment is None:
            hint = "name their column: --columns source,target,alignment"
            raise DataError("no gold links to find the best head by", pair.path, pair.line, hint)
    gold = gold_links(predictor, pairs, words=words)
    if gold is None:
        raise DataError("the pairs' own links count tokens or characters, not words", pairs[0].path, hint="add --tokens")
    if not any(line.possible for line in gold):
        raise DataError("not one gold link to find the best head by", pairs[0].path)
    return gold


def _can_keep(config: Config) -> bool:
    return isinstance(config.model, TransformerSettings | StateSpaceSettings)


def _layers_and_heads(predictor: Predictor, option: str) -> tuple[int, int]:
    model = predictor.config.model
    if model.cross_attention is None:
        what = "no attention" if isinstance(model, Seq2SeqSettings) else "one attention"
        where = f"model.architecture={model.architecture}"
        raise ConfigError(f"this architecture has {what}, and no heads to choose from", where, f"leave {option} out")
    return model.cross_attention


def _links(
    predictor: Predictor, pairs: Sequence[Pair], words: bool, heads: Sequence[Head]
) -> Iterator[tuple[int, dict[Head, Links]]]:
    """The place of each pair that is not blank on both sides, and its links by each of `heads`; the longest first."""
    asked = predictor.asked(given_pairs(predictor, pairs))
    for row, looks in _looks(predictor, asked.corpus):
        source, target = asked.reads[row]
        chosen = np.stack([looks[head.layer, -1 if head.number is None else head.number] for head in heads])  # [heads, T, S]
        found = attention_links(chosen, source.encoded.words, target.words, words=words)
        yield asked.places[row], dict(zip(heads, found, strict=True))


def _looks(predictor: Predictor, corpus: Corpus) -> Iterator[tuple[int, Looks]]:
    """Each row of `corpus` with [layers, heads + 1, T, S]: where each head looks, and behind them their mean."""
    layers, heads = _layers_and_heads(predictor, "--head")
    longest = np.maximum(corpus.source_lengths, corpus.target_lengths)
    for rows in sequential_batches(longest**2 * (layers * (heads + 1)), CELLS):
        batch = corpus.batch(rows).to(predictor.device)
        with torch.inference_mode():
            maps = predictor.model.decoder.maps(batch.inputs, predictor.model.encode(batch.source))
            every = torch.stack([maps[f"source.{layer}"] for layer in range(layers)], 1)  # [B, L, H, T, S]
            every = torch.cat([every, every.mean(2, keepdim=True)], 2).float().cpu()
        if not bool(every.isfinite().all()):
            hint = "its training diverged or its weights are damaged"
            raise RunError("the model's attention is not numbers (NaN)", str(predictor.run.path), hint)
        yield from zip(rows.tolist(), every.numpy(), strict=True)
