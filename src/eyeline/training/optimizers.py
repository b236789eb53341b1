"""Which optimiser, over which weights. Knows parameters; not what they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from eyeline.config import TrainingSettings
from eyeline.errors import ConfigError, nearest
from eyeline.runs import is_part


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019) or schedule-free AdamW, with decay on matrices alone."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if settings.optimizer == "schedule-free":
        return ScheduleFree(groups, settings.learning_rate, settings.betas)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings.learning_rate, betas=settings.betas, fused=True)  # one pass over each weight


def freeze(model: nn.Module, patterns: Iterable[str]) -> list[str]:
    """Makes weights whose names match a pattern (`encoder.*`, `*.table.weight`) stay as they are; returns their names.

    A weight that has several names, as a shared table has, is frozen by any of them.

    Raises:
        ConfigError: a pattern matches nothing, or nothing is left to train.
    """
    named = list(model.named_parameters(remove_duplicate=False))
    frozen = []
    for pattern in patterns:
        found = [(name, parameter) for name, parameter in named if fnmatchcase(name, pattern)]
        if not found:
            near = nearest(pattern, [name for name, _ in named])
            raise ConfigError("no weight has such a name", f"training.freeze={pattern}", near)
        for name, parameter in found:
            parameter.requires_grad_(False)
            frozen.append(name)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError("every weight is frozen, and nothing is left to train", f"training.freeze={list(patterns)}")
    return list(dict.fromkeys(frozen))


class ScheduleFree(torch.optim.Optimizer):
    """Schedule-free AdamW (Defazio et al. 2024, algorithm 1).

    Gradients are taken at y, which is what the parameters hold: between z, which steps, and x, the weighted mean of all z, which
    is what the model should be judged by (`averages`). In the paper's letters, for update t from 1 at the rate γ_t:

        z ← z - γ_t g / (√v + ε) - γ_t λ y        c = γ_t² / Σ_i γ_i²
        x ← (1 - c) x + c z                       y = (1 - β₁) z + β₁ x

    with v the running mean of g² and √(1 - β₂^t) in γ_t. x is not stored: it follows from y and z.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, betas: tuple[float, float], eps: float = 1e-8) -> None:
        if not betas[0] > 0:
            raise ConfigError("schedule-free averages with the first of betas, which must be above 0", f"training.betas={betas}")
        super().__init__(list(groups), {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient. There is no closure to evaluate again."""
        assert closure is None, "gradients are taken once"
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def averages(self) -> list[tuple[Tensor, Tensor]]:
        """(parameter, x) of each parameter that was ever updated."""
        found = []
        for group in self.param_groups:
            beta = group["betas"][0]
            for parameter in group["params"]:
                if "z" in self.state.get(parameter, {}):
                    found.append((parameter, parameter.detach().lerp(self.state[parameter]["z"], 1 - 1 / beta)))
        return found

    def _update(self, y: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2) = self.state[y], group["betas"]
        if not state:
            state["step"] = torch.zeros(())
            state["weights"] = torch.zeros(())  # Σ γ_i²
            state["z"] = y.detach().clone(memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(y, memory_format=torch.preserve_format)
        z, squares = state["z"], state["exp_avg_sq"]
        state["step"] += 1
        rate = float(group["lr"]) * (1 - beta2 ** float(state["step"])) ** 0.5
        state["weights"] += rate**2
        share = rate**2 / float(state["weights"]) if rate else 0.0  # c
        squares.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        move = gradient / squares.sqrt().add_(group["eps"])
        if group["weight_decay"]:
            move.add_(y, alpha=group["weight_decay"])
        y.lerp_(z, share).sub_(move, alpha=rate * (1 - beta1 * (1 - share)))  # what the equations for x and y come to
        z.sub_(move, alpha=rate)


def all_finite(model: nn.Module, optimizer: torch.optim.Optimizer) -> bool:
    """Whether every weight and every running mean of the optimiser is a finite number; of parts, this process's."""
    moments = (value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor))
    tensors: Any = chain(model.parameters(), moments)
    return all(bool((tensor.to_local() if is_part(tensor) else tensor).isfinite().all()) for tensor in tensors)
