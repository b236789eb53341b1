"""A Parquet file through a predictor: what is kept, what is added, and when a file is there. Needs pyarrow; no cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from eyeline.bulk import Done, Means, Place, Shard, Work, find_shards, predict_shard, remove_leftovers
from eyeline.contracts import Alternative, Prediction
from eyeline.errors import DataError, UserError

MEANS = Means.of({"the run": "abc"}, {"beam_size": 5})
WORK = Work("de", MEANS)
ROWS = 10_000  # more than are predicted at a time


def answers(lines: Sequence[tuple[str, str]], first: int) -> list[Prediction]:
    """An answer that says which row it is of."""
    found = []
    for number, (text, _) in enumerate(lines, first):
        said = f"{number} {text.upper()}"
        n_best = [Alternative(said, -1.5, -0.5, ["a"], [-1.5], True), Alternative("", -2.0, -1.0, [], [], False)]
        found.append(Prediction(text, said, -1.5, -0.5, ["s"], ["a"], [-1.5], [[0.25]], n_best, number == 3, number != 5))
    return found


def table(rows: int = ROWS) -> Any:
    numbers = arrow.array(range(rows), arrow.int32())
    texts = arrow.array([None if number == 7 else f"text {number}\nß" for number in range(rows)])
    tags = arrow.array([[{"k": str(number)}] for number in range(rows)])
    return arrow.table({"id": numbers, "de": texts, "tags": tags}).replace_schema_metadata({b"theirs": b"kept"})


def shard(folder: Path, rows: int = ROWS, name: str = "a.parquet") -> Shard:
    (folder / "in").mkdir(exist_ok=True)
    parquet.write_table(table(rows), folder / "in" / name, row_group_size=3000)
    return find_shards([str(folder / "in" / name)], str(folder / "out"))[0]


def test_every_row_is_kept_and_answered_in_its_place(tmp_path: Path) -> None:
    assert predict_shard(answers, shard(tmp_path), WORK) == Done(ROWS, True, 1, 1)
    made = parquet.read_table(tmp_path / "out" / "a.parquet")
    assert made.select(["id", "de", "tags"]).replace_schema_metadata(None).equals(table().replace_schema_metadata(None))
    assert made.schema.metadata[b"theirs"] == b"kept"
    assert made.column_names[3:] == ["prediction", "score", "normalized_score", "finished", "truncated"]
    said = made.column("prediction").to_pylist()
    assert said[0] == "1 TEXT 0\nSS"
    assert said[7] == "8 "  # null is predicted as an empty text
    assert said[ROWS - 1] == f"{ROWS} TEXT {ROWS - 1}\nSS"
    assert (made.column("score")[0].as_py(), made.column("normalized_score")[0].as_py()) == (-1.5, -0.5)
    assert [place for place, value in enumerate(made.column("finished").to_pylist()) if not value] == [4]
    assert [place for place, value in enumerate(made.column("truncated").to_pylist()) if value] == [2]
    assert os.listdir(tmp_path / "out") == ["a.parquet"]


def test_more_columns_on_request(tmp_path: Path) -> None:
    predict_shard(answers, shard(tmp_path, 3), Work("de", MEANS, n_best=2, tokens=True, attention=True))
    made = parquet.read_table(tmp_path / "out" / "a.parquet").slice(0, 1).to_pylist()[0]
    assert made["n_best"] == [
        {"text": "1 TEXT 0\nSS", "score": -1.5, "normalized_score": -0.5},
        {"text": "", "score": -2.0, "normalized_score": -1.0},
    ]
    assert (made["source_tokens"], made["tokens"], made["token_scores"]) == (["s"], ["a"], [-1.5])
    assert made["alignment"] == [[0.25]]


def test_an_empty_shard_has_an_empty_output(tmp_path: Path) -> None:
    assert predict_shard(answers, shard(tmp_path, 0), WORK) == Done(0, True)
    assert parquet.read_table(tmp_path / "out" / "a.parquet").num_rows == 0


def nobody(lines: Sequence[tuple[str, str]], first: int) -> list[Prediction]:
    raise AssertionError("the model was asked")


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    given = shard(tmp_path)
    predict_shard(answers, given, WORK)
    before = (tmp_path / "out" / "a.parquet").stat().st_mtime_ns
    assert predict_shard(nobody, given, WORK) == Done(ROWS, False, 1, 1)
    assert (tmp_path / "out" / "a.parquet").stat().st_mtime_ns == before
    other = Work("de", Means.of({"the run": "abc"}, {"beam_size": 4}))
    with pytest.raises(UserError, match=r"begun with beam_size=5, not 4 \(.*out/a\.parquet\); name another -o DIR"):
        predict_shard(answers, given, other)
    given = shard(tmp_path, 20)  # another source under the same name
    assert predict_shard(answers, given, WORK) == Done(20, True, 1, 1)
    parquet.write_table(table(3), tmp_path / "out" / "a.parquet")
    with pytest.raises(UserError, match="another file stands in the place of an output"):
        predict_shard(answers, given, WORK)


@pytest.mark.parametrize("error", [UserError("a row"), KeyboardInterrupt(), ValueError("a defect")])
def test_an_output_is_whole_or_not_there(tmp_path: Path, error: BaseException) -> None:
    given = shard(tmp_path)

    def dying(lines: Sequence[tuple[str, str]], first: int) -> list[Prediction]:
        if first > 5000:
            assert [name for name in os.listdir(tmp_path / "out") if not name.startswith(".")] == []
            raise error
        return answers(lines, first)

    with pytest.raises(type(error)):
        predict_shard(dying, given, WORK)
    assert os.listdir(tmp_path / "out") == []


def test_what_kills_leave_is_removed_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out" / "deep"
    out.mkdir(parents=True)
    for name in (".a.parquet.0123abcd.partial", "a.parquet", "b.partial", ".hidden"):
        (out / name).touch()
    remove_leftovers(Place.of(str(tmp_path / "out")))
    assert sorted(os.listdir(out)) == [".hidden", "a.parquet", "b.partial"]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("en", r"there is no column en \(.*a\.parquet\); --columns names one of id, de, tags"),
        ("id", "column id holds int32, not text"),
    ],
)
def test_a_wrong_column_is_named(tmp_path: Path, column: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        predict_shard(answers, shard(tmp_path, 3), Work(column, MEANS))


def test_names_do_not_come_twice(tmp_path: Path) -> None:
    given = shard(tmp_path, 3)
    parquet.write_table(table(3).append_column("score", arrow.array([1, 2, 3])), given.source.path)
    with pytest.raises(DataError, match="there is a column score already, which a prediction has, too"):
        predict_shard(answers, given, WORK)


@pytest.mark.parametrize("damage", [b"no table", b""])
def test_damage_is_named(tmp_path: Path, damage: bytes) -> None:
    given = shard(tmp_path, 3)
    Path(given.source.path).write_bytes(damage)
    with pytest.raises(DataError, match=r"not a readable Parquet file: .*a\.parquet"):
        predict_shard(answers, given, WORK)
    damaged = shard(tmp_path)
    content = bytearray(Path(damaged.source.path).read_bytes())
    content[40:4000] = bytes(3960)
    Path(damaged.source.path).write_bytes(content)
    with pytest.raises(DataError, match="damaged Parquet file"):
        predict_shard(answers, damaged, WORK)


# ---- where shards lie ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "x/a.parquet",
        "x/b 1%.parquet",
        "y/a.parquet",
        "y/deep/c.parquet",
        "x/_tmp/d.parquet",
        "x/.e.parquet",
        "x/f.txt",
    ):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["in"], ["x/a.parquet", "x/b 1%.parquet", "y/a.parquet", "y/deep/c.parquet"]),
        (["in/x"], ["a.parquet", "b 1%.parquet"]),
        (["in/x/"], ["a.parquet", "b 1%.parquet"]),
        (["in/*/a.parquet"], ["x/a.parquet", "y/a.parquet"]),
        (["in/x/*.parquet"], ["a.parquet", "b 1%.parquet"]),
        (["in/*/[b-z]*.parquet"], ["b 1%.parquet"]),
        (["in/y/deep/c.parquet"], ["c.parquet"]),
        (["in/x/a.parquet", "in/x", "in/y/deep"], ["x/a.parquet", "x/b 1%.parquet", "y/deep/c.parquet"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_inputs_and_the_names_of_outputs(tree: Path, inputs: list[str], outputs: list[str], scheme: str) -> None:
    shards = find_shards([f"{scheme}{tree}/{name}" for name in inputs], f"{scheme}{tree}/out")
    assert [str(one.output) for one in shards] == [f"{tree}/out/{name}" for name in outputs]
    for one in shards:
        assert one.size == Path(str(one.source)).stat().st_size


def test_paths_of_this_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    (one,) = find_shards(["in/y/deep"], "out")
    assert (str(one.source), str(one.output)) == (f"{tree}/in/y/deep/c.parquet", f"{tree}/out/c.parquet")


@pytest.mark.parametrize("name", ["in/z", "in/x/*.csv", "in/x/f*", "nowhere/*.parquet"])
def test_nothing_found_is_an_error(tree: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"no \.parquet file is there"):
        find_shards([f"{tree}/in/x", f"{tree}/{name}"], f"{tree}/out")


def test_a_source_is_never_overwritten(tree: Path) -> None:
    for out in ("in/x", "in/x/../x"):
        with pytest.raises(UserError, match="an output would stand in the place of a source"):
            find_shards([f"{tree}/in/x"], f"{tree}/{out}")


def test_an_unknown_file_system_is_named() -> None:
    with pytest.raises(UserError, match=r"no such place: .* \(what://bucket/folder\)"):
        find_shards(["what://bucket/folder"], "out")
