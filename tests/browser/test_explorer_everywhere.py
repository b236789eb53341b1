"""The explorer for everyone: dark and narrow, other scripts and languages, hostile text, long sources, no service, one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from explorer_page import ExplorerPage, served, view
from playwright.sync_api import Browser

from eyeline.explorer import explain
from eyeline.serving.access import Access
from eyeline.serving.app import create_app
from eyeline.serving.limits import Limits
from eyeline.serving.models import Models
from toy_runs import ToyRuns

pytestmark = pytest.mark.slow
Browse = Callable[..., ExplorerPage]
HOSTILE = "<img src=x onerror=alert(1)>"
SCRIPT = "<script>alert(1)</script>"
UNNAMED = """() => [...document.querySelectorAll("button, select, input, [tabindex]")]
  .filter((node) => node.offsetParent || node.ownerSVGElement)
  .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.length))
  .map((node) => node.outerHTML)"""
FOCUSED = """() => {
  const node = document.activeElement;
  return node.id || node.getAttribute("class")?.split(" ")[0] || node.tagName;
}"""
STATES = """() => {
  window.states = [];
  new MutationObserver(() => window.states.push(document.body.dataset.state)).observe(document.body, { attributes: true });
}"""


def brightness(page: ExplorerPage) -> float:
    """Of the page's ground, from 0 to 255."""
    colour = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3


def test_dark_by_the_system_and_by_choice(browse: Browse) -> None:
    page = browse(view(source="a b c", step=2), options={"color_scheme": "dark"})
    page.ready()
    assert brightness(page) < 40
    dark = page.page.locator(".body canvas").screenshot()
    page.shoot("dark")
    page.page.select_option("#theme", "light")
    assert brightness(page) > 240
    assert page.page.locator(".body canvas").screenshot() != dark
    page.page.select_option("#theme", "auto")
    assert brightness(page) < 40
    page.page.emulate_media(color_scheme="light")
    assert brightness(page) > 240
    page.page.select_option("#theme", "dark")
    assert brightness(page) < 40


@pytest.mark.parametrize("model", ["guided", "names", "points"])
def test_a_narrow_screen_scrolls_downwards_alone(browse: Browse, model: str) -> None:
    source = "[[0.5, 0.1], [0.1, 0.9], [0.9, 0.4]]" if model == "points" else "a b c d e f a b c d e f a b c d e f"
    page = browse(view(source=source, model=model, step=2, tree=1), width=400)
    page.ready()
    assert page.page.evaluate("document.documentElement.scrollWidth") == 400
    page.shoot(f"narrow-{model}")


def test_a_wide_screen_has_the_matrix_beside_the_step(browse: Browse) -> None:
    page = browse(view(source="a b c", step=2), width=1600)
    page.ready()
    step, matrix = page.page.locator(".story").bounding_box(), page.page.locator(".body canvas").bounding_box()
    assert step
    assert matrix
    assert step["x"] + step["width"] <= matrix["x"]
    page.page.set_viewport_size({"width": 700, "height": 900})
    page.page.wait_for_selector(".body.stacked")
    matrix = page.page.locator(".body canvas").bounding_box()
    step = page.page.locator(".story").bounding_box()
    assert step
    assert matrix
    assert step["y"] + step["height"] <= matrix["y"]


@pytest.mark.parametrize("text", [HOSTILE, SCRIPT, "</p><b>x</b>", "&lt;b&gt; ${1} {{2}} \\u003cb"])
def test_hostile_text_is_text(browse: Browse, text: str) -> None:
    page = browse()
    page.ask(text, model=HOSTILE, beside="odd")
    page.ready()
    assert page.page.locator("article h2 bdi").all_text_contents() == [HOSTILE, "odd"]
    assert page.page.locator("main img, main b, main script").count() == 0
    assert "".join(row[0] for row in page.table(1)[:-1]).replace("␣", " ") == text
    with page.page.expect_download() as coming:
        page.page.click("#svg")
    assert b"<img" not in coming.value.path().read_bytes()
    if text == HOSTILE:
        page.shoot("hostile")


def test_hostile_text_in_the_address_is_text(browse: Browse) -> None:
    page = browse("?text=" + quote(SCRIPT))
    page.ready()
    assert page.page.input_value("#source") == SCRIPT
    assert page.page.locator("main script").count() == 0
    nonsense = {"step": "x", "look": "a.b", "language": "<b>", "theme": '"><b>', "prefix": "x.y"}
    bad = browse(view(source=HOSTILE, model=SCRIPT, beside=SCRIPT, **nonsense))
    bad.ready()
    assert bad.page.locator("#model").input_value() == "luong"
    assert bad.page.locator("main img, main b, main script").count() == 0


@pytest.mark.parametrize("blank", [" ", "\u3000"])
def test_nothing_in_nothing_out(browse: Browse, blank: str) -> None:
    page = browse()
    page.ask(blank)
    page.ready()
    assert "the model is not asked" in page.text(".panel .empty")
    assert not page.page.locator("#controls").is_visible()
    page.ask("")
    page.until("document.getElementById('message').textContent.includes('no source yet')")


def test_a_refusal_is_told_and_the_next_question_works(browse: Browse) -> None:
    page = browse()
    page.forgiven = "400"
    page.until("document.getElementById('model').options.length > 0")
    assert page.page.get_attribute("#source", "placeholder") == ""
    page.page.select_option("#model", "points")
    assert page.page.get_attribute("#source", "placeholder") == "[[0.1,0.4],[0.5,0.8],[0.2,0.5]]"
    page.ask("abc")
    page.page.wait_for_selector("body[data-state=failed]")
    assert "not a JSON list of numbers" in page.text("#message")
    page.shoot("refused")
    page.ask("[[0.5, 0.1], [0.1, 0.9]]")
    page.ready()
    assert page.text("#message") == ""
    assert len(page.symbols()) == 3


def test_a_service_that_is_gone_is_told(browse: Browse) -> None:
    page = browse()
    page.forgiven = "net::ERR"
    page.until("document.getElementById('model').options.length > 0")
    page.page.route("**/explore", lambda route: route.abort())
    page.ask("a b")
    page.page.wait_for_selector("body[data-state=failed]")
    assert "does not answer" in page.text("#message")


def test_what_takes_long_says_so_and_the_last_question_counts(browse: Browse) -> None:
    page = browse()
    page.until("document.getElementById('model').options.length > 0")
    held: list[object] = []
    page.page.route("**/explore", lambda route: held.append(route) if not held else route.continue_())
    page.ask("a b c")
    page.until("document.getElementById('message').textContent === 'Searching…'")
    assert page.page.get_attribute("#panels", "aria-busy") == "true"
    page.ask("f e")
    page.ready()
    assert page.symbols()[:2] == ["e", "f"]
    assert page.page.get_attribute("#panels", "aria-busy") is None


def test_a_key_is_asked_for_where_one_is_wanted(browse: Browse, toys: ToyRuns) -> None:
    limits = Limits()
    with served(create_app(Models({"luong": toys.predictor("luong")}, limits), limits, access=Access(["secret"]))) as url:
        page = browse(url=url)
        page.forgiven = "403"
        page.ask("a b")
        page.page.wait_for_selector("body[data-state=failed]")
        assert "a valid API key is wanted" in page.text("#message")
        page.page.fill("#key", "secret")
        page.page.press("#key", "Enter")
        page.ready()
        assert page.symbols() == ["b", "a", "</s>"]
        assert "secret" not in page.page.url
        page.page.context.close()
    assert not browse().page.locator("#key").is_visible()


def test_korean(browse: Browse) -> None:
    page = browse(view(source="한국어", model="odd", step=1), options={"locale": "ko-KR"})
    page.ready()
    assert page.page.get_attribute("html", "lang") == "ko"
    assert page.text("h1") == "eyeline 어텐션 탐색기"
    assert "소프트맥스" in page.text(".story")
    assert [row[0] for row in page.table()] == ["한", "국", "어", "</s>"]
    page.shoot("korean")
    page.page.select_option("#language", "en")
    assert "softmax" in page.text(".story")
    assert page.page.input_value("#model") == "odd"


def test_text_that_runs_from_right_to_left(browse: Browse) -> None:
    page = browse(view(source="שלום 12", model="odd", step=1))
    page.ready()
    places = page.page.locator(".story text").evaluate_all(
        "(nodes) => Object.fromEntries(nodes.map((node) => [node.textContent, Number(node.getAttribute('x'))]))"
    )
    assert places["ש"] > places["ל"] > places["ם"] > places["1"] > places["</s>"]
    assert [row[0] for row in page.table()] == ["ש", "ל", "ו", "ם", "␣", "1", "2", "</s>"]
    page.shoot("right-to-left")


def test_what_leaves_no_ink_is_seen(browse: Browse) -> None:
    page = browse(view(source="a\u200fb\u00a0\u0301", model="odd", step=1))
    page.ready()
    tokens = [row[0] for row in page.table()]
    assert "⟨RLM⟩" in tokens
    assert "⟨NBSP⟩" in tokens or "⟨NBSP⟩\u0301" in tokens


def test_a_long_source_can_be_stepped_through(browse: Browse) -> None:
    """300 tokens over 300 symbols: all of it is there, and every key finds its step."""
    source, target = "a b c d e f " * 50, "f e d c b a " * 50
    page = browse(view(source=source.strip(), target=target.strip(), step=150))
    page.ready()
    assert page.step == 150
    assert len(page.symbols()) == 301
    page.page.locator("h1").click()
    for step in range(151, 161):
        page.page.keyboard.press("ArrowRight")
        assert page.step == step
    assert page.page.locator(".story text", has_text="</s>").count() >= 1
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.shoot("long")


def test_all_can_be_reached_by_keyboard_and_has_a_name(browse: Browse) -> None:
    page = browse(view(source="a b c", model="guided", step=2))
    page.ready()
    assert page.page.evaluate(UNNAMED) == []
    page.page.focus("#language")
    reached = set()
    for _ in range(60):
        page.page.keyboard.press("Tab")
        reached.add(page.page.evaluate(FOCUSED))
    assert {"source", "model", "step", "svg", "link", "layer", "head", "thumbnail", "candidate", "scroll", "SUMMARY"} <= reached


def test_no_movement_for_those_who_want_none(browse: Browse) -> None:
    page = browse(options={"reduced_motion": "reduce"})
    page.page.evaluate(STATES)
    page.ask("a b c d")
    page.ready()
    assert "playing" not in page.page.evaluate("window.states")


def test_one_file_shows_the_same_and_asks_nobody(browse: Browse, toys: ToyRuns, tmp_path: Path) -> None:
    found = explain(toys.predictor("guided"), f"a b {SCRIPT}", beside=toys.predictor("seq2seq"))
    path = found.save(tmp_path / "page.html")
    page = browse("#step=2&tree=1&theme=dark", url=path.as_uri())
    page.ready()
    assert page.step == 2
    assert page.page.locator(".panel").count() == 2
    assert page.symbols(0) == found.traces[0]["target"]["tokens"]
    assert page.page.locator(".ended").count() == 2
    assert page.candidates() == [], "nothing can be searched again"
    assert not page.page.locator("#question").is_visible()
    page.page.locator("select.layer").select_option("1")
    page.page.locator("h1").click()
    page.page.keyboard.press("ArrowRight")
    assert page.step == 3
    with page.page.expect_download() as coming:
        page.page.click("#png")
    assert coming.value.path().read_bytes().startswith(b"\x89PNG")
    page.shoot("one-file")


def test_a_notebook_shows_it_in_a_frame(chromium: Browser, toys: ToyRuns, tmp_path: Path) -> None:
    """Under a page that lets no more in than a notebook does: its frame is of another origin and has no address."""
    frame = explain(toys.predictor("luong"), "a b c")._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{frame}</body>", encoding="utf-8")
    page = chromium.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("body[data-state=ready]").wait_for()
    assert inside.locator(".output button").all_text_contents() == ["c", "b", "a", "</s>"]
    inside.locator("#next").click()
    assert inside.locator("#where").inner_text() == "Step 2 of 4"
    assert said == []
    page.close()
