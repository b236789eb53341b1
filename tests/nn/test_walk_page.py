"""The page that walks from the general score to scaled dot-product attention is a program that runs, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs" / "from-general-to-scaled-dot.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    module: dict[str, Any] = {}
    with torch.random.fork_rng():
        for code, printed in BLOCKS:
            exec(compile(code, str(PAGE), "exec"), module)
            assert capsys.readouterr().out == printed
    assert sum("assert" in code for code, _ in BLOCKS) >= 6


def test_a_wrong_page_is_caught() -> None:
    """A step that is left out of the code is not passed over by its check."""
    code = "".join(code for code, _ in BLOCKS)
    for said, instead in (
        ("* math.sqrt(D)", ""),
        (".softmax(-1)\nassert", "\nassert"),
        ("ScaledDotAttention(4)(Q, K", "ScaledDotAttention(4)(K, K"),
    ):
        assert code.count(said) == 1
        with torch.random.fork_rng(), pytest.raises(AssertionError):
            exec(compile(code.replace(said, instead), str(PAGE), "exec"), {})
