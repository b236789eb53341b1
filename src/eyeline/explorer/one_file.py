"""The files of the explorer's page, and all of them in one. Knows HTML and JavaScript modules as text; no traces, no service."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

PAGE: Traversable = files("eyeline.explorer") / "page"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


def alone(values: Any) -> str:
    """The page with its style, its scripts and `values` inside, which needs no other file and may reach none.

    `values` are data to the browser: nothing in them can end the element that holds them, and no script but ours is run, by the
    digests in the page's Content-Security-Policy.
    """
    style, script = _read("page.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(values, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n<style>{style}</style>\n'
        f'<script type="application/json" id="traces">{data}</script>\n<script type="module">{script}</script>\n'
    )
    return re.sub(r"<!-- files -->.*<!-- end of files -->\n", lambda _: head, _read("index.html"), flags=re.DOTALL)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """The modules one after the other, each behind those that it imports from, and each a scope of its own that hands out what it
    exports."""
    modules = {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir() if path.name.endswith(".js")}
    wanted = {name: {found for _, found in _IMPORT.findall(text)} for name, text in modules.items()}
    return "\n" + "".join(_scope(name, modules[name]) for name in TopologicalSorter(wanted).static_order())


def _scope(name: str, text: str) -> str:
    exported = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub(lambda found: found[0].removeprefix("export "), text)
    body = _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {_variable(found[2])};\n", body)
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"


def _variable(name: str) -> str:
    return "$" + name.removesuffix(".js")
