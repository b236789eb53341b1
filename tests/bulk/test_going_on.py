"""An output that is gone on with has the bytes of one that was never disturbed, whenever its process ended, and is gone on with
by nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from eyeline.bulk import Means, Output, predict_lines, resumable
from eyeline.contracts import Prediction
from eyeline.errors import Interrupted, UserError

MEANS = Means.of({"the run": "abc"}, {"beam_size": 5, "sampling": None})
LINES = [(f"line {number}" * (number % 4), "") for number in range(23)]
AT_ONCE = 4


def answers(lines: Sequence[tuple[str, str]], first: int) -> list[Prediction]:
    """An answer that says where in which portion its line stood: another portion gives another one."""
    return [
        Prediction(s, f"{first} {place} {s}", 0.0, 0.0, ["a"] * len(s), [], [], None, [], False, bool(s))
        for place, (s, _) in enumerate(lines)
    ]


def form(number: int, prediction: Prediction) -> bytes:
    """One line, or several, or none."""
    return f"{number} {prediction.text}\n".encode() * (number % 3)


def run(
    path: Path,
    lines: Sequence[tuple[str, str]] = LINES,
    means: Means = MEANS,
    resume: bool = False,
    watch: Callable[[Output, int], None] = lambda place, done: None,
) -> Output:
    with resumable(path, means, resume) as place:
        made = predict_lines(answers, iter(lines), place, form, longest=15, at_once=AT_ONCE, attention=False)
        for done, _ in enumerate(made, 1):
            watch(place, done)
    return place


@pytest.fixture
def whole(tmp_path: Path) -> tuple[bytes, Any]:
    """What is written without any disturbance, and counted."""
    place = run(tmp_path / "undisturbed.txt")
    return (tmp_path / "undisturbed.txt").read_bytes(), place.seen


def stop_at(number: int, error: BaseException) -> Callable[[Output, int], None]:
    def watch(place: Output, done: int) -> None:
        if done == number:
            raise error

    return watch


def test_an_undisturbed_output_is_whole_and_leaves_nothing_beside_it(tmp_path: Path, whole: tuple[bytes, Any]) -> None:
    content, seen = whole
    assert content.count(b"\n") == sum(number % 3 for number in range(len(LINES)))
    assert [path.name for path in tmp_path.iterdir()] == ["undisturbed.txt"]
    assert seen.counts == {"unfinished": 6, "long": 5}
    assert (seen.places("unfinished"), seen.places("long")) == ("1, 5, 9, 13, 17 …", "4, 8, 12, 16, 20")


def test_after_a_kill_at_any_moment(tmp_path: Path, whole: tuple[bytes, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each call that brings something to the disk, what stands there is put aside, and gone on with."""
    moments = tmp_path / "moments"
    taken = 0

    def photographed(call: Callable[..., Any]) -> Callable[..., Any]:
        def hooked(*arguments: Any, **named: Any) -> Any:
            take()
            result = call(*arguments, **named)
            take()
            return result

        return hooked

    def take() -> None:
        nonlocal taken
        if (tmp_path / "made").exists():
            shutil.copytree(tmp_path / "made", moments / str(taken))
            taken += 1

    with monkeypatch.context() as patch:
        for name in ("fsync", "replace"):
            patch.setattr(os, name, photographed(getattr(os, name)))
        run(tmp_path / "made" / "out.txt")
    assert taken > 30
    kept = set()
    for number in range(taken):
        out = moments / str(number) / "out.txt"
        torn = out.with_name("out.txt.partial") / "output"
        if torn.exists():  # of what was written last, any part may have reached the disk
            with torn.open("ab") as stream:
                stream.write(b"torn off" * (number % 2))
        place = run(out, resume=True, watch=lambda place, done: kept.add(place.lines))
        assert out.read_bytes() == whole[0]
        assert place.seen == whole[1]
        assert [path.name for path in out.parent.iterdir() if not path.name.startswith(".")] == ["out.txt"]
    assert kept >= {0, 4, 8, 12, 16, 20}


def test_an_interruption_keeps_whole_portions_and_says_so(tmp_path: Path, whole: tuple[bytes, Any]) -> None:
    out = tmp_path / "out.txt"
    with pytest.raises(Interrupted, match=r"^8 lines are kept \(.*out\.txt\.partial\), --resume goes on behind them$"):
        run(out, watch=stop_at(11, KeyboardInterrupt()))
    assert not out.exists()
    with pytest.raises(Interrupted, match=r"^16 lines are kept"):  # and once more
        run(out, resume=True, watch=stop_at(11, KeyboardInterrupt()))
    run(out, resume=True)
    assert out.read_bytes() == whole[0]


def test_what_ended_before_the_first_portion_leaves_nothing(tmp_path: Path) -> None:
    for error in (KeyboardInterrupt(), UserError("a bad line"), ValueError("a defect")):
        with pytest.raises(type(error)):
            run(tmp_path / "out.txt", watch=stop_at(3, error))
        assert list(tmp_path.iterdir()) == []


def test_an_error_the_user_can_mend_says_what_is_kept(tmp_path: Path, whole: tuple[bytes, Any]) -> None:
    out = tmp_path / "out.txt"

    def broken() -> Iterator[tuple[str, str]]:
        yield from LINES[:18]
        raise UserError("not UTF-8", "in.txt:19", "skip it")

    with pytest.raises(UserError, match=r"^not UTF-8 \(in.txt:19\); skip it; 16 lines are kept \(.*\), --resume goes on"):
        run(out, broken())  # type: ignore[arg-type]
    run(out, resume=True)
    assert out.read_bytes() == whole[0]


def test_an_old_output_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_bytes(b"old\n")
    with pytest.raises(Interrupted):
        run(out, watch=stop_at(11, KeyboardInterrupt()))
    assert out.read_bytes() == b"old\n"
    run(out, resume=True)
    assert out.read_bytes() != b"old\n"


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """The path of an output of which two portions are there."""
    with pytest.raises(Interrupted):
        run(tmp_path / "out.txt", watch=stop_at(11, KeyboardInterrupt()))
    return tmp_path / "out.txt"


def test_without_resume_nothing_is_thrown_away(interrupted: Path, whole: tuple[bytes, Any]) -> None:
    with pytest.raises(
        UserError, match=r"8 lines of an interrupted output are here .*; add --resume to go on behind them, or remove"
    ):
        run(interrupted)
    run(interrupted, resume=True)
    assert interrupted.read_bytes() == whole[0]


def test_with_nothing_to_resume_it_begins(tmp_path: Path, whole: tuple[bytes, Any]) -> None:
    run(tmp_path / "out.txt", resume=True)
    assert (tmp_path / "out.txt").read_bytes() == whole[0]


@pytest.mark.parametrize(
    ("means", "said"),
    [
        (Means.of({"the run": "abc"}, {"beam_size": 4, "sampling": None}), "begun with beam_size=5, not 4"),
        (Means.of({"the run": "abc"}, {"beam_size": 5, "sampling": "top-k=3"}), "sampling=its default, not top-k=3"),
        (Means.of({"the run": "xyz"}, {"beam_size": 5, "sampling": None}), "the run: the files are not those"),
        (Means.of({"the run": "abc", "--constraints": "d"}, {"beam_size": 5, "sampling": None}), "--constraints: the files"),
    ],
)
def test_other_means_are_named_and_refused(interrupted: Path, means: Means, said: str) -> None:
    with pytest.raises(UserError) as caught:
        run(interrupted, means=means, resume=True)
    assert said in str(caught.value)
    run(interrupted, resume=True)  # what was there still is


@pytest.mark.parametrize("place", [0, 7])
@pytest.mark.parametrize("side", [0, 1])
def test_another_beginning_of_the_input_is_refused(interrupted: Path, place: int, side: int) -> None:
    other = list(LINES)
    other[place] = (other[place][0] + "!" * (1 - side), other[place][1] + "!" * side)
    with pytest.raises(UserError, match="the first 8 lines are not those that were predicted"):
        run(interrupted, other, resume=True)
    with pytest.raises(UserError, match="8 lines were predicted, and the input has 5"):
        run(interrupted, LINES[:5], resume=True)
    run(interrupted, resume=True)


def test_what_comes_later_in_the_input_may_change(interrupted: Path, tmp_path: Path) -> None:
    other = [*LINES[:8], ("new", ""), *LINES[9:], ("more", "")]
    run(interrupted, other, resume=True)
    run(tmp_path / "other.txt", other)
    assert interrupted.read_bytes() == (tmp_path / "other.txt").read_bytes()


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"

    def second(place: Output, done: int) -> None:
        for resume in (False, True):
            with pytest.raises(UserError, match="another process is writing this file"):
                run(out, resume=resume)

    run(out, watch=second)


@pytest.mark.parametrize("damage", ["{", "{}", '{"lines": 3}', None])
def test_damage_is_named(interrupted: Path, damage: str | None) -> None:
    folder = interrupted.with_name("out.txt.partial")
    if damage is None:
        os.truncate(folder / "output", 3)
    else:
        (folder / "state.json").write_text(damage)
    with pytest.raises(UserError, match=r"damaged \(.*out\.txt\.partial\); remove it to begin anew"):
        run(interrupted, resume=True)


def test_a_directory_in_the_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a directory is in the place"):
        run(tmp_path)
