"""How a text is spelt before it is cut into tokens, and how it is shown again. Knows Unicode forms only.

Forms: `nfc` composed; `nfd` everything decomposed; `jamo` Hangul syllables spelt with conjoining letters and all else composed;
`none` the code points as they came. Compatibility forms (NFKC, NFKD) are left out on purpose: they change what a text says.
"""

from __future__ import annotations

import re
import unicodedata

from eyeline.config import Normalization

_SYLLABLES = re.compile("[\uac00-\ud7a3]+")  # Unicode chapter 3.12: the 11,172 precomposed ones


def normalize(text: str, form: Normalization, lowercase: bool = False) -> str:
    """`text` in one of the forms. Lower-casing comes first, because a lower-cased letter can be a decomposed one."""
    if lowercase:
        text = text.lower()
    if form == "none":
        return text
    if form == "nfd":
        return unicodedata.normalize("NFD", text)
    text = unicodedata.normalize("NFC", text)
    if form == "jamo":
        return _SYLLABLES.sub(lambda run: unicodedata.normalize("NFD", run.group()), text)
    return text


def restore(text: str, form: Normalization) -> str:
    """What people are shown: a text that was taken apart (`nfd`, `jamo`) is composed again; others are left alone."""
    return unicodedata.normalize("NFC", text) if form in ("nfd", "jamo") else text
