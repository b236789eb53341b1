"""Every word of a report, in every language that it is written in. Knows the files of words beside it; no numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "ko")


def sentences(language: str) -> Mapping[str, str]:
    """A sentence with gaps for each kind of fact."""
    return _words(language)["sentences"]


def labels(language: str) -> Mapping[str, str]:
    """Headings, names of columns, and notes."""
    return _words(language)["labels"]


@cache
def _words(language: str) -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = json.loads(
        (files("eyeline.compare") / f"words.{language}.json").read_text(encoding="utf-8")
    )
    return found


def joined(parts: Sequence[str], language: str) -> str:
    """`a, b and c`."""
    if len(parts) < 2 or language != "en":
        return ", ".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]
