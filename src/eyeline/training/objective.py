"""What an update minimises: the likelihood, and the losses on attention that the settings weigh. Knows losses; no optimisers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from eyeline.config import TrainingSettings
from eyeline.contracts import Step
from eyeline.data.corpus import Batch, Corpus
from eyeline.errors import ConfigError
from eyeline.loss import Loss, coverage_loss, guided_alignment_loss, negative_log_likelihood


@dataclass(frozen=True)
class Objective:
    """Smoothed likelihood + `coverage` · coverage loss + `alignment` · guided alignment; each a sum over real target tokens.

    See et al. 2017, equation 13, weigh the coverage loss so; Chen et al. 2016, section 3, the alignment, whose weight is here
    relative to a likelihood of weight 1.
    """

    label_smoothing: float
    coverage: float
    alignment: float

    @classmethod
    def of(cls, settings: TrainingSettings, corpus: Corpus) -> Objective:
        """Raises ConfigError where attention is to be guided by links that the training pairs do not have."""
        if settings.guided_alignment and corpus.links is None:
            raise ConfigError(
                "the training pairs have no gold links to guide attention by",
                f"training.guided_alignment={settings.guided_alignment:g}",
                "name their column in data.columns: source,target,alignment",
            )
        return cls(settings.label_smoothing, settings.coverage_loss, settings.guided_alignment)

    def __call__(self, model: Any, batch: Batch) -> Loss:
        """The loss of a batch. Raises ConfigError for a weight on the attention of a model that has none."""
        step: Step = model(batch.source, batch.inputs)
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


def _attention(step: Step, setting: str) -> Tensor:
    """[B, T, S] what the model looked at, or an error that names the setting which needs it."""
    if "source" not in step.attention:
        raise ConfigError("this architecture has no attention to the source", setting, "set it to 0")
    return step.attention["source"]
