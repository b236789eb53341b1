"""The log-probability of given outputs, by teacher forcing. Knows the contracts' Model and nothing of any architecture."""

from __future__ import annotations

import torch
from torch import Tensor

from eyeline.contracts import END, Hypothesis, Model, Source
from eyeline.search.candidates import check_numbers
from eyeline.search.coverage import attended
from eyeline.search.coverage import coverage_penalty as penalty_of
from eyeline.search.limits import Ranking, Worth, average, total

ROWS_AT_ONCE = 1024  # rows of logits that stand in memory together: 128 MB at a vocabulary of 32,000


def score(
    model: Model,
    source: Source,
    inputs: Tensor,
    outputs: Tensor,
    target_mask: Tensor,
    *,
    length_penalty: float = 1.0,
    attention: bool = False,
    coverage_penalty: float = 0.0,
    worth: Worth = average,
) -> list[Hypothesis]:
    """The given outputs as a search would have reported them: same token scores, same sums, same normalised score.

    Natural logarithms; END counts where it is among the real tokens, and only then is the answer `finished`. The perplexity of a
    corpus is `exp(-sum of the scores / sum of the lengths)` over all its answers, whatever the batches.

    Args:
        inputs: [B, T] what the decoder reads, BEGIN first.
        outputs: [B, T] what it should answer, END last.
        target_mask: [B, T] True where hidden; what stands there is never looked at.
        length_penalty, worth: for `normalized_score`.
        attention: whether the answers carry the attention, [real tokens, real source positions].
        coverage_penalty: for the `normalized_score` of what is finished.

    Returns:
        One a source. A token that the model holds impossible has the score -inf, and so has its sum.

    Raises:
        ConfigError: a coverage penalty that cannot be, or for a model without attention.
        RunError: the model answered NaN at a real token.
    """
    ranking = Ranking(length_penalty, worth, coverage_penalty)
    if not inputs.numel():
        return []
    wanted = outputs.masked_fill(target_mask, END)[..., None]  # [B, T, 1]; an id that surely exists where hidden
    with torch.no_grad():
        step = model.decoder(inputs, model.encode(source))
        parts = [model.head(step.at(part), source).gather(-1, wanted[part])[..., 0] for part in _slices(inputs)]
    table = torch.cat(parts, 1).cpu().double()  # [B, T]
    outputs, real = outputs.cpu(), ~target_mask.cpu()
    check_numbers(table[real])
    gates = None if step.gate is None else step.gate.sigmoid().cpu()  # [B, T]
    maps = {name: weights.float().cpu() for name, weights in step.attention.items()} if attention else {}
    penalties = torch.zeros(len(outputs), dtype=torch.float64)
    if coverage_penalty:
        looks = attended(step.attention, coverage_penalty).masked_fill(target_mask[..., None], 0.0)
        penalties = penalty_of(looks.sum(1), source.mask, coverage_penalty)
    result = []
    for b, length in enumerate(source.lengths.tolist()):
        ids = tuple(outputs[b][real[b]].tolist())
        scores = tuple(table[b][real[b]].clamp(max=0.0).tolist())
        rows = {name: weights[b][real[b]][:, :length].clone() for name, weights in maps.items()}
        summed, finished = total(scores), ids[-1:] == (END,)
        normalized = ranking.normalize(summed, len(ids)) + (float(penalties[b]) if finished else 0.0)
        generating = None if gates is None else tuple(gates[b][real[b]].tolist())
        result.append(Hypothesis(ids, scores, summed, normalized, finished, rows, generating))
    return result


def _slices(inputs: Tensor) -> list[tuple[slice, slice]]:
    """Indices that part `inputs` [B, T] by positions, at most ROWS_AT_ONCE rows or one position each."""
    B, T = inputs.shape
    size = max(1, ROWS_AT_ONCE // max(1, B))
    return [(slice(None), slice(first, first + size)) for first in range(0, T, size)]
