"""SIGINT and SIGTERM as a wish to stop, so that whoever works can finish what is begun. Knows nothing of training."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType


class StopSignals:
    """Inside `with`, the first SIGINT or SIGTERM is remembered; a second one ends the work at once (KeyboardInterrupt).

    Outside the main thread nothing is caught: whoever runs us there handles signals.
    """

    def __init__(self) -> None:
        self.received: str | None = None  # the signal's name
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignals:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        except ValueError:
            assert not self._before, "only the first call can be refused"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = signal.Signals(number).name
