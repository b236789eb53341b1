"""Line charts: what is in them is what was given, and what cannot be drawn is told or left out. Knows files of pictures."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eyeline.errors import ConfigError, UserError
from eyeline.figures import Line, Panel, save_lines
from eyeline.figures.lines import _drawn, _some, draw_lines

PANEL = Panel(
    "Loss", "step", "nats", [Line("plain", [1, 2, 3], [3.0, 2.0, 1.0]), Line("theory", [1, 3], [3.0, 1.0], dashed=True)]
)


def texts(svg: bytes) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_every_name_is_in_the_picture_as_it_was_given() -> None:
    odd = Panel(
        "2^x_i $a$", "Länge", "한국어", [Line("50 % & <more>", [1, 10, 100], [1, 2, 3])], log_x=True, marks=[(10, "here")]
    )
    written = texts(draw_lines([PANEL, odd], title="Two panels", note="eyeline lab", kind="svg"))
    for text in (
        "Two panels",
        "eyeline lab",
        "Loss",
        "step",
        "plain",
        "theory",
        "2^x_i $a$",
        "한국어",
        "50 % & <more>",
        "here",
        "100",
    ):
        assert text in written


def test_the_same_values_give_the_same_bytes(tmp_path: Path) -> None:
    for suffix in ("png", "svg"):
        one, two = (save_lines(tmp_path / f"{name}.{suffix}", [PANEL] * 4, "t").read_bytes() for name in "ab")
        assert one == two


def test_gaps_zeros_and_infinities_do_no_harm() -> None:
    line = Line("holes", [1, 2, 3, 4, 5], [1e-3, None, 0.0, math.inf, math.nan])
    panel = Panel("p", "x", "y", [line], log_y=True, floor=1e-6)
    drawn = _drawn(line.y, panel)
    assert drawn[0] == 1e-3
    assert drawn[2] == 1e-6
    assert all(math.isnan(drawn[place]) for place in (1, 3, 4))
    nothing = Panel("p", "x", "y", [Line("none", [1, 2], [0.0, 0.0])], log_x=True, log_y=True)
    assert draw_lines([panel, nothing], kind="png").startswith(b"\x89PNG")


def test_numbers_on_an_axis_of_logarithms_do_not_meet() -> None:
    assert _some({1, 2, 4, 8}) == [1, 2, 4, 8]
    many = _some(set(range(1, 200)))
    assert len(many) <= 8
    assert many[0] == 1


@pytest.mark.parametrize(
    ("panels", "message"),
    [([], "no panels"), ([Panel("p", "x", "y", [Line("short", [1, 2], [1])])], "'short' has 2 places")],
)
def test_what_is_no_chart_is_refused(tmp_path: Path, panels: list[Panel], message: str) -> None:
    with pytest.raises(UserError, match=message):
        save_lines(tmp_path / "chart.png", panels)
    assert not list(tmp_path.iterdir())


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"valid: \.png, \.svg"):
        save_lines(tmp_path / "chart.pdf", [PANEL])
