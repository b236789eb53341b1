"""From a decoder's features to log-probabilities. Knows `Step` and `Source`; not decoders."""

from __future__ import annotations

from torch import Tensor, nn

from eyeline.contracts import Source, Step


class Generate(nn.Module):
    """Output symbols come from the target vocabulary: log softmax(W f + b)."""

    def __init__(self, size: int, vocabulary: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, vocabulary)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, step: Step, source: Source) -> Tensor:
        """[..., V] from features [..., D]; the source is not needed."""
        return self.project(step.features).log_softmax(-1)  # type: ignore[no-any-return]
