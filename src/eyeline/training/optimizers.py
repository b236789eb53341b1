"""Which optimiser, over which weights. Knows parameters; not what they belong to."""

from __future__ import annotations

import torch
from torch import nn

from eyeline.config import TrainingSettings


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015), or AdamW (Loshchilov & Hutter 2019), with decay on matrices alone."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind([group for group in groups if group["params"]], lr=settings.learning_rate, betas=settings.betas)


def all_finite(model: nn.Module, optimizer: torch.optim.Optimizer) -> bool:
    """Whether every weight and every running mean of the optimiser is a finite number."""
    moments = (value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor))
    return all(bool(tensor.isfinite().all()) for group in (model.parameters(), moments) for tensor in group)
