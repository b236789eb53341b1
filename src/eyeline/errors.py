"""What can go wrong, as a tree. Knows nothing of the rest of the package.

    EyelineError
    └── UserError        the user can mend it: one line, exit status 2
        ├── DataError    a line of a file (FILE:LINE), or a file
        ├── ConfigError  a setting (its dotted name and value)
        ├── RunError     a run directory: absent, incomplete, damaged
        └── MissingExtra an optional library that is not installed
    Interrupted          SIGINT or SIGTERM with the state saved, exit status 130

Anything else that escapes a command is a defect of ours: exit status 1.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType


class EyelineError(Exception):
    """The root of every exception that the package raises on purpose."""


class UserError(EyelineError, ValueError):
    """Something the user can mend.

    Args:
        what: what is wrong, without a full stop at its end.
        where: `FILE:LINE`, or a setting's name and value; empty when neither applies.
        hint: what to do about it; empty when `what` says it already.

    `str(error)` is the one line that commands print after `error: `.
    """

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(_one_line(what + (f" ({where})" if where else "") + (f"; {hint}" if hint else "")))


def _one_line(text: str) -> str:
    """Text that stays on its line and leaves a terminal alone: line breaks are blanks, what cannot be seen is escaped."""
    text = text.replace("\r\n", " ").replace("\n", " ")
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)


class DataError(UserError):
    """A fault in a text file, located by file and line."""

    def __init__(self, what: str, path: str | Path = "", line: int | None = None, hint: str = "") -> None:
        self.path, self.line = str(path), line
        super().__init__(what, f"{path}:{line}" if line is not None else str(path), hint)


class ConfigError(UserError):
    """A setting that is unknown or has a value that cannot be."""


class RunError(UserError):
    """A run directory that is absent, incomplete or damaged."""


class MissingExtra(UserError):
    """An optional library is not installed; the hint names the extra that brings it."""


class Interrupted(EyelineError):
    """The run was interrupted by a signal and its state was saved."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """`did you mean 'luong'?` when a valid name is near, else the list of all of them."""
    names = {valid_name.lower(): valid_name for valid_name in sorted(valid)}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{names[near[0]]}'?" if near else f"valid: {', '.join(sorted(names.values()))}"


def require(module: str, extra: str) -> ModuleType:
    """Imports an optional library, or says which extra brings it.

    Raises:
        MissingExtra: when `module` cannot be imported.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == package
        what = f"this needs {package}, which is not installed" if absent else f"{package} cannot be imported: {error}"
        raise MissingExtra(what, hint=f"pip install 'eyeline[{extra}]'") from error
