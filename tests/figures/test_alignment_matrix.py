"""The alignment matrix as values and as a file: labels beside their own weights, whole files, and what is refused."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyeline.contracts import Prediction
from eyeline.errors import ConfigError, MissingExtra, UserError
from eyeline.figures import AlignmentMatrix

REVERSED = AlignmentMatrix(
    ["a", "b", "c", "</s>"], ["c", "b", "a", "</s>"], np.eye(4)[[2, 1, 0, 3]], "a b c → c b a", "luong, dot"
)


class Svg:
    """What stands where in an SVG: labels of rows and columns in order of place, and the fill of the cells in between."""

    def __init__(self, path):
        self.root = ET.parse(path).getroot()
        labels = [element for element in self.root.iter() if element.tag.endswith("}text")]
        labels = [label for label in labels if "#1b2330" in label.get("style") and "font-size: 12px" not in label.get("style")]
        rows = [label for label in labels if "text-anchor: end" in label.get("style")]
        columns = [label for label in labels if label not in rows]
        self.rows = sorted(rows, key=lambda label: float(label.get("y")))
        self.columns = sorted(columns, key=lambda label: float(label.get("x")))

    def text(self):
        return [element.text for element in self.root.iter() if element.tag.endswith("}text")]

    def fills(self):
        """Fill colour to the middles (x, y) of its cells."""
        found = {}
        for group in self.root.iter():
            if "QuadMesh" in group.get("id", ""):
                for path in group:
                    fill = re.search(r"fill: (#\w+)", path.get("style", ""))
                    points = [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", path.get("d", ""))]
                    if fill and points:
                        found.setdefault(fill[1], []).append(np.mean(points[:4], axis=0))
        return found


def test_the_peak_of_each_row_is_under_its_own_column(tmp_path):
    svg = Svg(REVERSED.save(tmp_path / "matrix.svg"))
    assert [label.text for label in svg.columns] == ["a", "b", "c", "</s>"]
    assert [label.text for label in svg.rows] == ["c", "b", "a", "</s>"]
    fills = svg.fills()
    assert len(fills) == 2
    dark = fills[min(fills, key=lambda colour: sum(bytes.fromhex(colour[1:])))]
    assert len(dark) == 4
    linked = set()
    for x, y in dark:
        column = min(svg.columns, key=lambda label: abs(float(label.get("x")) - x))
        row = min(svg.rows, key=lambda label: abs(float(label.get("y")) - y))
        linked.add((row.text, column.text))
    assert linked == {("c", "c"), ("b", "b"), ("a", "a"), ("</s>", "</s>")}


@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (1, 1), (1, 30), (30, 1)])
def test_every_token_has_its_row_or_column(shape, tmp_path):
    rows, columns = [f"t{i}" for i in range(shape[0])], [f"s{i}" for i in range(shape[1])]
    weights = np.full(shape, 1 / shape[1])
    svg = Svg(AlignmentMatrix(columns, rows, weights).save(tmp_path / "matrix.svg"))
    assert [label.text for label in svg.rows] == rows
    assert [label.text for label in svg.columns] == columns


def test_repeated_tokens_keep_their_own_columns(tmp_path):
    svg = Svg(AlignmentMatrix(list("aaa"), list("aa"), [[1, 0, 0], [0, 0, 1]]).save(tmp_path / "matrix.svg"))
    assert [label.text for label in svg.columns] == ["a", "a", "a"]
    assert len({label.get("x") for label in svg.columns}) == 3
    assert len({label.get("y") for label in svg.rows}) == 2


def test_title_and_note_are_in_the_picture_and_colours_have_a_scale(tmp_path):
    text = Svg(REVERSED.save(tmp_path / "matrix.svg")).text()
    assert {"a b c → c b a", "luong, dot", "0", "0.5", "1"} <= set(text)


def test_json_holds_the_values_as_given(tmp_path):
    weights = [[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]]
    source = ["\u200f", "a" * 60, "$"]
    stored = json.loads(AlignmentMatrix(source, ["x", ""], weights, "t", "n").save(tmp_path / "m.json").read_bytes())
    assert stored == {"source_tokens": source, "target_tokens": ["x", ""], "weights": weights, "title": "t", "note": "n"}


@settings(max_examples=50, deadline=None)
@given(tokens=st.lists(st.text(st.characters(), max_size=5), min_size=1, max_size=4))
def test_any_tokens_come_back_from_json(tokens, tmp_path_factory):
    path = AlignmentMatrix(tokens, tokens, np.eye(len(tokens))).save(tmp_path_factory.mktemp("m") / "m.JSON")
    stored = json.loads(path.read_bytes().decode("utf-8"))
    assert stored["source_tokens"] == stored["target_tokens"] == tokens


def test_json_needs_no_tensor_and_no_picture_library(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from eyeline.figures import AlignmentMatrix\n"
        "AlignmentMatrix(['a'], ['b'], [[1.0]]).save(sys.argv[1])\n"
        "print('torch' in sys.modules)"
    )
    path = tmp_path / "m.json"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert path.exists()


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"matplotlib.*eyeline\[plots\]"):
        REVERSED.save(tmp_path / "m.png")
    assert list(tmp_path.iterdir()) == []


def prediction(alignment):
    return Prediction("a b", "x", -0.5, -0.25, ["a", "b", "</s>"], ["x", "</s>"], [-0.3, -0.2], alignment, [], False, True)


def test_a_prediction_gives_its_matrix():
    matrix = AlignmentMatrix.of(prediction([[0.9, 0.1, 0], [0, 0, 1]]), note="bahdanau")
    assert (matrix.source_tokens, matrix.target_tokens) == (("a", "b", "</s>"), ("x", "</s>"))
    assert (matrix.title, matrix.note) == ("a b → x", "bahdanau")
    assert matrix.weights.sum(axis=1) == pytest.approx([1, 1])
    with pytest.raises(UserError, match="no alignment"):
        AlignmentMatrix.of(prediction(None))


@pytest.mark.parametrize(
    ("source", "target", "weights", "said"),
    [
        (["a", "b"], ["x"], [[1.0]], r"shape \(1, 1\) for 1 target tokens and 2 source tokens"),
        (["a", "b"], ["x", "y", "z"], np.zeros((2, 3)), r"shape \(2, 3\) for 3 target tokens and 2 source"),
        ([], ["x"], np.zeros((1, 0)), "nothing to draw: 1 target tokens and 0 source tokens"),
        (["a"], ["x"], [[float("nan")]], r"lie in 0…1"),
        (["a"], ["x"], [[-0.5]], r"these in -0\.5…-0\.5"),
        (["a"], ["x"], [[40.0]], r"these in 40…40"),
        ("ab", ["x"], [[1.0, 0.0]], "source tokens are one string"),
    ],
)
def test_what_does_not_belong_together_is_refused(source, target, weights, said):
    with pytest.raises(UserError, match=said):
        AlignmentMatrix(source, target, weights)


@pytest.mark.parametrize("name", ["m.pdf", "m", "m.html", ".png", "m.png.gz"])
def test_another_suffix_is_refused_with_the_valid_ones(name, tmp_path):
    with pytest.raises(ConfigError, match=r"valid: \.png, \.svg, \.json"):
        REVERSED.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".PNG", b"\x89PNG"), (".svg", b"<?xml"), (".json", b"{")])
def test_a_figure_replaces_what_was_there_and_is_repeatable(suffix, start, tmp_path):
    path = tmp_path / f"matrix{suffix}"
    path.write_bytes(b"old")
    assert REVERSED.save(str(path)) == path
    first = path.read_bytes()
    assert first.startswith(start)
    REVERSED.save(path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    path.write_bytes(b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"No space left on device \(.*m\.json\)"):
        REVERSED.save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_absent_folder_is_made_and_a_folder_in_place_of_a_file_is_named(tmp_path):
    assert REVERSED.save(tmp_path / "new" / "m.json").is_file()
    (tmp_path / "m.svg").mkdir()
    with pytest.raises(UserError, match=r"a directory is in the place of the file \(.*m\.svg\)"):
        REVERSED.save(tmp_path / "m.svg")


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_the_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "other").write_bytes(b"")
    assert REVERSED.save(tmp_path / "m.json").stat().st_mode == (tmp_path / "other").stat().st_mode
