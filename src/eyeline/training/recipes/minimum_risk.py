"""Minimum-risk training: what a model's own outputs cost in expectation (Shen et al. 2016). Knows models as search does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint

from eyeline.contracts import BEGIN, END, PAD, Source, Step
from eyeline.data.corpus import Batch
from eyeline.training.recipes.slices import row_slices

Ids = tuple[int, ...]  # an output without END
Cost = Callable[[Sequence[int], Sequence[int]], float]  # of an output against the gold one, 0 where they are the same


def symbol_error_rate(output: Sequence[int], gold: Sequence[int]) -> float:
    """Edits for each gold token, END counted among these, so that an empty gold output has a cost too."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(output, gold) / (len(gold) + 1)


def any_difference(output: Sequence[int], gold: Sequence[int]) -> float:
    return float(tuple(output) != tuple(gold))


def lacking_bleu(output: Sequence[int], gold: Sequence[int]) -> float:
    """1 - sentence BLEU of tokens, with one added to the counts of n-grams from 2 on (Lin & Och 2004, section 4)."""
    if tuple(output) == tuple(gold):
        return 0.0
    precisions = []
    for n in range(1, 5):
        said, wanted = (Counter(zip(*(ids[place:] for place in range(n)), strict=False)) for ids in (output, gold))
        more = int(n > 1)
        precisions.append(((said & wanted).total() + more) / max(1, said.total() + more))
    if not all(precisions):
        return 1.0
    brevity = min(0.0, 1 - len(gold) / max(1, len(output)))
    return 1 - math.exp(brevity + sum(map(math.log, precisions)) / 4)


COSTS: Mapping[str, Cost] = {"symbol_error_rate": symbol_error_rate, "exact_match": any_difference, "bleu": lacking_bleu}


@dataclass(frozen=True)
class MinimumRisk:
    """Σ_y Q(y) Δ(y, gold) with Q(y) = p(y) / Σ p over some outputs y: Shen et al. 2016, equations 7 to 9.

    The outputs are the gold one and what is drawn from the model, each once; unfinished ones are left out. Q is not sharpened
    (α = 1 in equation 9, as Edunov et al. 2018, section 3.2; Shen et al. took 0.005 and a hundred outputs).

    Args:
        cost: Δ, of ids.
        candidates: outputs drawn for each source.
        longest: tokens of an output, END counted; no more than twice the longest of the batch's targets either.
    """

    cost: Cost
    candidates: int
    longest: int

    def __call__(self, model: Any, batch: Batch) -> Tensor:
        """[] the risk of each source times its real target tokens, summed: divided by these, what a token costs."""
        golds = [tuple(ids[~hidden].tolist())[:-1] for ids, hidden in zip(batch.outputs, batch.target_mask, strict=True)]
        outputs = [[gold, *sorted(found - {gold})] for gold, found in zip(golds, self._drawn(model, batch), strict=True)]
        owners = torch.tensor([n for n, several in enumerate(outputs) for _ in several], device=batch.inputs.device)
        scores = _scores(model, batch.source, [output for several in outputs for output in several], owners)  # [R]
        costs = scores.new_tensor([self.cost(y, gold) for gold, several in zip(golds, outputs, strict=True) for y in several])
        risk = scores.new_zeros(())
        for number, gold in enumerate(golds):
            own = owners == number
            risk = risk + (len(gold) + 1) * (scores[own].softmax(0) * costs[own]).sum()
        return risk

    def _drawn(self, model: Any, batch: Batch) -> list[set[Ids]]:
        """Finished outputs drawn from the model as it predicts, without dropout; equal ones once."""
        training = model.training
        model.eval()
        try:
            with torch.no_grad():
                return self._draw(model, batch.source, min(self.longest, 2 * batch.outputs.shape[1]))
        finally:
            model.train(training)

    def _draw(self, model: Any, source: Source, longest: int) -> list[set[Ids]]:
        sources, device = source.ids.shape[0], source.ids.device
        memory = model.encode(source)
        rows = torch.arange(sources, device=device).repeat_interleave(self.candidates)
        state = model.decoder.start(memory).select(rows)
        tokens, said = torch.full_like(rows, BEGIN), []
        ended = torch.zeros_like(rows, dtype=torch.bool)
        for _ in range(longest):
            step, state = model.decoder.step(tokens, state, memory)
            probabilities = model.head(step, source).exp()  # [R, X]
            probabilities[:, [PAD, BEGIN]] = 0.0
            waits = torch.empty_like(probabilities).exponential_()  # the first of X clocks with rates p_w rings at w
            tokens = (probabilities / waits).argmax(-1).masked_fill(ended, PAD)
            said.append(tokens)
            ended = ended | (tokens == END)
            if bool(ended.all()):
                break
        found: list[set[Ids]] = [set() for _ in range(sources)]
        for owner, ids in zip(rows.tolist(), torch.stack(said, 1).tolist(), strict=True):
            if END in ids:
                found[owner].add(tuple(ids[: ids.index(END)]))
        return found


def _scores(model: Any, source: Source, outputs: Sequence[Ids], owners: Tensor) -> Tensor:
    """[R] the log-probability of each output under the source that it is of, by teacher forcing, with gradients."""
    device = owners.device
    wanted = pad_sequence([torch.tensor([*ids, END]) for ids in outputs], batch_first=True, padding_value=PAD).to(device)
    lengths = torch.tensor([len(ids) + 1 for ids in outputs], device=device)
    hidden = torch.arange(wanted.shape[1], device=device) >= lengths[:, None]
    inputs = torch.cat([torch.full_like(wanted[:, :1], BEGIN), wanted[:, :-1]], 1).masked_fill(hidden, PAD)
    below = source.select(owners)
    step = model.decoder(inputs, model.encode(source).select(owners))
    return torch.cat(
        [
            checkpoint(_sums, model.head, step, below, wanted, hidden, rows, use_reentrant=False)
            for rows in row_slices(model.head, step, below, *wanted.shape)
        ]
    )


def _sums(head: Any, step: Step, source: Source, wanted: Tensor, hidden: Tensor, rows: slice) -> Tensor:
    index = torch.arange(rows.start, rows.stop, device=wanted.device)
    log_probs = head(step.at(rows), source.select(index)).gather(-1, wanted[rows, :, None])[..., 0]  # [r, T]
    result: Tensor = log_probs.masked_fill(hidden[rows], 0.0).sum(1)
    return result
