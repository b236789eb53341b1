"""A trace as a page of its own: one file that reaches nothing, holds text as text, and shows itself in a notebook."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import eyeline
from eyeline.errors import ConfigError, UserError
from eyeline.explorer import Explanation
from eyeline.explorer.one_file import PAGE, alone
from toy_runs import ToyRuns

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "<!--", "]]>", "\u2028\u2029", "\\u003c", "${1}"]


class Parts(HTMLParser):
    """The scripts, styles and policy of a page, and every address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.policy = ""
        self.addresses: list[str] = []
        self._inside: tuple[str, dict[str, str | None]] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        assert not any(name.startswith("on") or name == "style" for name in given)
        if tag in ("script", "style"):
            self._inside = tag, given
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given.get("content") or ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[0] == "script":
            self.scripts.append((self._inside[1], data))
        elif self._inside:
            self.styles.append(data)


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.mark.parametrize("text", HOSTILE)
def test_the_page_holds_text_as_text_and_reaches_nothing(text: str) -> None:
    page = Parts(alone({"traces": [{"name": text, text: [text]}]}))
    (data_kind, data), (kind, script) = page.scripts
    assert (data_kind["type"], kind["type"]) == ("application/json", "module")
    assert json.loads(data) == {"traces": [{"name": text, text: [text]}]}
    assert "<" not in data
    assert page.addresses == ["data:,"]
    assert f"script-src {digest(script)};" in page.policy
    assert f"style-src {digest(page.styles[0])};" in page.policy
    assert page.policy.startswith("default-src 'none';")
    assert "connect-src" not in page.policy
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)


def test_no_module_of_the_page_parses_markup_or_names_another_place() -> None:
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|\bstyle=", text), (
            path.name
        )
        assert set(re.findall(r"https?://[^\"'` ]+", text)) <= {"http://www.w3.org/2000/svg"}, path.name
        assert "\r" not in text


def test_the_languages_of_the_page_have_the_same_words() -> None:
    """And the same gaps in them."""
    text = (PAGE / "words.js").read_text(encoding="utf-8")
    english, korean = (part for part in re.split(r"^  (?:en|ko): \{$", text, flags=re.MULTILINE)[1:])
    words = [dict(re.findall(r'(\w+):\s+"((?:[^"\\]|\\.)*)"', part.split("\n  },")[0])) for part in (english, korean)]
    assert len(words[0]) > 60
    assert words[0].keys() == words[1].keys()
    for name, said in words[0].items():
        assert sorted(re.findall(r"\{\d\}", said)) == sorted(re.findall(r"\{\d\}", words[1][name])), name
    used = set(re.findall(r'say\("(\w+)"', "".join(path.read_text() for path in PAGE.iterdir() if path.name.endswith(".js"))))
    used |= set(re.findall(r'data-(?:words|label)="(\w+)"', (PAGE / "index.html").read_text()))
    assert used <= words[0].keys()


def test_explain_shows_itself_in_a_notebook_and_as_a_file(toys: ToyRuns, tmp_path: Path) -> None:
    found = eyeline.explain(toys.predictor("bahdanau"), "a b c", beside=toys.predictor("luong"))
    assert isinstance(found, Explanation)
    assert [one["name"] for one in found.traces] == ["bahdanau", "luong"]
    assert found.traces[0]["beam"]["ended"]
    assert repr(found) == f"<Explanation bahdanau: a b c → {found.traces[0]['target']['text']}, luong: a b c → c b a>"
    frame = found._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="')
    inner = frame.split('srcdoc="')[1].split('"')[0]
    assert html.unescape(inner) == found.to_html()
    assert found.save(tmp_path / "page.html").read_text(encoding="utf-8") == found.to_html()
    assert json.loads(found.save(tmp_path / "page.json").read_text(encoding="utf-8"))["traces"] == list(found.traces)
    with pytest.raises(ConfigError, match=r"\.pdf.*valid: \.html, \.json"):
        found.save(tmp_path / "page.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "page.json"]


def test_what_cannot_be_explained_is_refused(toys: ToyRuns) -> None:
    cases: list[tuple[Any, Any]] = [(5, None), ("a", 5), (["a"], None)]
    for source, target in cases:
        with pytest.raises(UserError, match="string is wanted"):
            eyeline.explain(toys.predictor("bahdanau"), source, target)
