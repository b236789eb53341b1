"""The explorer in a browser: what is typed appears, every step can be reached, a candidate steers, what is shown can be kept."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from explorer_page import ExplorerPage, view

from eyeline.explorer import trace
from toy_runs import ToyRuns

pytestmark = pytest.mark.slow
Browse = Callable[..., ExplorerPage]

WAYS = [("ArrowRight", 2), ("ArrowDown", 3), ("ArrowLeft", 2), ("End", 6), ("ArrowRight", 6), ("ArrowUp", 5), ("Home", 1)]
COUNT = """() => {
  window.counts = [];
  const look = () => window.counts.push(document.querySelectorAll(".output button:not([hidden])").length);
  new MutationObserver(look).observe(document.getElementById("panels"), { subtree: true, attributes: true, childList: true });
}"""


def test_an_output_appears_symbol_by_symbol(browse: Browse, toys: ToyRuns) -> None:
    page = browse()
    assert "Type a source" in page.text("#empty")
    page.shoot("empty")
    page.page.evaluate(COUNT)
    page.ask("a b c d e")
    page.ready()
    wanted = toys.predictor("luong").predict(["a b c d e"])[0].tokens
    assert page.symbols() == wanted
    assert page.step == len(wanted)
    counts = [count for count in page.page.evaluate("window.counts") if count]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] == len(wanted)
    assert not page.page.locator("#empty").is_visible()
    page.shoot("typed")


def test_steps_by_keys_slider_and_mouse(browse: Browse) -> None:
    page = browse(view(source="a b c d e", step=1))
    page.ready()
    keys = page.page.keyboard
    page.page.locator("h1").click()
    assert page.step == 1
    for key, step in WAYS:
        keys.press(key)
        assert page.step == step
    assert "Step 1 of 6" in page.text("#where")
    page.page.focus("#step")
    keys.press("ArrowRight")
    assert page.step == 2
    assert "looks most at" in (page.page.get_attribute("#step", "aria-valuetext") or "")
    page.page.click("#next")
    page.page.click("#next")
    page.page.click("#previous")
    assert page.step == 3
    page.page.locator(".output button").nth(4).click()
    assert page.step == 5
    assert "Step 5 of 6" in page.page.locator("#said").inner_text()
    page.page.click("#first")
    assert page.step == 1
    page.page.focus("#source")
    keys.press("ArrowRight")
    assert page.step == 1, "a cursor moves in its text"


def test_dragging_over_the_output_and_the_matrix(browse: Browse) -> None:
    page = browse(view(source="a b c d e", step=1))
    page.ready()
    mouse = page.page.mouse
    boxes = [button.bounding_box() for button in page.page.locator(".output button").all()]
    for place, box in enumerate(boxes):
        assert box
        mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        if place == 1:
            mouse.down()
    mouse.up()
    assert page.step == 6
    box = page.page.locator(".body canvas").bounding_box()
    assert box
    mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 20)
    mouse.down()
    reached = []
    for back in range(20, 200, 30):
        mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - back)
        reached.append(page.step)
    mouse.up()
    assert reached == [6, 5, 4, 3, 2, 1]


def test_playing_goes_to_the_end_and_can_be_paused(browse: Browse) -> None:
    page = browse(view(source="a b c", step=1))
    page.ready()
    page.page.click("#play")
    page.page.click("#play")
    paused = page.step
    assert paused < 4
    page.page.click("#play")
    page.ready()
    assert page.step == 4


def test_the_numbers_are_the_models(browse: Browse, toys: ToyRuns) -> None:
    page = browse(view(source="a b c d", step=2))
    page.ready()
    found = trace(toys.predictor("luong"), "a b c d")
    look = found["looks"][0]
    rows = zip(page.table(), found["source"]["tokens"], look["scores"][5:10], look["weights"][5:10], strict=True)
    for row, token, score, weight in rows:
        assert row == [token, f"{score:.3f}".replace("-", "−"), f"{weight / 10000:.4f}"]
    (best, *_) = found["steps"][1]["candidates"]
    told = page.panel().locator("details table").first.locator("tbody tr").first.locator("th, td").all_text_contents()
    assert told == [best["token"], f"{best['p']:.4f}"]


def test_a_candidate_steers_and_can_be_let_go(browse: Browse, toys: ToyRuns) -> None:
    page = browse(view(source="a b c d", step=2))
    page.ready()
    before = page.symbols()
    name = page.candidates()[0]
    page.panel().locator(".candidate").first.click()
    page.page.wait_for_selector(".release")
    page.ready()
    after = page.symbols()
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert name.startswith(f"Take {after[1]} here")
    assert page.step == 2
    assert page.page.locator(".output .held").count() == 2
    (wanted,) = toys.predictor("luong").predict(["a b c d"], prefixes=[" ".join(after[:2])])
    assert after == wanted.tokens
    page.shoot("steered")
    page.panel().locator(".candidate").first.focus()
    page.page.keyboard.press("Enter")
    page.until(f"document.querySelectorAll('.output button')[1].textContent !== {json.dumps(after[1])}")
    page.ready()
    page.page.click(".release")
    page.page.wait_for_selector(".release", state="detached")
    page.ready()
    assert page.symbols() == before


def test_an_output_of_ones_own(browse: Browse) -> None:
    page = browse()
    page.ask("a b c", target="f f")
    page.ready()
    assert page.symbols() == ["f", "f", "</s>"]
    page.page.check("#tree")
    page.page.wait_for_selector("text=was not searched for")


def test_layers_and_heads(browse: Browse) -> None:
    page = browse(view(source="a b c d", model="guided", step=2))
    page.ready()
    layer, head = page.page.locator("select.layer"), page.page.locator("select.head")
    assert (layer.input_value(), head.input_value()) == ("0", "1")
    assert "set to show" in page.text(".pickers")
    pressed = page.page.locator(".thumbnail[aria-pressed=true]")
    assert pressed.get_attribute("aria-label") == "Layer 0, Head 1"
    before = page.table()
    page.shoot("heads")
    layer.select_option("1")
    assert pressed.get_attribute("aria-label") == "Layer 1, Head 1"
    assert page.table() != before
    head.select_option("")
    assert "no scores" in page.text(".story")
    page.page.locator(".thumbnail").first.click()
    assert (layer.input_value(), head.input_value()) == ("0", "0")
    assert page.step == 2
    assert "look=0.0" in page.page.url


def test_two_models_side_by_side(browse: Browse) -> None:
    page = browse()
    page.ask("a b c d e f", model="luong", beside="seq2seq")
    page.ready()
    assert page.page.locator(".panel").count() == 2
    left, right = (page.panel(number).bounding_box() for number in (0, 1))
    assert left
    assert right
    assert left["x"] + left["width"] <= right["x"]
    page.page.keyboard.press("Tab")
    page.page.click("#first")
    page.page.keyboard.press("ArrowRight")
    assert page.step == 2
    page.shoot("two")
    before = page.symbols(0)
    page.panel(1).locator(".candidate").first.click()
    page.page.wait_for_selector(".release")
    page.ready()
    assert page.symbols(0) == before, "steering one leaves the other"
    page.ask("a b", beside="")
    page.until("document.querySelectorAll('.panel').length === 1")


def test_no_attention_is_said_honestly(browse: Browse) -> None:
    page = browse(view(source="a b c", model="seq2seq", step=1))
    page.ready()
    assert "This model has no attention" in page.text(".honest")
    assert "one fixed vector" in page.text(".story")
    assert page.page.locator(".body canvas").count() == 0
    assert len(page.candidates()) == 4
    page.shoot("no-attention")


def test_copies_coverage_and_the_gate(browse: Browse) -> None:
    page = browse(view(source="Kabelo lives in Nomira", model="names", step=2))
    page.ready()
    assert page.symbols() == ["in", "Nomira", "there", "is", "Kabelo", "</s>"]
    shown = page.text(".story")
    for words in ("generate or copy", "copied", "looked at before this step (running sum of weights)"):
        assert words in shown
    row = next(row for row in page.table() if row[0] == "Nomira")
    assert float(row[4]) > 0.5
    page.shoot("copies")


def test_pointers_have_arrows_and_a_map(browse: Browse) -> None:
    page = browse(view(source="[[0.5, 0.1], [0.1, 0.9], [0.9, 0.4]]", model="points", step=3))
    page.ready()
    assert page.symbols() == ["1 · (0.1,0.9)", "0 · (0.5,0.1)", "2 · (0.9,0.4)", "</s>"]
    assert page.page.locator("figure svg circle").count() == 3
    assert page.page.locator("figure svg path").count() == 2
    assert [row[1] for row in page.table()][:2] == ["–", "–"], "what was visited has no score"
    page.shoot("pointers")


def test_the_beam_as_a_tree(browse: Browse, toys: ToyRuns) -> None:
    page = browse(view(source="a b c", step=2))
    page.ready()
    page.page.check("#tree")
    page.page.wait_for_selector(".ended li")
    page.ready()
    found = trace(toys.predictor("luong"), "a b c", tree=True)["beam"]["ended"]
    assert [item.split(" log")[0] for item in page.page.locator(".ended li").all_inner_texts()] == [one["text"] for one in found]
    assert page.step == 2
    page.shoot("beam")
    page.page.uncheck("#tree")
    page.page.wait_for_selector(".ended", state="detached")


@pytest.mark.parametrize("where", [{"model": "luong"}, {"model": "guided", "tree": 1, "beside": "names"}])
def test_what_is_shown_is_kept_as_svg_png_and_json(browse: Browse, tmp_path: Path, where: dict[str, str]) -> None:
    page = browse(view(source="a b c", step=2, **where))
    page.ready()
    saved = {}
    for kind in ("svg", "png", "json"):
        with page.page.expect_download() as coming:
            page.page.click(f"#{kind}")
        assert coming.value.suggested_filename == f"attention.{kind}"
        saved[kind] = tmp_path / f"{kind}"
        coming.value.save_as(saved[kind])
    tree = ElementTree.parse(saved["svg"])
    texts = ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"scores", "softmax: weights", "next symbol", "a", "b", "c"} <= set(texts)
    assert f"{where['model']} ({'transformer' if where['model'] == 'guided' else 'luong'})" in texts
    assert not list(tree.iter("{http://www.w3.org/2000/svg}script"))
    content = saved["png"].read_bytes()
    assert content.startswith(b"\x89PNG")
    wide, high = struct.unpack(">II", content[16:24])
    assert (wide, high) == tuple(2 * int(tree.getroot().get(side) or 0) for side in ("width", "height"))
    traces = json.loads(saved["json"].read_text(encoding="utf-8"))["traces"]
    assert [one["name"] for one in traces] == [name for name in (where["model"], where.get("beside")) if name]
    assert set(traces[0]["looks"][traces[0]["shown"]]) == {"layer", "head", "weights", "scores", "parts", "kept", "norms"}
    (page.pictures / f"saved-{where['model']}.png").write_bytes(content)


def test_a_link_restores_the_view(browse: Browse) -> None:
    page = browse(options={"permissions": ["clipboard-read", "clipboard-write"]})
    page.ask("a b c d", model="guided", beside="luong")
    page.ready()
    page.page.locator("select.layer").select_option("1")
    page.page.check("#tree")
    page.page.wait_for_selector(".ended")
    page.ready()
    page.page.locator(".panel").nth(1).locator(".output button").nth(1).click()
    page.panel(1).locator(".candidate").first.click()
    page.page.wait_for_selector(".release")
    page.ready()
    page.page.select_option("#language", "ko")
    page.page.select_option("#theme", "dark")
    page.page.click("#link")
    link = page.page.evaluate("navigator.clipboard.readText()")
    other = browse(link.removeprefix(page.url + "/"))
    other.ready()
    for number in (0, 1):
        assert other.symbols(number) == page.symbols(number)
    assert other.step == page.step == 2
    assert other.page.locator("select.layer").input_value() == "1"
    assert other.page.locator("#theme").input_value() == "dark"
    assert other.text("h1") == "eyeline 어텐션 탐색기"
    assert other.page.locator(".ended").count() == 2
    assert other.page.locator(".panel").nth(1).locator(".held").count() == 2


def test_a_cell_and_its_labels_light_up_together(browse: Browse) -> None:
    page = browse(view(source="a b c d", step=2))
    page.ready()
    box = page.page.locator(".body canvas").bounding_box()
    assert box
    lit = page.page.locator(".story text[text-decoration=underline]")
    page.page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] - 20)
    assert lit.all_text_contents() == ["</s>"]
    before = page.page.locator(".body canvas").screenshot()
    item = page.page.locator(".story text", has_text="b").first.bounding_box()
    assert item
    page.page.mouse.move(item["x"] + 3, item["y"] + 3)
    assert lit.all_text_contents() == ["b"]
    assert page.page.locator(".body canvas").screenshot() != before
    page.shoot("lit")
