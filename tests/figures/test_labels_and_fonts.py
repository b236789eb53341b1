"""Labels of any script: literal, whole, visible and inside the picture; at most one line about what no font has."""

import logging
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.figures import AlignmentMatrix, fonts
from eyeline.figures.heat_map import COLOURS
from eyeline.figures.labels import heading, one_line, script, shortened, spelt, visible

HARD = ["你", "好", " ", "한", "ع", "😀", "$x$", "$$", "a_b", "\\frac", "<s>", "&", '"', "^", "{", "%", "#", "\x07", "]]>", "--"]
PRIVATE = "\U0010fffd"  # a private character that no font should have


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(fonts, "_told", set())
    monkeypatch.setattr(fonts, "_families", {})


def matrix(tokens, **named):
    return AlignmentMatrix(tokens, tokens, np.eye(len(tokens)), **named)


def svg_text(path):
    return [element.text for element in ET.parse(path).iter() if element.tag.endswith("}text")]


def pixels(path):
    from matplotlib.image import imread

    return imread(path)[..., :3]


# text stays text, literal


def test_hard_labels_are_text_in_a_well_formed_svg(tmp_path):
    path = matrix(HARD, title="a $\\frac{1}{2}$ & <b> → 한", note="^_^").save(tmp_path / "m.svg")
    text = svg_text(path)
    for token in HARD:
        assert text.count(visible(token)) == 2, token
    assert "a $\\frac{1}{2}$ & <b> → 한" in text
    content = path.read_text(encoding="utf-8")
    assert "&lt;s&gt;" in content
    assert "$$" in content
    assert "<s>" not in content


def test_hard_labels_are_drawn_with_one_line_about_them_and_no_warning(tmp_path):
    code = (
        "import sys, numpy\n"
        "from eyeline.figures import AlignmentMatrix\n"
        "tokens = sys.argv[2:]\n"
        "for name in ('a.png', 'b.png', 'c.svg'):\n"
        "    AlignmentMatrix(tokens, tokens, numpy.eye(len(tokens)), ' '.join(tokens)).save(sys.argv[1] + '/' + name)\n"
    )
    run = [sys.executable, "-W", "error", "-c", code, str(tmp_path), *HARD, PRIVATE]
    done = subprocess.run(run, capture_output=True, check=False)
    stderr = done.stderr.decode("utf-8").split("\n")[:-1]
    assert done.returncode == 0, stderr
    told = [line for line in stderr if "font cache" not in line]  # matplotlib's word on its first start
    assert len(told) == 1
    assert "private or unassigned" in told[0]


@settings(max_examples=25, deadline=None)
@given(tokens=st.lists(st.text(st.characters(), max_size=4), min_size=1, max_size=4), title=st.text(max_size=20))
def test_any_text_gives_well_formed_xml_with_all_labels(tokens, title, tmp_path_factory):
    path = matrix(tokens, title=title).save(tmp_path_factory.mktemp("m") / "m.svg")
    text = svg_text(path)
    assert all(visible(token) in text for token in tokens)


@settings(max_examples=10, deadline=None)
@given(tokens=st.lists(st.text(st.characters(), max_size=4), min_size=1, max_size=4), title=st.text(max_size=20))
def test_any_text_gives_a_png(tokens, title, tmp_path_factory):
    path = matrix(tokens, title=title).save(tmp_path_factory.mktemp("m") / "m.png")
    assert path.read_bytes().startswith(b"\x89PNG")


# labels of tokens


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" ", "␣"),
        ("New York", "New␣York"),
        ("", "⟨empty⟩"),
        ("\u200f", "⟨RLM⟩"),
        ("\u202e", "⟨U+202E⟩"),
        ("\t\n", "⟨TAB⟩⟨LF⟩"),
        ("a\u2028b", "a⟨U+2028⟩b"),
        ("\ufeff", "⟨BOM⟩"),
        ("\udc80", "⟨U+DC80⟩"),
        ("\uffff", "⟨U+FFFF⟩"),
        ("\u0301", "◌\u0301"),
        (" \u0301", "␣◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\u200cم", "⟨ZWNJ⟩م"),
        ("</s>", "</s>"),
    ],
)
def test_what_leaves_no_ink_is_made_visible(token, shown):
    assert visible(token) == shown


def test_a_label_is_whole_or_ends_in_an_ellipsis():
    assert shortened("x" * 40) == "x" * 40
    assert shortened("x" * 41) == "x" * 39 + "…"
    cut = shortened("e\u0301" * 30)
    assert len(cut) <= 40
    assert cut == "e\u0301" * 19 + "…"


def test_a_title_is_one_line_that_keeps_its_marks_of_direction():
    assert one_line("23.\u202fFebruar\n1987\u2028\x0c!") == "23. Februar 1987 !"
    assert one_line("\u200f٢٣\u200f") == "\u200f٢٣\u200f"
    assert one_line("a\u202eb\x00") == "a⟨U+202E⟩b⟨NUL⟩"


def test_missing_characters_are_spelt_as_code_points():
    missing = frozenset("한국")
    assert spelt("한", missing) == "U+D55C"
    assert spelt("한국", missing) == "U+D55C U+AD6D"
    assert spelt("a한b 국", missing) == "a U+D55C b U+AD6D"
    assert spelt("abc", missing) == "abc"


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("한", "Hangul"),
        ("你", "CJK"),
        ("ع", "Arabic"),
        ("अ", "Devanagari"),
        ("😀", "symbols"),
        (PRIVATE, "private or unassigned"),
    ],
)
def test_scripts_are_named_for_people(character, name):
    assert script(character) == name


# fonts


def test_each_script_is_told_once_a_process_and_nothing_is_told_of_what_is_there(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        matrix(["a", "é", "ж", "ع", "→"]).save(tmp_path / "m.png")
        assert caplog.records == []
        matrix([PRIVATE, "\U0010fffc", "a"], title=PRIVATE).save(tmp_path / "m.png")
        matrix([PRIVATE]).save(tmp_path / "m.png")
    assert len(caplog.records) == 1
    assert "2 of the picture's characters (private or unassigned)" in caplog.records[0].getMessage()


def test_an_svg_leaves_missing_characters_to_the_reader_and_says_nothing(tmp_path, caplog):
    assert svg_text(matrix([PRIVATE]).save(tmp_path / "m.svg")).count(PRIVATE) == 2
    assert caplog.records == []


def test_a_missing_character_is_drawn_as_its_code_point_and_not_as_a_box(tmp_path):
    one, other = (matrix([token]).save(tmp_path / "m.png").read_bytes() for token in (PRIVATE, "\U0010fffc"))
    assert one != other  # boxes look alike


def test_a_font_that_has_the_character_is_found_among_those_installed(tmp_path, caplog, monkeypatch):
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from matplotlib import font_manager

    def glyph(draw):
        pen = TTGlyphPen(None)
        if draw:
            for move, point in zip("MLL", [(100, 0), (900, 0), (500, 900)], strict=True):
                (pen.moveTo if move == "M" else pen.lineTo)(point)
            pen.closePath()
        return pen.glyph()

    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "triangle"])
    builder.setupCharacterMap({ord(PRIVATE): "triangle"})
    builder.setupGlyf({".notdef": glyph(False), "triangle": glyph(True)})
    builder.setupHorizontalMetrics({".notdef": (1000, 0), "triangle": (1000, 100)})
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": "Triangle Sans", "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=900, usWeightClass=400)
    builder.setupPost()
    path = tmp_path / "triangle.ttf"
    builder.save(path)

    monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(path), str(tmp_path / "damaged.ttf")])
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    fonts._read_new_fonts.cache_clear()
    fonts._font.cache_clear()
    try:
        found = fonts.coverage([PRIVATE, "a"])  # installed after matplotlib wrote its list
        assert found == (["DejaVu Sans", "Triangle Sans"], frozenset())
        drawn = pixels(matrix([PRIVATE]).save(tmp_path / "m.png"))
        assert (drawn < 0.2).all(axis=2).sum() > 100
        assert caplog.records == []
    finally:
        fonts._font.cache_clear()


# the picture


def border_is_blank(path):
    image = pixels(path)
    return all((edge == 1).all() for edge in (image[:6], image[-6:], image[:, :6], image[:, -6:]))


@pytest.mark.parametrize(
    "tokens",
    [
        [f"word{i}" for i in range(59)] + ["</s>"],
        [*"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVW", "</s>"],
        ["W" * 40] * 60,
        ["W" * 50, "i"],
        ["i", "W" * 50],
        ["한국어를말하다"] * 5 + [PRIVATE * 9],
        ["a"],
    ],
    ids=["words", "characters", "long", "first", "last", "missing", "one"],
)
def test_all_labels_lie_inside_the_picture(tokens, tmp_path):
    path = matrix(tokens, title="a title " * 40, note="of many words").save(tmp_path / "m.png")
    assert border_is_blank(path)


def test_the_picture_grows_with_the_matrix_up_to_a_bound(tmp_path):
    sizes = [pixels(matrix([str(i) for i in range(n)]).save(tmp_path / f"{n}.png")).shape[0] for n in (3, 10, 30, 60)]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] < 3000


def test_a_very_large_matrix_is_bounded_and_says_which_labels_it_shows(tmp_path):
    tokens = [str(i) for i in range(1000)]
    path = AlignmentMatrix(tokens, ["x", "y"], np.full((2, 1000), 0.001), note="large").save(tmp_path / "m.svg")
    text = svg_text(path)
    assert "large (one label in 3)" in text
    assert "999" in text
    assert "998" not in text
    width = float(ET.parse(path).getroot().get("width").removesuffix("pt"))
    assert width < 40 * 72


def test_colours_darken_in_equal_steps():
    def lightness(colour):
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in np.frombuffer(colour, np.uint8) / 255]
        y = float(np.dot([0.2126, 0.7152, 0.0722], linear))
        return 116 * y ** (1 / 3) - 16

    steps = -np.diff([lightness(bytes.fromhex(colour[1:])) for colour in COLOURS])
    assert steps == pytest.approx(np.full(8, 81 / 8), abs=1)


def test_the_larger_weight_is_the_darker_cell(tmp_path):
    image = pixels(AlignmentMatrix(["a", "b"], ["x"], [[0.9, 0.1]]).save(tmp_path / "m.png")).sum(axis=2)
    line = image[(image < 1.2).sum(axis=1).argmax()]  # of pixels, through the only row
    dark, light = (line < 1.2).nonzero()[0], ((line > 2.3) & (line < 2.9)).nonzero()[0]
    assert dark.size > 40
    assert light.size > 40
    assert np.median(dark) < np.median(light)


def test_settings_of_the_user_neither_change_nor_are_changed(tmp_path):
    import matplotlib
    from matplotlib import style

    plain = matrix(["a", "b"], title="t").save(tmp_path / "plain.png").read_bytes()
    with style.context("dark_background"), matplotlib.rc_context({"font.size": 30, "text.usetex": True, "axes.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        assert matrix(["a", "b"], title="t").save(tmp_path / "styled.png").read_bytes() == plain
        matrix(["a", "b"]).save(tmp_path / "styled.svg")
        assert dict(matplotlib.rcParams) == before


def test_pyplot_is_never_imported(tmp_path):
    code = (
        "import sys\nfrom eyeline.figures import AlignmentMatrix\n"
        "AlignmentMatrix(['a'], ['b'], [[1.0]]).save(sys.argv[1])\nprint('matplotlib.pyplot' in sys.modules)"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "m.png")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_heading_keeps_each_side_in_its_own_direction():
    assert heading("a b", "b a") == "a b → b a"
    mark = "\u200e"
    assert heading("١٨ يونيو ٢٠٥٠", "2050-06-18") == f"{mark}١٨ يونيو ٢٠٥٠{mark} → {mark}2050-06-18{mark}"
    assert heading("2050-06-18", "שלום").startswith(mark)
