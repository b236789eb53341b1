"""From a decoder's features to log-probabilities. Knows `Step` and `Source`; not decoders."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from eyeline.contracts import Source, Step
from eyeline.errors import UserError
from eyeline.products import Linear

LEAST_MASS = 1e-30  # attention that underflows to 0 on a symbol of the source leaves it possible: a finite log, a finite gradient


def wide(numbers: Tensor) -> Tensor:
    """The numbers in single precision at least: sums of many logarithms must not be rounded to the digits of half the bits."""
    return numbers.float() if torch.finfo(numbers.dtype).bits < 32 else numbers


class Generate(nn.Module):
    """Output symbols come from the target vocabulary: log softmax(W f + b)."""

    def __init__(self, size: int, vocabulary: int) -> None:
        super().__init__()
        self.project = Linear(size, vocabulary)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, step: Step, source: Source) -> Tensor:
        """[..., V] from features [..., D]; the source is not needed."""
        logits = wide(self.project(step.features))
        if torch.is_grad_enabled() or not logits.is_cpu:
            return logits.log_softmax(-1)
        return torch.log_softmax(logits, -1, out=logits)  # megabytes a step, which need not be fetched twice

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """W [V, D] and b [V]."""
        return self.project.weight, self.project.bias


class PointOrGenerate(nn.Module):
    """p(w) = p_gen P_vocab(w) + (1 - p_gen) Σ_{j: w_j = w} α_j: See et al. 2017, equation 9, over V and this source's own words.

    Computed from logarithms, so that a saturated gate leaves likelihoods and gradients finite. The step's `gate` is the logit of
    p_gen, and its attention to "source" is α. Where that has no weight on any symbol there is nothing to copy: p is P_vocab.

    Args:
        generate: the head of P_vocab, over V symbols.
    """

    def __init__(self, generate: nn.Module) -> None:
        super().__init__()
        self.generate = generate

    def forward(self, step: Step, source: Source) -> Tensor:
        """[..., V + extra], -inf for what is neither in the vocabulary nor in the row's own source.

        Raises:
            UserError: the source has no extended ids.
        """
        if source.copy_ids is None:
            raise UserError(
                "this model copies, and the source has no extended ids to copy", hint="give Source.copy_ids, see data.copying"
            )
        assert step.gate is not None, "a decoder that says how likely it generates"
        N, S = source.ids.shape
        log_vocabulary: Tensor = self.generate(step, source)  # [..., V]
        X = log_vocabulary.shape[-1] + source.extra
        weights = step.attention["source"].to(log_vocabulary.dtype).reshape(N, -1, S)  # [N, M, S]: M rows or positions a source
        weights = weights.masked_fill(source.mask[:, None], 0.0)
        gate = step.gate.reshape(N, -1, 1)
        generating = logsigmoid(gate).masked_fill(weights.sum(-1, keepdim=True) == 0, 0.0)  # [N, M, 1]
        generated = generating + log_vocabulary.reshape(N, weights.shape[1], -1)  # [N, M, V]
        # The sum of equation 9 is taken where a symbol stands first, and only there does it enter the long vector over X.
        first, ids = _first_places(source.copy_ids, source.mask, X)
        mass = torch.zeros_like(weights).scatter_add(-1, first[:, None].expand_as(weights), weights)  # repeated symbols add up
        copied = logsigmoid(-gate) + mass.clamp(min=LEAST_MASS).log()  # [N, M, S]
        columns = ids[:, None].expand_as(weights)
        whole = pad(generated, (0, source.extra + 1), value=-torch.inf)  # [N, M, X + 1], the last for what is no first place
        mixed = torch.logaddexp(whole.gather(-1, columns), copied).clamp(max=0.0)  # rounding makes no probability more than 1
        return whole.scatter(-1, columns, mixed)[..., :X].reshape(*log_vocabulary.shape[:-1], X)


def _first_places(ids: Tensor, mask: Tensor, nowhere: int) -> tuple[Tensor, Tensor]:
    """[N, S] where in its source each symbol of `ids` [N, S] stands first, and the ids again, `nowhere` at all other places.

    What `mask` [N, S] hides is at no first place, and no first place of anything that is seen. By sorting, so that long sources
    do not cost the square of their length at every step.
    """
    known, order = ids.masked_fill(mask, nowhere).sort(stable=True)  # equal ones lie together, in the order of their places
    places = torch.arange(ids.shape[1], device=ids.device)
    begins = torch.ones_like(mask)
    begins[:, 1:] = known[:, 1:] != known[:, :-1]
    run = torch.where(begins, places, 0).cummax(1).values  # where in `known` the equal ones of each begin
    first = torch.empty_like(order).scatter(1, order, order.gather(1, run))
    leads = (first == places) & ~mask
    return first, torch.where(leads, ids, nowhere)
