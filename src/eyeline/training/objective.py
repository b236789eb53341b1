"""What an update minimises: the likelihood, and the losses on attention that the settings weigh. Knows losses; no optimisers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from eyeline.config import TrainingSettings
from eyeline.contracts import Step
from eyeline.data.corpus import Batch, Corpus
from eyeline.errors import ConfigError
from eyeline.loss import Loss, coverage_loss, guided_alignment_loss, negative_log_likelihood
from eyeline.training.recipes.consistency import divergence, twice
from eyeline.training.recipes.minimum_risk import COSTS, MinimumRisk
from eyeline.training.recipes.scheduled_sampling import ScheduledSampling
from eyeline.training.recipes.word_dropout import WordDropout


@dataclass(frozen=True)
class Objective:
    """Smoothed likelihood + `coverage` · coverage loss + `alignment` · guided alignment; each a sum over real target tokens.

    See et al. 2017, equation 13, weigh the coverage loss so; Chen et al. 2016, section 3, the alignment, whose weight is here
    relative to a likelihood of weight 1.
    """

    label_smoothing: float
    coverage: float
    alignment: float
    consistency: float = 0.0  # weight of R-Drop
    risk_weight: float = 0.0
    risk: MinimumRisk | None = None
    noise: WordDropout | None = None
    sampling: ScheduledSampling | None = None

    @classmethod
    def of(cls, settings: TrainingSettings, corpus: Corpus) -> Objective:
        """Raises ConfigError where attention is to be guided by links that the training pairs do not have."""
        if settings.guided_alignment and corpus.links is None:
            raise ConfigError(
                "the training pairs have no gold links to guide attention by",
                f"training.guided_alignment={settings.guided_alignment:g}",
                "name their column in data.columns: source,target,alignment",
            )
        dropout = settings.source_word_dropout, settings.target_word_dropout
        return cls(
            label_smoothing=settings.label_smoothing,
            coverage=settings.coverage_loss,
            alignment=settings.guided_alignment,
            consistency=settings.r_drop,
            risk_weight=settings.minimum_risk,
            risk=_risk(settings, corpus) if settings.minimum_risk else None,
            noise=WordDropout(*dropout) if any(dropout) else None,
            sampling=_sampling(settings) if settings.scheduled_sampling else None,
        )

    def __call__(self, model: Any, batch: Batch, number: int = 1) -> Loss:
        """The loss of a batch in update `number`, from 1.

        With R-Drop, which makes two passes, everything but their divergence is the mean over both: Liang et al. 2021, equation 4,
        halved, so that a learning rate means what it does without.

        Raises:
            ConfigError: a weight on the attention of a model that has none.
        """
        gold = batch
        if self.sampling is not None:
            batch = self.sampling(model, batch, number)
        batch = twice(batch) if self.consistency else batch
        batch = batch if self.noise is None else self.noise(batch)
        step: Step = model(batch.source, batch.inputs)
        loss = self._weighed(model, step, batch)
        if self.consistency:
            value = divergence(model.head, step, batch.source, batch.target_mask)
            loss = _halved(loss, value, self.consistency)
        if self.risk is not None:
            value = self.risk(model, gold)
            loss = replace(loss, objective=loss.objective + self.risk_weight * value, risk=value.detach())
        return loss

    def _weighed(self, model: Any, step: Step, batch: Batch) -> Loss:
        """The likelihood and the losses on attention of one step."""
        loss = negative_log_likelihood(model.head, step, batch.source, batch.outputs, batch.target_mask, self.label_smoothing)
        if self.coverage:
            value = coverage_loss(_attention(step, f"training.coverage_loss={self.coverage:g}"), batch.target_mask)
            loss = replace(loss, objective=loss.objective + self.coverage * value, coverage=value.detach())
        if self.alignment:
            assert batch.links is not None, "all batches of a corpus with links have them"
            attention = _attention(step, f"training.guided_alignment={self.alignment:g}")
            value = guided_alignment_loss(attention, batch.links, batch.target_mask)
            loss = replace(loss, objective=loss.objective + self.alignment * value, alignment=value.detach())
        return loss


def _halved(loss: Loss, divergence: Tensor, weight: float) -> Loss:
    """A loss over two passes as one over the pairs, and the divergence of the passes beside it."""
    coverage, alignment = (None if part is None else part / 2 for part in (loss.coverage, loss.alignment))
    objective = (loss.objective + weight * divergence) / 2
    return Loss(objective, loss.nll / 2, loss.tokens // 2, coverage, alignment, divergence.detach())


def _risk(settings: TrainingSettings, corpus: Corpus) -> MinimumRisk:
    return MinimumRisk(COSTS[settings.risk_metric], settings.risk_candidates, int(corpus.target_lengths.max()))


def _sampling(settings: TrainingSettings) -> ScheduledSampling:
    return ScheduledSampling(settings.scheduled_sampling, settings.scheduled_sampling_steps)


def _attention(step: Step, setting: str) -> Tensor:
    """[B, T, S] what the model looked at, in single precision at least, or an error that names the setting which needs it."""
    if "source" not in step.attention:
        raise ConfigError("this architecture has no attention to the source", setting, "set it to 0")
    weights = step.attention["source"]
    return weights.float() if torch.finfo(weights.dtype).bits < 32 else weights
