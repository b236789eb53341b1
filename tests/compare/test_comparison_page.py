"""report.html without a browser: its structure, that nothing is fetched, that hostile text stays text, colours that are seen."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from small_comparison import HOSTILE, difference, report, rung

from eyeline.compare.charts import COLOURS, Point, Series, bar_chart, line_chart, marker
from eyeline.compare.conclusion import conclusion
from eyeline.compare.page import page
from eyeline.compare.scales import scale, short, steps

VOID = {"meta", "br", "rect", "circle", "path"}


class Structure(HTMLParser):
    """Tags in order; complains when one is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module", params=["en", "ko"])
def made(request: pytest.FixtureRequest) -> str:
    rungs = [rung(HOSTILE, 90), rung("b", 50)]
    rungs[1]["picture"] = None
    found = report(rungs, [difference(HOSTILE, "b", 40, 0.001)])
    found["conclusion"]["sentences"] += conclusion(found, request.param)
    return page(found, request.param)


def test_every_tag_is_closed_and_ids_are_single(made: str) -> None:
    structure = Structure(made)
    assert structure.open == []
    ids = [attrs["id"] for _, attrs in structure.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = {attrs["aria-labelledby"] for _, attrs in structure.tags if "aria-labelledby" in attrs}
    assert named <= set(ids)


def test_hostile_text_stays_text(made: str) -> None:
    structure = Structure(made)
    tags = {tag for tag, _ in structure.tags}
    assert not tags & {"script", "b", "img", "iframe", "object", "link"}
    assert "<script" not in made
    assert sum("<script>alert('x')</script>" in text for text in structure.texts) > 5
    assert not any(name.startswith("on") for _, attrs in structure.tags for name in attrs)


def test_nothing_is_fetched(made: str) -> None:
    for _, attrs in Structure(made).tags:
        assert not {"src", "href", "srcset", "data", "action"} & attrs.keys()
    assert "url(" not in made
    assert "@import" not in made
    assert "default-src 'none'" in made


def test_every_chart_has_a_title_and_a_table_behind_it(made: str) -> None:
    structure = Structure(made)
    charts = [attrs for tag, attrs in structure.tags if tag == "svg" and attrs.get("role") == "img"]
    assert len(charts) >= 8
    assert all("aria-labelledby" in attrs for attrs in charts)
    assert sum(tag == "details" for tag, _ in structure.tags) >= 6
    for cell in ("90.0", "[88.0, 92.0]"):
        assert any(cell in text for text in structure.texts)


def test_a_rung_without_attention_says_so(made: str) -> None:
    assert "one fixed vector" in made or "고정 벡터" in made


def test_text_of_any_direction_sets_its_own(made: str) -> None:
    assert re.search(r'<td class="text[^"]*" dir="auto">مرحبا</td>', made)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_can_be_seen(scheme: int) -> None:
    """WCAG 2: 4.5 for text, 3 for what charts are made of, on every ground on which they stand."""
    style = (files("eyeline.compare") / "page.css").read_text(encoding="utf-8")
    block = re.findall(r":root\{([^}]*)\}", style)[scheme]
    colours = dict(re.findall(r"--([\w]+):(#[0-9a-f]{6})", block))
    for ground in ("bg", "card", "shade"):
        for text in ("ink", "faint", "link"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for number in range(COLOURS):
            assert _contrast(colours[f"c{number}"], colours[ground]) >= 3, (number, ground)
    assert _contrast(colours["heat"], colours["ground"]) >= 4.5


def test_ticks_are_round_and_reach_around() -> None:
    assert steps(0, 97) == [0, 20, 40, 60, 80, 100]
    assert steps(0.31, 0.34)[0] <= 0.31
    assert steps(5, 5) == [5, 5.2, 5.4, 5.6, 5.8, 6]
    place, ticks = scale([12.0, 88.0], 0, 100, percent=True)
    assert (ticks[0], ticks[-1], place(50.0)) == (0, 100, 50)
    assert scale([float("nan")], 0, 1)[1][0] == 0


def test_numbers_on_axes_are_short() -> None:
    assert [short(value) for value in (0, 0.05, 45, 1500, 300_000, 2_500_000)] == ["0", "0.05", "45", "1,500", "300k", "2.5M"]


def test_series_differ_by_more_than_colour() -> None:
    shapes = {re.sub(r'class="\w+( open)?"', r"\1", marker(style, 0, 0)) for style in range(COLOURS)}
    assert len(shapes) == COLOURS


def test_a_chart_of_nothing_is_still_one() -> None:
    assert line_chart([Series("a", 0)], "t", "x").endswith("</svg>")
    assert bar_chart([("a", 0, None)], "t", "x").count("–") == 1


def test_whiskers_stand_at_their_interval() -> None:
    chart = line_chart([Series("a", 0, [Point(1, 50, 40, 60), Point(2, 50, 40, 60)])], "t", "x", percent=True, x_ticks=[1, 2])
    assert chart.count('class="l0 thin"') == 2
