"""Which installed fonts have which characters. Knows matplotlib's list of fonts; nothing of what is drawn."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from eyeline.errors import require
from eyeline.figures.labels import script

FIRST = "DejaVu Sans"  # comes with matplotlib
# fonts that answer for code points without having their letters: TeX's own encodings, and boxes that stand for anything
_NOT_TEXT = ("cm", "Last Resort", "LastResort", "STIXNon", "STIXSize", "Adobe Blank", "Unicode BMP Fallback")
_REGULAR = (400, "normal", "regular", "book")
_COLOUR = 1 << 14  # FT_FACE_FLAG_COLOR: pictures, which matplotlib cannot draw as outlines

_log = logging.getLogger("eyeline.figures")
_families: dict[str, str | None] = {}  # character to the family that has it, None where no font does; filled as asked
_told: set[str] = set()  # scripts that the user was told are lacking, once a process


class Coverage(NamedTuple):
    families: list[str]  # DejaVu Sans, and what the text needs beside it
    missing: frozenset[str]  # characters that no installed font has


@cache
def _font(family: str) -> Any:
    """The regular face of a family, or None where it has none, cannot be opened or holds no outlines."""
    for entry in require("matplotlib.font_manager", "plots").fontManager.ttflist:
        if entry.name == family and entry.style == "normal" and entry.weight in _REGULAR:
            break
    else:
        return None
    index = getattr(entry, "index", 0)  # of the face in a collection; matplotlib reads only the first before 3.11
    face = require("matplotlib.ft2font", "plots").FT2Font
    try:
        font = face(entry.fname, face_index=index) if index else face(entry.fname)
    except (OSError, RuntimeError):  # a font that was removed or is damaged is a font that we do not have
        return None
    flags = getattr(font.face_flags, "value", font.face_flags)  # a number before matplotlib 3.10
    return font if font.scalable and not flags & _COLOUR else None


def _has(family: str, character: str) -> bool:
    font = _font(family)
    return font is not None and font.get_char_index(ord(character)) != 0


def _candidates() -> list[str]:
    """Installed families, plain sans-serif ones first: the first that has a character is taken."""
    manager = require("matplotlib.font_manager", "plots").fontManager
    names = {entry.name for entry in manager.ttflist if not entry.name.startswith(_NOT_TEXT)}

    def rank(name: str) -> tuple[bool, bool, bool, str]:
        return (
            name != FIRST,
            "Sans" not in name and "Gothic" not in name,
            any(word in name for word in ("Mono", "Serif", "Condensed", "Display", "Bold", "Light", "Italic")),
            name,
        )

    return sorted(names, key=rank)


@cache
def _read_new_fonts() -> None:
    """Adds fonts that were installed after matplotlib wrote its list; for this process, and once."""
    manager = require("matplotlib.font_manager", "plots")
    known = {os.path.realpath(entry.fname) for entry in manager.fontManager.ttflist}
    for path in manager.findSystemFonts():
        if os.path.realpath(path) not in known:
            try:
                manager.fontManager.addfont(path)
            except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
                _log.debug("font %s left out: %s", path, error)
    _font.cache_clear()


def _look_up(characters: set[str]) -> None:
    for family in _candidates():
        wanted = [c for c in characters if _families.get(c) is None]
        if not wanted:
            return
        for character in wanted:
            _families[character] = family if _has(family, character) else None


def coverage(texts: Iterable[str]) -> Coverage:
    """The families that together draw the texts, and the characters that none of them has."""
    characters = {character for text in texts for character in text}
    unknown = characters - _families.keys()
    _look_up(unknown)
    if any(_families.get(c) is None for c in unknown):
        _read_new_fonts()
        _look_up(unknown)
    missing = frozenset(c for c in characters if _families.get(c) is None)
    families = {family for c in characters if (family := _families.get(c)) is not None}
    return Coverage([FIRST, *sorted(families - {FIRST})], missing)


def tell_missing(missing: frozenset[str]) -> None:
    """One line on the scripts that no installed font has; each is told once a process."""
    new = {character for character in missing if script(character) not in _told}
    if not new:
        return
    scripts = {script(character) for character in new}
    _told.update(scripts)
    _log.warning(
        "no font here has %d of the picture's characters (%s): written as code points; install a font for them, or save as .svg",
        len(new),
        ", ".join(sorted(scripts)),
    )
