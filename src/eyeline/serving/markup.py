"""HTML as text between tags. Knows strings only.

What stands between two tags is translated by itself, its white space kept; tags, comments, scripts and styles stay as they are.
A `<` that begins no tag is text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

_ATTRIBUTES = r"""(?:[^<>"']|"[^"]*"|'[^']*')*"""
_MARKUP = re.compile(
    rf"(<!--.*?-->|<(?P<name>script|style)\b{_ATTRIBUTES}>.*?</(?P=name)\s*>|</?[a-z]{_ATTRIBUTES}>|<[!?][^>]*>)",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Document:
    """Markup and texts in turn, markup first."""

    markup: tuple[str, ...]
    texts: tuple[str, ...]  # without entities; one fewer

    def filled(self, texts: Sequence[str]) -> str:
        """The markup as it was, with other texts in it."""
        inside = "".join(mark + html.escape(text, quote=False) for mark, text in zip(self.markup[:-1], texts, strict=True))
        return inside + self.markup[-1]


def document(text: str) -> Document:
    """HTML in parts."""
    markup, texts, end = list[str](), list[str](), 0
    mark = ""
    for match in _MARKUP.finditer(text):
        between = text[end : match.start()]
        if between.strip():
            markup.append(mark)
            texts.append(html.unescape(between))
            mark = ""
        else:
            mark += between
        mark += match[0]
        end = match.end()
    if text[end:].strip():
        markup.append(mark)
        texts.append(html.unescape(text[end:]))
        mark = ""
    else:
        mark += text[end:]
    return Document((*markup, mark), tuple(texts))
