"""The likeliest token at every position. Knows the contracts' Model and nothing of any architecture."""

from __future__ import annotations

import torch

from eyeline.contracts import BEGIN, END, Hypothesis, Model, Source
from eyeline.search.candidates import best_allowed
from eyeline.search.coverage import Looked
from eyeline.search.history import Ends, History
from eyeline.search.limits import Lengths, Limits
from eyeline.search.repeats import Said


def greedy(
    model: Model,
    source: Source,
    *,
    length_penalty: float = 1.0,
    min_length: int = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
) -> list[Hypothesis]:
    """One hypothesis a source: always the likeliest token, the lower id where two are equal.

    A sentence leaves the batch as soon as it ends, so that its neighbours cannot change it. It is the beam search of size 1 that
    stops at the first END; the beam search itself goes on while a longer output can have a better normalised score.

    Args:
        length_penalty: only for `normalized_score`; it decides nothing here.
        min_length: tokens before END may come.
        max_length: most tokens, END apart: one number, one a source, or None for `default_max_length`. After the last of them
            END is still asked for; where it is not the likeliest, the hypothesis is unfinished.
        attention: whether hypotheses carry the attention.
        coverage_penalty: as length_penalty.
        no_repeat_ngram: the length of an n-gram of tokens that no output has twice; 0 allows repeats. Where nothing but END is
            left it comes, however unlikely; before the minimum length the hypothesis stops there, unfinished.

    Raises:
        ConfigError: a length or penalty that cannot be, or a coverage penalty for a model without attention.
        RunError: the model answered NaN.
    """
    limits = Limits.of(source, min_length, max_length, length_penalty, coverage_penalty, no_repeat_ngram)
    if not len(limits.max_length):
        return []
    with torch.no_grad():
        history, ends = _run(model, source, limits, attention)
        return [hypothesis for (hypothesis,) in history.hypotheses(ends, limits)]


def _run(model: Model, source: Source, limits: Limits, attention: bool) -> tuple[History, Ends]:
    history, ends = History(source, attention), list[Ends]()
    device = source.ids.device
    alive = torch.arange(source.ids.shape[0])
    memory = model.encode(source)
    state = model.decoder.start(memory)
    tokens = torch.full_like(alive, BEGIN)
    looked = Looked.none(source, limits.coverage_penalty)
    said = Said.nothing(len(alive), limits.no_repeat_ngram)
    for position in range(int(limits.max_length.max()) + 1):
        step, state = model.decoder.step(tokens.to(device), state, memory)
        looked = looked.after(step.attention)
        log_probs = model.head(step, source)
        values, ids = best_allowed(log_probs, 1, limits.forbidden(position), said.repeating())  # [n, C]
        best = values.argmax(1, keepdim=True)  # the first of the greatest: values are sorted but for the forbidden ones
        scores, tokens = values.gather(1, best), ids.gather(1, best)[:, 0]  # [n, 1], [n]
        history.add(alive, tokens[:, None], scores, torch.zeros_like(best), step.attention)
        possible = scores[:, 0] > -torch.inf
        finished = (tokens == END) & possible
        done = finished | ~possible | (limits.max_length[alive] == position)
        keep = (~done).nonzero()[:, 0]
        said = said.select(keep, torch.zeros_like(keep)[:, None], tokens[keep, None])
        if bool(done.any()):
            gone = done.nonzero()[:, 0]
            at = torch.full_like(gone, position)
            penalties = looked.penalties(source, 1)[:, 0].masked_fill(~finished, 0.0)
            ends.append(Ends(alive[gone], at, torch.zeros_like(gone), scores[gone, 0], finished[gone], penalties[gone]))
            if not len(keep):
                break
            rows = keep.to(device)
            state, memory, source = state.select(rows), memory.select(rows), source.select(rows)
            alive, tokens, looked = alive[keep], tokens[keep], looked.select(keep, torch.zeros_like(keep)[:, None])
    return history, Ends.join(ends)
