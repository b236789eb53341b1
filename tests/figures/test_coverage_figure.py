"""Coverage over time as values and as a picture: running sums, their scale, and the labels of the matrix they come from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_alignment_matrix import Svg

from eyeline.errors import ConfigError
from eyeline.figures import AlignmentMatrix, CoverageMatrix

LOOKS = [[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
MATRIX = AlignmentMatrix(["a", "b", "</s>"], ["a", "b", "a", "</s>"], LOOKS, "a b → a b a", "luong")


def test_each_row_holds_all_steps_up_to_its_own() -> None:
    coverage = CoverageMatrix(MATRIX)
    assert coverage.coverage.tolist() == [[0.5, 0.5, 0.0], [1.0, 0.75, 0.25], [2.0, 0.75, 0.25], [2.0, 1.25, 0.75]]
    assert MATRIX.weights.tolist() == LOOKS


@pytest.mark.parametrize(("looks", "top"), [(LOOKS, 2.0), ([[0.3, 0.7]], 1.0), ([[1.0, 0.0]] * 3, 3.0), ([[0.9, 0.1]] * 3, 3.0)])
def test_the_scale_ends_at_a_whole_number(looks: list[list[float]], top: float) -> None:
    matrix = AlignmentMatrix(list("abc")[: len(looks[0])], ["x"] * len(looks), looks)
    assert CoverageMatrix(matrix).top == top


def test_json_holds_the_sums_and_what_they_are_of(tmp_path: Path) -> None:
    path = CoverageMatrix(MATRIX).save(tmp_path / "coverage.json")
    values = json.loads(path.read_bytes())
    assert list(values) == ["source_tokens", "target_tokens", "coverage", "title", "note"]
    assert values["coverage"][-1] == [2.0, 1.25, 0.75]
    assert (values["source_tokens"], values["title"]) == (["a", "b", "</s>"], "a b → a b a")
    assert values["note"] == "coverage over time; luong"


def test_the_picture_has_the_scale_of_its_sums_and_the_darkest_cell_where_most_was_looked(tmp_path: Path) -> None:
    svg = Svg(CoverageMatrix(MATRIX).save(tmp_path / "coverage.svg"))
    assert {"2", "1", "0"} <= set(svg.text())
    assert [label.text for label in svg.rows] == ["a", "b", "a", "</s>"]
    assert [label.text for label in svg.columns] == ["a", "b", "</s>"]
    fills = svg.fills()
    darkest = fills[min(fills, key=lambda colour: sum(bytes.fromhex(colour[1:])))]
    assert len(darkest) == 2  # 2.0 in the last two rows of the first column
    column = float(svg.columns[0].get("x"))
    assert all(abs(x - column) < 15 for x, _ in darkest)
    assert CoverageMatrix(MATRIX).save(tmp_path / "coverage.png").read_bytes()[:4] == b"\x89PNG"


def test_a_matrix_keeps_its_own_scale(tmp_path: Path) -> None:
    assert {"1", "0.5", "0"} <= set(Svg(MATRIX.save(tmp_path / "matrix.svg")).text())


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"valid: \.png, \.svg, \.json"):
        CoverageMatrix(MATRIX).save(tmp_path / "coverage.pdf")


def test_rows_end_at_what_was_looked_at_in_all() -> None:
    chance = np.random.default_rng(0)
    looks = chance.dirichlet(np.ones(5), size=7)
    coverage = CoverageMatrix(AlignmentMatrix(list("abcde"), list("1234567"), looks)).coverage
    np.testing.assert_allclose(coverage.sum(1), np.arange(1, 8))
    np.testing.assert_allclose(coverage[-1], looks.sum(0))
