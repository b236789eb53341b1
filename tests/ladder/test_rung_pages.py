"""Every rung has its page, and the code that a page quotes stands so in the source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyeline.ladder import LADDER

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "rungs").glob("*.md"))
QUOTE = re.compile(r"^From `(src/[^`]+)`:\n\n```python\n(.*?)\n```", re.M | re.S)


def test_a_page_a_rung() -> None:
    assert {page.stem for page in PAGES} >= set(LADDER)
    table = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
    for name in LADDER:
        assert f"(rungs/{name}.md)" in table


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quoted_code_is_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    quotes = QUOTE.findall(text)
    assert len(quotes) == text.count("```python"), "a block of code without the file it is from"
    assert quotes
    for file, code in quotes:
        assert code in (ROOT / file).read_text(encoding="utf-8"), f"{file} no longer says:\n{code}"
