"""Files whole or absent: whatever stops the writer, the old content stays; nothing is left behind; permissions are ordinary."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eyeline.errors import UserError
from eyeline.files import beside, directory_beside, remove_directory, remove_leftovers, write_json, write_text, write_with

POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions, devices and links of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def test_a_file_is_replaced_and_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    write_text(path, "one\n")
    write_text(path, "zwei ß 한\n")
    assert path.read_bytes() == "zwei ß 한\n".encode()
    assert os.listdir(path.parent) == ["a.txt"]
    write_json(path, {"ß": 1})
    assert path.read_bytes() == '{\n "ß": 1\n}\n'.encode()


@pytest.mark.parametrize("writer", [beside, directory_beside])
def test_what_fails_halfway_leaves_the_old_one(tmp_path: Path, writer: type) -> None:
    """Whatever the failure is: an exception of the writer's own passes through, a full disk is told of in one line."""
    path = tmp_path / "kept"
    with writer(path) as temporary:
        (temporary / "in" if writer is directory_beside else temporary).write_text("old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fail(failure: BaseException) -> None:
        with writer(path) as temporary:
            (temporary / "in" if writer is directory_beside else temporary).write_text("half of the new")
            raise failure

    for failure, seen in ((full, UserError), (RuntimeError("stopped"), RuntimeError), (KeyboardInterrupt(), KeyboardInterrupt)):
        with pytest.raises(seen) as caught:
            fail(failure)
        if seen is UserError:
            assert str(caught.value) == f"cannot write: No space left on device ({path})"
        assert os.listdir(tmp_path) == ["kept"]
        assert (path / "in" if writer is directory_beside else path).read_text() == "old"


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"), beside(tmp_path / "a"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_place_of_the_file_is_taken_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match=f"a directory is in the place of the file .{tmp_path / 'a'}"):
        write_text(tmp_path / "a", "")
    write_text(tmp_path / "a" / "b", "x")
    with pytest.raises(UserError, match="cannot write"):
        write_text(tmp_path / "a" / "b" / "c", "x")
    with pytest.raises(UserError, match="a directory"):
        write_text("/", "")


def test_a_directory_replaces_one_with_files_in_it(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with directory_beside(tmp_path / "step-1") as temporary:
            (temporary / content).write_text(content)
    assert os.listdir(tmp_path) == ["step-1"]
    assert os.listdir(tmp_path / "step-1") == ["new"]


@POSIX
@pytest.mark.parametrize(("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o002, 0o664, 0o775), (0o077, 0o600, 0o700)])
def test_permissions_are_those_of_any_new_file(tmp_path: Path, mask: int, file: int, folder: int) -> None:
    """Whatever the library that wrote it thinks: safetensors makes its files private."""
    with umask(mask):
        with beside(tmp_path / "a") as temporary:
            temporary.write_text("")
            temporary.chmod(0o600 if file != 0o600 else 0o666)
        with directory_beside(tmp_path / "d") as temporary:
            (temporary / "b").write_text("")
            (temporary / "b").chmod(0o600 if file != 0o600 else 0o666)
    assert (mode(tmp_path / "a"), mode(tmp_path / "d"), mode(tmp_path / "d" / "b")) == (file, folder, file)


@POSIX
def test_devices_and_pipes_are_written_to_and_stay(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen([sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())", pipe], stdout=subprocess.PIPE)
    with beside(pipe) as target:
        target.write_text("through")
    assert reader.communicate()[0] == b"through\n"
    assert pipe.is_fifo()
    with beside("/dev/null") as target:
        assert target == Path("/dev/null")
    with pytest.raises(UserError, match=r"No space left on device .*/dev/full"), beside("/dev/full") as target:
        target.write_text("x")


@POSIX
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "x"


def test_what_a_library_leaves_around_the_file_goes_too(tmp_path: Path) -> None:
    def careless(path: Path) -> None:
        path.with_name(".tmpQ7x").write_text("stray")
        path.write_text("x")

    write_with(tmp_path / "a.png", careless)
    assert os.listdir(tmp_path) == ["a.png"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("한" * 80 + ".txt")  # 244 of the 255 bytes that a name may have
    write_text(path, "x")
    assert path.read_text() == "x"


@POSIX
def test_leftovers_of_a_killed_writer_go_and_nothing_else(tmp_path: Path) -> None:
    """A process killed in the middle of both kinds of writing; files that look nearly like a leftover stay."""
    program = (
        "import os, sys; from pathlib import Path; from eyeline.files import beside, directory_beside\n"
        "with beside(sys.argv[1] + '/a.txt') as a, directory_beside(sys.argv[1] + '/step-9') as b:\n"
        "    a.write_text('half'); (b / 'x').write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, tmp_path], check=False).returncode == -9
    assert len(os.listdir(tmp_path)) == 2
    mine = [".a.partial", "a.0123abcd.partial", ".a.0123abcd.part", "b.txt", ".hidden"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(mine)
    remove_leftovers(tmp_path / "absent")


def test_a_directory_goes_whole_even_where_its_remover_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, other = tmp_path / "step-9", tmp_path / "step-10"
    for directory in (old, other):
        directory.mkdir()
        (directory / "state.json").write_text("{}")

    def killed(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_directory(old)
    assert not old.exists()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [other]
    remove_directory(other)
    remove_directory(other)
    assert not list(tmp_path.iterdir())
