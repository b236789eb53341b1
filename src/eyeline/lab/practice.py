"""Small models on small tasks, trained in a moment, for experiments that need some that have learnt something.

Knows models, losses and corpora of ids; no text and no run directories.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from eyeline.config_models import MODEL_SETTINGS, Architecture
from eyeline.contracts import RESERVED, Source
from eyeline.data.batches import sequential_batches, shuffled_batches
from eyeline.data.corpus import Corpus, Sequences, Sources
from eyeline.lab.bench import Bench
from eyeline.ladder import Seq2Seq, build
from eyeline.loss import negative_log_likelihood
from eyeline.search import greedy

FIRST = len(RESERVED)  # the id of the first symbol
CLIP = 1.0  # the norm that gradients are cut to
TOKENS = 16_384  # of a batch that is searched

Pairs = list[tuple[list[int], list[int]]]  # ids of both sides, without END


def model_of(
    architecture: str, symbols: int, seed: int, device: torch.device | str = "cpu", sizes: Mapping[str, Any] | None = None
) -> Seq2Seq:
    """A fresh model over `symbols` symbols on both sides, without dropout; `sizes` that its settings do not have are left out."""
    kind: type[Architecture] = MODEL_SETTINGS[architecture]
    given = {name: value for name, value in (sizes or {}).items() if name in kind.model_fields}
    settings: Any = kind.model_validate({"dropout": 0.0, **given})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build(settings, symbols + FIRST, symbols + FIRST)
    return model.to(device)


def widths(size: int) -> dict[str, Any]:
    """Sizes for `model_of` by which all rungs are of about one width."""
    recurrent = {"cell": "gru", "embedding_size": size, "encoder_size": size // 2, "decoder_size": size, "attention_size": size}
    return {**recurrent, "size": size, "feedforward_size": 2 * size}


def sequences(count: int, symbols: int, lengths: tuple[int, int], seed: int, answer: Callable[[list[int]], list[int]]) -> Pairs:
    """Symbols drawn evenly, lengths uniform from the first to the second of `lengths`, and what `answer` makes of each."""
    chance = random.Random(seed)
    sources = [[FIRST + chance.randrange(symbols) for _ in range(chance.randint(*lengths))] for _ in range(count)]
    return [(source, answer(source)) for source in sources]


def backwards(source: list[int]) -> list[int]:
    return source[::-1]


def same(source: list[int]) -> list[int]:
    return list(source)


def corpus_of(pairs: Pairs, symbols: int) -> Corpus:
    """The pairs as models read them, with the source's own ids as what could be copied."""
    ids = [source for source, _ in pairs]
    return Corpus(Sources.of(ids, ids, symbols + FIRST), Sequences.of(target for _, target in pairs))


def practise(
    model: Seq2Seq,
    corpus: Corpus,
    bench: Bench,
    *,
    steps: int,
    batch_tokens: int,
    rate: float = 3e-3,
    name: str = "",
    look: Callable[[int], None] | None = None,
    every: int = 0,
) -> list[float]:
    """Trains by Adam, its rate rising over a tenth of the steps and then falling to zero; returns each step's loss a token.

    Args:
        look: is called before the first step, and after each `every` of them, the model in evaluation mode.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    order: list[Any] = []
    losses, epoch = [], 0
    model.train()
    if name:
        bench.note(f"training {name}")
    for step in bench.each(range(steps), "steps"):
        if look is not None and step % every == 0:
            _looked(model, look, step)
        if not order:
            order = list(shuffled_batches(corpus.source_lengths, corpus.target_lengths, batch_tokens, (bench.seed, epoch)))
            epoch += 1
        batch = corpus.batch(order.pop()).to(bench.device)
        loss = negative_log_likelihood(
            model.head, model(batch.source, batch.inputs), batch.source, batch.outputs, batch.target_mask
        )
        optimizer.zero_grad(set_to_none=True)
        (loss.objective / loss.tokens).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / max(1, steps // 10), (steps - step) / max(1, steps - steps // 10))
        optimizer.step()
        losses.append(float(loss.nll) / loss.tokens)
    model.eval()
    if look is not None:
        look(steps)
    return losses


def _looked(model: Seq2Seq, look: Callable[[int], None], step: int) -> None:
    model.eval()
    look(step)
    model.train()


def exact(model: Seq2Seq, corpus: Corpus, device: torch.device | str = "cpu") -> np.ndarray[Any, np.dtype[np.bool_]]:
    """[pairs] whether the greedy output is the whole of the target."""
    right = np.zeros(len(corpus), dtype=np.bool_)
    longest = np.maximum(corpus.source_lengths, corpus.target_lengths)
    for rows in sequential_batches(longest, TOKENS):
        batch = corpus.batch(rows).to(device)
        most = [int(length) + 1 for length in corpus.lengths_of(rows)[1]]
        wanted = [tuple(ids[~hidden].tolist()) for ids, hidden in zip(batch.outputs, batch.target_mask, strict=True)]
        found = greedy(model, batch.source, max_length=most, attention=False)
        right[rows] = [answer.ids == ids for answer, ids in zip(found, wanted, strict=True)]
    return right


def binomial(right: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not of:
        return 0.0, 1.0
    z, share = 1.959964, right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * ((share * (1 - share) + z * z / (4 * of)) / of) ** 0.5 / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def one_source(ids: Sequence[Sequence[int]], symbols: int, device: torch.device | str = "cpu") -> Source:
    """A batch of sources without END in their ids, which is appended."""
    held = Sources.of(ids, ids, symbols + FIRST)
    return held.batch(np.arange(len(held))).to(device)
