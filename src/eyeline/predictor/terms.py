"""A terminology: which phrases outputs have to have, or may not, where their source has a term. Knows text; no ids and no
model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.errors import DataError, UserError, nearest
from eyeline.text.lines import read_lines, require_line

KEYS = ("source", "require", "forbid", "line")
KINDS = ("require", "forbid")


@dataclass(frozen=True)
class Term:
    """One entry. Without `source` and `line` it holds for every line."""

    source: str = ""  # words that a line has to have somewhere; a last `*` lets the last word go on
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    line: int | None = None  # of the input, from 1

    def matches(self, text: str, line: int) -> bool:
        """Whether it holds for a line; `text` and `source` spelt alike. A term is matched as whole words."""
        if self.line is not None and self.line != line:
            return False
        if not self.source:
            return True
        words = self.source.rstrip("*")
        if words not in text:  # most terms by far
            return False
        before = r"(?<!\w)" if words[0].isalnum() else ""
        after = r"(?!\w)" if self.source[-1].isalnum() else ""
        return re.search(before + re.escape(words) + after, text) is not None


def read_terms(path: str | Path) -> list[Term]:
    """The entries of a file.

    `FILE.jsonl`: an object a line, with some of `source`, `require`, `forbid` (a string or a list of them each) and `line`. Any
    other
    file: tab-separated, `SOURCE<TAB>TARGET` or `SOURCE<TAB>TARGET<TAB>forbid`. Empty lines say nothing.

    Raises:
        DataError: a line that is neither, with its number.
    """
    name, terms = str(path), []
    read = _of_json if name.lower().removesuffix(".gz").endswith(".jsonl") else _of_columns
    for line in read_lines(name, name):
        text = require_line(line, name).text
        if not text.strip():
            continue
        try:
            terms.append(read(text))
        except UserError as error:
            raise DataError(error.what, name, line.number, error.hint) from None
    return terms


def check_terms(given: str | Path | Iterable[Term | Mapping[str, Any]]) -> list[Term]:
    """Entries from a file, or as Python has them: Terms, or mappings as in JSON. Raises UserError for what is none."""
    if isinstance(given, str | Path):
        return read_terms(given)
    terms = []
    for place, entry in enumerate(given):
        try:
            terms.append(entry if isinstance(entry, Term) else _of_mapping(entry))
        except UserError as error:
            raise UserError(error.what, f"constraints[{place}]", error.hint) from None
    return terms


def demands_of(terms: Sequence[Term], text: str, line: int) -> tuple[list[str], list[str]]:
    """What the output to a line has to have, and what it may not, each once."""
    held = [term for term in terms if term.matches(text, line)]
    required = dict.fromkeys(phrase for term in held for phrase in term.require)
    return list(required), list(dict.fromkeys(phrase for term in held for phrase in term.forbid))


def _of_columns(text: str) -> Term:
    cells = [cell.strip() for cell in text.split("\t")]
    if len(cells) not in (2, 3) or not cells[1]:
        raise UserError("not a term: SOURCE, a tab, TARGET are wanted, and perhaps a tab and forbid")
    kind = cells[2] if len(cells) == 3 and cells[2] else "require"
    if kind not in KINDS:
        raise UserError(f"not what a term does: {kind}", hint=nearest(kind, KINDS))
    phrases = {kind: (cells[1],)}
    return _checked(Term(cells[0], phrases.get("require", ()), phrases.get("forbid", ())))


def _of_json(text: str) -> Term:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UserError(f"not JSON: {error}") from None
    return _of_mapping(value)


def _of_mapping(value: Any) -> Term:
    if not isinstance(value, Mapping):
        raise UserError("not a term: an object is wanted", hint='such as {"source": "Haus", "require": "house"}')
    for key in value:
        if key not in KEYS:
            raise UserError(f"not a key of a term: {key}", hint=nearest(str(key), KEYS))
    line, source = value.get("line"), value.get("source", "")
    if line is not None and (isinstance(line, bool) or not isinstance(line, int) or line < 1):
        raise UserError(f"a line is a number from 1, not {line!r}")
    if not isinstance(source, str):
        raise UserError(f"a term's source is a string, not {source!r}")
    return _checked(Term(source, _phrases(value.get("require", ())), _phrases(value.get("forbid", ())), line))


def _phrases(value: Any) -> tuple[str, ...]:
    phrases = (value,) if isinstance(value, str) else value
    if not isinstance(phrases, Sequence) or not all(isinstance(phrase, str) and phrase.strip() for phrase in phrases):
        raise UserError(f"a phrase is a string that is not empty, or a list of them, not {value!r}")
    return tuple(phrases)


def _checked(term: Term) -> Term:
    if not term.require and not term.forbid:
        raise UserError("a term requires or forbids something")
    if term.source and not term.source.strip("* "):
        raise UserError(f"not the source of a term: {term.source}")
    return term
