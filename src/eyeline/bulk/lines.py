"""A file of lines through a predictor, portion by portion, in bounded memory. Knows lines and predictions; not how either is
stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from eyeline.contracts import Prediction
from eyeline.predictor.inputs import Line, chunks

FIRST = 5  # line numbers kept of each kind: enough to look at
Ask = Callable[[Sequence[Line], int], list[Prediction]]  # lines, and the number of the first of them from 1
Form = Callable[[int, Prediction], bytes]  # the place of a line from 0, and its answer -> what is written


@dataclass
class Seen:
    """How many lines a person should hear of at the end, by kind, and which they are."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[int]] = field(default_factory=dict)  # numbers of the first few lines, from 1

    def add(self, kind: str, line: int) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        first = self.first.setdefault(kind, [])
        if len(first) < FIRST:
            first.append(line)

    def places(self, kind: str) -> str:
        """`3, 8, 9, 12, 15 …`: the first few lines of a kind."""
        first = self.first[kind]
        return ", ".join(map(str, first)) + (" …" if self.counts[kind] > len(first) else "")


class Output(Protocol):
    """Where predictions go."""

    @property
    def lines(self) -> int:
        """Lines of the input that are done already."""
        ...

    @property
    def seen(self) -> Seen:
        """What was counted among the lines that are done, and counts on."""
        ...

    def after(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines of the input that are not done yet. Raises UserError where the done ones are others than they were."""
        ...

    def write(self, data: bytes) -> None: ...

    def commit(self, lines: Sequence[Line]) -> None:
        """All that was written since the last time stands for `lines`."""
        ...


class ToStream:
    """An output that cannot be gone on with.

    Args:
        flush: after every portion, as for a person who waits for it.
    """

    lines = 0

    def __init__(self, stream: BinaryIO, flush: bool) -> None:
        self._stream, self._flush = stream, flush
        self.seen = Seen()

    def after(self, lines: Iterable[Line]) -> Iterator[Line]:
        return iter(lines)

    def write(self, data: bytes) -> None:
        self._stream.write(data)

    def commit(self, lines: Sequence[Line]) -> None:
        if self._flush:
            self._stream.flush()


def predict_lines(
    ask: Ask, lines: Iterable[Line], out: Output, form: Form, *, longest: int, at_once: int, attention: bool
) -> Iterator[Prediction]:
    """Writes the prediction of each line that is not done yet, and hands it on.

    Portions are the same whatever was done before, so that what is gone on with has the bytes of what was never disturbed: in
    another batch a score may differ in its last digit.

    Args:
        longest: longer sources, in tokens, are counted with those that were cut.
        at_once, attention: as for `chunks`.
    """
    number = out.lines
    for portion in chunks(out.after(lines), at_once, attention):
        for prediction in ask(portion, number + 1):
            out.write(form(number, prediction))
            number += 1
            if not prediction.finished:
                out.seen.add("unfinished", number)
            if prediction.truncated or len(prediction.source_tokens) - 1 > longest:
                out.seen.add("long", number)
            yield prediction
        out.commit(portion)
