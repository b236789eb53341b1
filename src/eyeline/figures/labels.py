"""How a token is written beside a picture, so that what is there can be seen. Knows characters; no fonts, no drawing."""

from __future__ import annotations

import unicodedata

LONGEST = 40  # characters of a token that are always shown; longer ones end in an ellipsis
BLANK = "␣"
_NAMES = {
    "\t": "TAB",
    "\n": "LF",
    "\r": "CR",
    "\x00": "NUL",
    "\xa0": "NBSP",
    "\xad": "SHY",
    "\u061c": "ALM",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u200e": "LRM",
    "\u200f": "RLM",
    "\u2060": "WJ",
    "\u3000": "WIDE BLANK",
    "\ufeff": "BOM",
}
_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # embeddings, overrides and isolates of direction
_JOINERS = "\u200c\u200d"  # they shape their neighbours, and are seen by that


def code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


def _is_hidden(character: str) -> bool:
    """Whether it leaves no ink, cannot stand in XML, or both: controls, formats, separators, surrogates, no characters at all."""
    unassigned = ord(character) & 0xFFFE == 0xFFFE  # U+FFFE and U+FFFF of every plane
    return unassigned or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


def _visible(character: str) -> str:
    if character == " ":
        return BLANK
    if _is_hidden(character):
        return f"⟨{_NAMES.get(character) or code_point(character)}⟩"
    return character


def visible(token: str) -> str:
    """The token with everything in it to be seen: ␣ for a blank, ⟨RLM⟩ or ⟨U+200F⟩ for what leaves no ink.

    A combining mark that has nothing to sit on gets a dotted circle. A joiner between two letters stays itself.
    """
    if not token:
        return "⟨empty⟩"
    parts = []
    for index, character in enumerate(token):
        between = 0 < index < len(token) - 1
        if character in _JOINERS and between and not any(_is_hidden(token[i]) for i in (index - 1, index + 1)):
            parts.append(character)
        elif unicodedata.combining(character) and (not parts or parts[-1].endswith(("⟩", BLANK))):
            parts.append("◌" + character)
        else:
            parts.append(_visible(character))
    return "".join(parts)


def one_line(text: str) -> str:
    """Running text for a title: white space of any kind is one blank, marks of direction and joiners stay and do their work.

    What would turn the whole line around or cannot stand in XML is shown as in a token.
    """
    shown = []
    for character in text:
        kept = not _is_hidden(character) or character.isspace()
        kept = kept or (unicodedata.category(character) == "Cf" and character not in _TURNING)
        shown.append(character if kept else _visible(character))
    return " ".join("".join(shown).split())


def shortened(text: str, longest: int = LONGEST) -> str:
    """At most `longest` characters; where there are more the last is an ellipsis, which does not cut a letter from its marks."""
    if len(text) <= longest:
        return text
    kept = longest - 1
    while kept > longest // 2 and (unicodedata.combining(text[kept]) or text[kept - 1] in _JOINERS):
        kept -= 1
    return text[:kept] + "…"


def spelt(text: str, missing: frozenset[str]) -> str:
    """The text with each character of `missing` written as its code point, `U+D55C`, set off by blanks."""
    parts: list[str] = []
    after_code = False
    for character in text:
        is_code = character in missing
        if parts and (is_code or after_code) and character != " " and parts[-1] != " ":
            parts.append(" ")
        parts.append(code_point(character) if is_code else character)
        after_code = is_code
    return "".join(parts)


def left_to_right(line: str) -> str:
    """A line that is laid out from the left even where its first letter is of a script that runs the other way."""
    runs_back = any(unicodedata.bidirectional(character) in ("R", "AL") for character in line)
    return "\u200e" + line if runs_back else line


def script(character: str) -> str:
    """The name of the script for people, by the first word of the character's Unicode name: Hangul, CJK, Arabic; else symbols."""
    words = unicodedata.name(character, "").split(" ")
    if not words[0]:
        return "private or unassigned"
    if unicodedata.category(character)[0] not in "LM" or words[0] in ("MODIFIER", "COMBINING", "VARIATION"):
        return "symbols"
    return words[0] if words[0] == "CJK" else words[0].capitalize()


def heading(source: str, target: str) -> str:
    """`source → target` with each side read in its own direction.

    Beside Arabic or Hebrew the arrow and a date such as 2050-06-18 would be drawn from right to left, so a left-to-right mark is
    put around each side; text without such letters stays as it is.
    """
    if not any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in source + target):
        return f"{source} → {target}"
    mark = "\u200e"
    return f"{mark}{source}{mark} → {mark}{target}{mark}"
