"""Sources of real numbers as text, and targets that are positions as text. Knows numbers and strings; no tensors, no files.

A source of elements is one JSON list of numbers, or of equally long lists of them: `[[0.5, 1], [2, 3]]`. Its text is that list
with a blank after each element and none inside, so that an element is a word to whoever counts words. A target that points is
the positions with blanks between them, from 0: `2 0 1`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eyeline.contracts import UNKNOWN
from eyeline.errors import UserError
from eyeline.text.tokenizers import Encoded
from eyeline.text.words import word_spans

Values = npt.NDArray[np.float32]

SUCH_AS = "such as [[0.5, 1], [2, 3]]"
EMPTY = "[]"
LARGEST = float(np.finfo(np.float32).max)
_POSITION = re.compile("[0-9]{1,9}")


def written(elements: Any) -> str:
    """The text of a source given as nested lists, an array or a tensor.

    Raises:
        UserError: it is no list, an element is neither a finite number nor a list of them, or they are not equally wide.
    """
    elements = _plain(elements)
    if not isinstance(elements, list | tuple):
        raise UserError(f"a source of numbers is a list of elements, not {_kind(elements)}", hint=SUCH_AS)
    parts, wide = [], 0
    for place, element in enumerate(elements):
        element = _plain(element)
        numbers = element if isinstance(element, list | tuple) else None
        shown = [_number(number, place) for number in ([element] if numbers is None else numbers)]
        if place and len(shown) != wide:
            raise UserError(f"element {place} has {_numbers(len(shown))}, and those before it {wide}")
        if not shown:
            raise UserError(f"element {place} has no numbers")
        wide = len(shown)
        parts.append(shown[0] if numbers is None else f"[{','.join(shown)}]")
    return f"[{', '.join(parts)}]"


def read(text: str) -> str:
    """A JSON list in the form of `written`; of an object its "source". Raises UserError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not a JSON list of numbers: {_why(error)}", hint=SUCH_AS) from None
    if isinstance(value, dict):
        if "source" not in value:
            raise UserError("an object without a 'source'")
        value = value["source"]
        return read(value) if isinstance(value, str) else written(value)
    return written(value)


def looks_real(text: str) -> bool:
    """Whether a source is a list of numbers rather than text."""
    if not text.lstrip().startswith("["):
        return False
    try:
        read(text)
    except UserError:
        return False
    return True


def encoded(text: str) -> Encoded:
    """A source in the form of `written`: a token for each element, whose id says nothing; its numbers are in its surface."""
    spans, start = [], 1
    surfaces = text[1:-1].split(", ") if text != EMPTY else []
    for surface in surfaces:
        spans.append((start, start + len(surface)))
        start += len(surface) + 2
    return Encoded([UNKNOWN] * len(surfaces), [_shown(surface) for surface in surfaces], spans, text, surfaces)


def values(surfaces: Sequence[str], width: int) -> Values:
    """[elements, width] from the surfaces of `encoded`.

    Raises:
        UserError: the elements have not `width` numbers.
    """
    rows = [_row(surface) for surface in surfaces]
    if rows and len(rows[0]) != width:
        raise UserError(f"elements of {_numbers(len(rows[0]))} where the model reads {width}")
    return np.array(rows, dtype=np.float32).reshape(len(rows), width)


def elements(text: str) -> list[list[float]]:
    """The numbers of each element of a source, as they were written. Raises UserError."""
    return [_row(surface) for surface in encoded(read(text)).surfaces]


def width(text: str) -> int:
    """How many numbers the elements of a source in the form of `written` have; 0 where it has none."""
    surfaces = encoded(text).surfaces
    return len(_row(surfaces[0])) if surfaces else 0


def positions(text: str) -> list[int]:
    """The positions that a target names. Raises UserError for what is none."""
    found = []
    for start, end in word_spans(text):
        if not _POSITION.fullmatch(text[start:end]):
            raise UserError(f"'{text[start:end]}' is not a position of the source", hint="positions are written 2 0 1, from 0")
        found.append(int(text[start:end]))
    return found


def written_positions(places: Any) -> str:
    """The text of positions given as a list, an array or a tensor. Raises UserError."""
    places = _plain(places)
    for place in places if isinstance(places, list | tuple) else [places]:
        if isinstance(place, bool) or not isinstance(_plain(place), int) or place < 0:
            raise UserError(f"{json.dumps(place, default=str)[:20]} is not a position", hint="such as [2, 0, 1]")
    return " ".join(map(str, places))


def _plain(value: Any) -> Any:
    """Lists and numbers of arrays and tensors."""
    return value.tolist() if hasattr(value, "tolist") else value


def _number(value: Any, place: int) -> str:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"element {place} holds {_kind(value)}, not a number")
    if not -LARGEST <= value <= LARGEST:  # a NaN is not within anything
        shown = str(value) if not isinstance(value, float) or not math.isfinite(value) else f"{value:g}"
        raise UserError(f"element {place} holds {shown[:20]}, which is not a finite number")
    return repr(value)


def _kind(value: Any) -> str:
    return "null" if value is None else "a list" if isinstance(value, list | tuple) else type(value).__name__


def _numbers(count: int) -> str:
    return f"{count} number{'s' if count != 1 else ''}"


def _row(surface: str) -> list[float]:
    value = json.loads(surface)
    return value if isinstance(value, list) else [value]


def _shown(surface: str) -> str:
    """An element for a person: `(0.5, 1)`, three digits of each number."""
    numbers = ", ".join(f"{number:.3g}" for number in _row(surface))
    return f"({numbers})" if surface.startswith("[") else numbers


def _why(error: Exception) -> str:
    message = getattr(error, "msg", None) or "nested too deeply, or a number too long"
    column = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
    return f"{message[0].lower()}{message[1:]}{column}"
