"""One update: gradients of a window of batches, clipped once, and only sound ones applied. Knows no order, no disk, no clock.

Of several processes each works through its own batches of the window; gradients and sums are then those of all of them.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import nn

from eyeline.data.corpus import Batch
from eyeline.errors import UserError
from eyeline.training.compiling import as_written
from eyeline.training.diagnosis import first_gone_wrong
from eyeline.training.distributed import World
from eyeline.training.objective import Objective
from eyeline.training.precision import LossScale, Precision, cast
from eyeline.training.randomness import random_states, restore, undisturbed
from eyeline.training.state import Meter
from eyeline.training.weights import Replicas, Weights, gathered
from eyeline.training.windows import Windows

LARGEST_LOSS = 1e6  # nats a token; saturated cells keep a loss finite, at 1e30, long after everything learnt is gone


class PairTooLarge(UserError):
    """The memory does not hold a single pair: `row`, from 0, of those that are trained on."""

    def __init__(self, what: str, row: int, hint: str) -> None:
        self.row = row
        super().__init__(what, f"training pair {row + 1}", hint)


@dataclass(frozen=True)
class Update:
    """What became of an update."""

    sums: Meter
    wrong: str = ""  # the number that is no sound one, for which the update was left out
    rescaled: bool = False  # left out because the loss was scaled too high
    module: str = ""  # where that came from, as far as it can be told
    split: int = 0  # batches worked through in two parts because the memory was full
    tokens: int = 0  # real target tokens of the window, also where the update was left out


class Updater:
    """Makes updates of a model.

    Args:
        windows: where batches come from; it halves those that the memory does not hold.
        clip_norm: the largest norm of a gradient; 0 leaves gradients alone.
        world: the processes that train together; without it this one alone.
        weights: where the model's weights are among these.
        precision: of the products of matrices.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        windows: Windows,
        clip_norm: float,
        world: World | None = None,
        weights: Weights | None = None,
        precision: Precision = "fp32",
    ) -> None:
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self.windows, self.clip_norm, self.device = windows, clip_norm, windows.device
        self.world = world or World()
        self.weights = weights or Replicas(model, self.world)
        self.precision: Precision = precision

    def __call__(self, window: list[Batch], rate: float, number: int, scale: LossScale) -> Update:
        """Update `number`, from 1, at the learning `rate`; the gradient is the mean over the window's real target tokens.

        Every process calls this with its own batches of the window, which may be none; the answer is of all of them. The loss is
        multiplied by `scale`, which is changed by what becomes of it.

        Raises:
            PairTooLarge: the memory does not hold a single pair.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        states = random_states(self.device)
        tokens = int(self.world.sum(sum(batch.target_tokens for batch in window))[0])
        self.weights.gather()
        own, split = self._gradient(window, tokens / scale.value, number)
        self.weights.exchange()
        self._unscale(scale.value)
        norm = self.weights.clip(self.clip_norm)
        sums, split = self._over_all(own, split)
        if sums.loss <= LARGEST_LOSS and scale.update(math.isfinite(norm), self.precision):
            self.weights.forget()
            return Update(sums, rescaled=True, split=split, tokens=tokens)
        if sums.loss <= LARGEST_LOSS and math.isfinite(norm):  # a NaN is not less than anything
            self.optimizer.step()
            return Update(sums, split=split, tokens=tokens)
        wrong = f"gradient norm {norm}" if sums.loss <= LARGEST_LOSS else f"loss {sums.loss:.4g}"
        self.weights.forget()
        with gathered(self.weights), undisturbed(self.device):
            restore(states, self.device)
            with as_written():
                module = first_gone_wrong(self.model, lambda batch: self._objective(batch, number), window)
            self.weights.forget()
        modules = [name for names in self.world.texts([module] if module else []) for name in names]
        return Update(sums, wrong, module=modules[0] if modules else "", split=split, tokens=tokens)

    def rehearse(self, batch: Batch) -> int:
        """The gradient of a batch, thrown away: 1 when the memory suffices, else into how many parts the batch was split.

        Nothing is changed by it, the states of the random generators included.

        Raises:
            PairTooLarge: the memory does not hold a single pair.
        """
        parameters = [] if self.optimizer.state else [p for p in self.model.parameters() if p.requires_grad]
        moments = [torch.empty_like(parameter) for parameter in parameters for _ in range(2)]  # what Adam will need
        with gathered(self.weights), undisturbed(self.device):
            _, split = self._gradient([batch], batch.target_tokens, 1)
            self.weights.forget()
        del moments
        return 1 + split

    def _over_all(self, own: Meter, split: int) -> tuple[Meter, int]:
        """Sums over the batches of this process as those over the batches of all; so the number of batches that were split."""
        if self.world.size == 1:
            return own, split
        nll, tokens, _, *parts, splits = self.world.sum(*astuple(own), split)
        return Meter(nll, int(tokens), 0.0, *parts), int(splits)

    def _unscale(self, scale: float) -> None:
        if scale != 1:
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(scale)

    def _gradient(self, window: list[Batch], divisor: float, number: int) -> tuple[Meter, int]:
        """Leaves the gradient of batches in the parameters; their sums, and how many were split for want of memory.

        `divisor`: of the gradient, the real target tokens of the whole window.

        What a batch left behind when the memory was full cannot be told from the rest, so that the window is begun anew, with the
        same random numbers, and that batch in two parts.
        """
        states, split = random_states(self.device), 0
        while True:
            self.weights.forget()
            sums, full = self._accumulate(window, divisor, number)
            if full is None:
                return sums, split
            split += 1
            window = [*window[:full], *self._parts(window[full]), *window[full + 1 :]]
            restore(states, self.device)

    def _accumulate(self, window: list[Batch], divisor: float, number: int) -> tuple[Meter, int | None]:
        """Adds up the window's gradient; the sums, and the place of the batch that the memory did not hold, if one was."""
        sums = Meter()
        for place, batch in enumerate(window):
            try:
                sums.add(self._backward(batch, divisor, number))
            except (torch.cuda.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                return sums, place  # and with the error go the tensors that it holds
        return sums, None

    def _backward(self, batch: Batch, divisor: float, number: int) -> Meter:
        """Adds a batch's share of the gradient of a window; returns the batch's sums."""
        loss = self._objective(batch, number)
        (loss.objective / divisor).backward()
        parts = [0.0 if part is None else float(part) for part in (loss.coverage, loss.alignment, loss.consistency, loss.risk)]
        return Meter(float(loss.nll), batch.target_tokens, 0.0, *parts)

    def _objective(self, batch: Batch, number: int) -> Any:
        with cast(self.precision, self.device):
            return self.objective(self.model, batch, number)

    def _parts(self, batch: Batch) -> list[Batch]:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if len(batch.rows) > 1:
            return self.windows.halves(batch)
        S, T = batch.source.ids.shape[1], batch.outputs.shape[1]
        hint = "leave it out with a lower data.max_length and data.too_long: skip, or take a smaller model"
        raise PairTooLarge(f"the memory does not hold a single pair of {S} and {T} tokens", int(batch.rows[0]), hint)


def out_of_memory(error: BaseException) -> bool:
    """Whether a device or the system had no memory left."""
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return any(said in text for said in ("can't allocate memory", "out of memory", "alloc_failed"))
