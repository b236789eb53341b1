"""docs/commands.md: every command is there, and every line of it can be parsed. Running them all takes minutes of training."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer
from typer.main import get_command

import eyeline.cli as cli

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def typed() -> list[list[str]]:
    """The words behind each `eyeline` in the page's code, up to a pipe."""
    text = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^    (?:.*\| )?eyeline (.*)$", text, re.MULTILINE)
    assert len(lines) > 15
    return [shlex.split(line) for line in lines]


def test_every_command_has_a_section_and_a_line() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for command in cli.COMMANDS:
        assert f"\n## {command.__name__}\n" in text
        assert any(words[0] == command.__name__ for words in typed())


def test_every_line_can_be_parsed() -> None:
    group = get_command(cli.app)
    with typer.Context(group, info_name="eyeline") as parent:
        for words in typed():
            command = group.get_command(parent, words[0])  # type: ignore[attr-defined]
            with command.make_context(words[0], cli.spread(words[1:]), parent=parent) as context:
                assert "verbose" in context.params
