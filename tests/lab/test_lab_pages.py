"""Every experiment has its page: the claim, a command that can be typed, the measurement, the verdict; its pictures are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import eyeline.cli as cli
from eyeline.cli.lab import NAMES
from eyeline.lab import EXPERIMENTS, experiment
from eyeline.lab.writing import settings_of

PAGES = Path(__file__).parents[2] / "docs" / "lab"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_page_has_claim_command_measurement_and_verdict(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert "**The claim" in text
    assert "## The measurement" in text
    assert "## The verdict" in text
    assert f"    eyeline lab {name} --out lab/{name}" in text
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", text):
        assert (PAGES / picture).is_file()
    assert f"({name}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*EXPERIMENTS, "README"])
def test_what_a_page_says_can_be_typed(page: str) -> None:
    lines = re.findall(r"^    eyeline (lab .*?)(?: +#.*)?$", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    group = get_command(cli.app)
    with typer.Context(group, info_name="eyeline") as parent:
        for line in lines:
            command = group.get_command(parent, "lab")  # type: ignore[attr-defined]
            with command.make_context("lab", cli.spread(shlex.split(line)[1:]), parent=parent) as context:
                settings_of(experiment(context.params["experiment"]), context.params["settings"] or [])


def test_the_help_names_every_experiment() -> None:
    assert {name.strip(" .") for name in re.split(r",| or ", NAMES)} == set(EXPERIMENTS)


def test_defaults_are_valid_settings() -> None:
    for name in EXPERIMENTS:
        found = experiment(name)
        assert found.name == name
        assert found.settings.model_validate(found.settings().model_dump()) == found.settings()
