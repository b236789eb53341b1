"""Outputs drawn from a model. Knows courses; no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eyeline.contracts import Hypothesis, Source
from eyeline.errors import ConfigError
from eyeline.search.beam import NOTHING
from eyeline.search.candidates import allowed, best, check_numbers
from eyeline.search.course import Course, Searching
from eyeline.search.greedy import refuse_required
from eyeline.search.limits import Lengths, Limits, Ranking, Worth, average
from eyeline.search.rules import Demands, Rules
from eyeline.search.walk import walk

FIRST = 128  # of the likeliest, among which a nucleus is looked for first

Filter = Callable[[Tensor], Tensor]  # [R, X] log-probabilities -> the same with -inf for what is not drawn from, or sharper ones


def tempered(log_probs: Tensor, temperature: float) -> Tensor:
    """p^(1/temperature), shared out anew: below 1 the likely become likelier."""
    return (log_probs / temperature).log_softmax(-1)


def likeliest(log_probs: Tensor, count: int) -> Tensor:
    """The `count` likeliest (Fan et al. 2018), of equal ones the lower ids."""
    values, ids = best(log_probs, min(count, log_probs.shape[-1]))
    return torch.full_like(log_probs, -torch.inf).scatter(-1, ids, values)


def in_nucleus(log_probs: Tensor, mass: float) -> Tensor:
    """The fewest likeliest that have `mass` together (Holtzman et al. 2020)."""
    return _fewest(log_probs, log_probs, mass)


def typical(log_probs: Tensor, mass: float) -> Tensor:
    """The fewest that have `mass` together among those whose information is nearest to the expected one, -log p to the entropy
    (Meister et al. 2023, equation 8)."""
    shares = log_probs.log_softmax(-1)
    entropy = -(shares.exp() * shares.masked_fill(shares == -torch.inf, 0.0)).sum(-1, keepdim=True)
    return _fewest(log_probs, -(-shares - entropy).abs(), mass)


def _fewest(log_probs: Tensor, keys: Tensor, mass: float) -> Tensor:
    """Of each row the first ones by `keys`, the highest first, that together have `mass` of what there is; one at least."""
    shares = log_probs.softmax(-1)
    kept, many = _reaching(log_probs, shares, best(keys, min(FIRST, keys.shape[-1]))[1], mass)
    if bool(many.any()):  # else a vocabulary was not sorted, which takes twenty times as long
        order = keys[many].sort(dim=-1, descending=True, stable=True).indices
        kept[many] = _reaching(log_probs[many], shares[many], order, mass)[0]
    return kept


def _reaching(log_probs: Tensor, shares: Tensor, order: Tensor, mass: float) -> tuple[Tensor, Tensor]:
    """`log_probs` [R, X] of the first ones in `order` [R, C] whose `shares` [R, X] have `mass`, -inf for the others, and [R]
    whether all C may be too few."""
    found = shares.gather(-1, order)
    out = found.cumsum(-1) - found >= mass
    out[:, 0] = False
    kept = log_probs.gather(-1, order).masked_fill(out, -torch.inf)
    return torch.full_like(log_probs, -torch.inf).scatter(-1, order, kept), ~out[:, -1] & (order.shape[-1] < shares.shape[-1])


def drawn_from(*, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, typical_p: float = 1.0) -> tuple[Filter, ...]:
    """What is drawn from: all, sharpened by the temperature; of these the `top_k` likeliest (0: all), of these a nucleus, and of
    these the typical.

    Raises:
        ConfigError: a value that cannot be.
    """
    if not 0 < temperature < math.inf:
        raise ConfigError("a temperature is above 0", f"temperature={temperature}", "1 draws as the model says")
    if top_k < 0:
        raise ConfigError("a number of tokens is not negative", f"top-k={top_k}", "0 draws from all")
    for name, mass in (("top-p", top_p), ("typical", typical_p)):
        if not 0 < mass <= 1:
            raise ConfigError("a share of the probability is above 0 and at most 1", f"{name}={mass}")
    found: list[tuple[bool, Filter]] = [
        (temperature != 1, lambda log_probs: tempered(log_probs, temperature)),
        (top_k > 0, lambda log_probs: likeliest(log_probs, top_k)),
        (top_p < 1, lambda log_probs: in_nucleus(log_probs, top_p)),
        (typical_p < 1, lambda log_probs: typical(log_probs, typical_p)),
    ]
    return tuple(change for wanted, change in found if wanted)


@Searching
def sample(
    source: Source,
    *,
    samples: int = 1,
    seed: int = 1,
    filters: Sequence[Filter] = (),
    length_penalty: float = 1.0,
    min_length: Lengths = 0,
    max_length: Lengths = None,
    attention: bool = True,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    demands: Demands = NOTHING,
    worth: Worth = average,
) -> Course[list[list[Hypothesis]]]:
    """`samples` outputs of each source in the order in which they were drawn; the same one may come again.

    What is drawn follows from the seed, the source's ids and the number of the sample alone: neither from neighbours and their
    order, nor from how many samples or tokens there may be. The global random state is neither read nor changed. Scores are the
    model's own log-probabilities, whatever the filters do.

    Args:
        filters: what changes the log-probabilities that are drawn from, one after the other; see `drawn_from`.
        length_penalty, worth, coverage_penalty: only for `normalized_score`.
        min_length, max_length, attention, no_repeat_ngram, demands: as for `greedy`.

    Raises:
        ConfigError: a number, length, penalty or demand that cannot be, required phrases, or a coverage penalty for a model
            without attention.
        RunError: the model answered NaN.
    """
    if samples < 1:
        raise ConfigError("at least 1 sample is wanted", f"samples={samples}")
    if seed < 0:
        raise ConfigError("a seed is a whole number from 0", f"seed={seed}")
    ranking = Ranking(length_penalty, worth, coverage_penalty)
    limits = Limits.of(source, min_length, max_length, ranking, demands.begun(source.ids.shape[0]))
    refuse_required(demands)
    if not len(limits.max_length):
        return []
    limits, demands = limits.repeated(samples), demands.repeated(samples)
    pick = Drawn.of(source, seed, samples, int(limits.max_length.max()) + 1, tuple(filters))
    answers = yield from walk(source, pick, Rules.of(demands, no_repeat_ngram, limits), limits, attention, samples)
    return [answers[first : first + samples] for first in range(0, len(answers), samples)]


@dataclass(frozen=True)
class Drawn:
    """Draws by the inverse of the cumulative distribution, in the order of ids."""

    chances: Tensor  # [R, T] float64 in [0, 1): one for each position
    filters: tuple[Filter, ...]

    @classmethod
    def of(cls, source: Source, seed: int, samples: int, positions: int, filters: tuple[Filter, ...]) -> Drawn:
        """A generator for each source and sample."""
        lines = [ids[:length] for ids, length in zip(source.ids.tolist(), source.lengths.tolist(), strict=True)]
        rows = [np.random.default_rng([seed, number, *ids]).random(positions) for ids in lines for number in range(samples)]
        return cls(torch.from_numpy(np.stack(rows)), filters)

    def pick(self, log_probs: Tensor, position: int, rules: Rules) -> tuple[Tensor, Tensor]:
        check_numbers(log_probs)
        sharpened = allowed(log_probs, rules.forbidden(position), rules.bans(position))
        for change in self.filters:
            sharpened = change(sharpened)
        mass = sharpened.cpu().double().softmax(-1).cumsum(-1)  # [R, X]; NaN where nothing is possible
        whole = mass[:, -1]  # which rounding leaves near 1
        chance = torch.minimum(self.chances[:, position] * whole, whole.nextafter(torch.zeros_like(whole)))
        tokens = (mass <= chance[:, None]).sum(-1)
        scores = log_probs.gather(-1, tokens[:, None].to(log_probs.device))[:, 0].cpu().double()
        scores = scores.clamp(max=0.0).masked_fill(whole.isnan(), -torch.inf)
        return rules.forced(tokens, scores, log_probs, position)

    def select(self, keep: Tensor) -> Drawn:
        return Drawn(self.chances[keep], self.filters)
