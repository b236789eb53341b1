"""A search that nobody waits for any more ends at its next step. Knows the contracts' Model only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from eyeline.contracts import Decoder, Head, Model, Source, Step


class Stopped(Exception):
    """Nobody waits for the answer."""


class Brake:
    """Says whether the answer that is being made is still waited for. One thread makes answers, any may ask for an end."""

    def __init__(self) -> None:
        self._wanted: Callable[[], bool] | None = None

    @contextmanager
    def while_wanted(self, wanted: Callable[[], bool]) -> Iterator[None]:
        """Inside, a step of a braked model raises Stopped once `wanted` says no."""
        self._wanted = wanted
        try:
            yield
        finally:
            self._wanted = None

    def check(self) -> None:
        """Raises Stopped."""
        if self._wanted is not None and not self._wanted():
            raise Stopped


class BrakedDecoder:
    """A decoder whose every step asks the brake."""

    def __init__(self, decoder: Decoder[Any, Any], brake: Brake) -> None:
        self._decoder, self._brake = decoder, brake

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def start(self, memory: Any) -> Any:
        self._brake.check()
        return self._decoder.start(memory)

    def step(self, token: Tensor, state: Any, memory: Any) -> tuple[Step, Any]:
        self._brake.check()
        return self._decoder.step(token, state, memory)

    def __call__(self, tokens: Tensor, memory: Any) -> Step:
        self._brake.check()
        return self._decoder(tokens, memory)


class Braked:
    """A model as it is, but for its decoder."""

    def __init__(self, model: Model, brake: Brake) -> None:
        self._model = model
        self.decoder: Decoder[Any, Any] = BrakedDecoder(model.decoder, brake)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def head(self) -> Head:
        return self._model.head

    def encode(self, source: Source) -> Any:
        return self._model.encode(source)
