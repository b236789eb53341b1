"""Where shards lie, on a disk or in an object store, and where their outputs go. Knows names and file systems; not what files
hold."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote, unquote

from eyeline.errors import DataError, UserError, require

SUFFIX = ".parquet"
WANTED = "a file, a directory, or a pattern such as 'folder/*.parquet'"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Place:
    """A file or a directory: a path, or a URI such as `s3://bucket/name`."""

    root: str  # `s3://`, `gs://` …; empty for a path of this machine
    path: str  # as its file system writes it

    @classmethod
    def of(cls, text: str) -> Place:
        scheme = _SCHEME.match(text)
        if scheme is None:
            return cls("", os.path.abspath(text))
        path = unquote(text[scheme.end() :]).rstrip("/")
        return cls("", path or "/") if scheme[0] == "file://" else cls(scheme[0], path)

    def __str__(self) -> str:
        return self.root + self.path

    def open(self) -> tuple[Any, str]:
        """The file system, and the path in it. Raises UserError for one that pyarrow does not know, or that cannot be reached."""
        fs: Any = require("pyarrow.fs", "cluster")
        if not self.root:
            return fs.LocalFileSystem(), self.path
        try:
            return fs.FileSystem.from_uri(self.root + quote(self.path))  # type: ignore[no-any-return]
        except Exception as error:  # of pyarrow's many kinds
            raise UserError(f"no such place: {' '.join(str(error).split())}", str(self)) from error

    def below(self, name: str) -> Place:
        return Place(self.root, f"{self.path.rstrip('/')}/{name}")


@dataclass(frozen=True)
class Shard:
    """A Parquet file, and where its output goes."""

    source: Place
    output: Place
    size: int  # bytes of the source


def find_shards(inputs: Sequence[str], out: str) -> list[Shard]:
    """The Parquet files that inputs mean: files, directories with everything below them, and patterns with `*`, `?` and `[…]`.

    An output has the name of its source, below `out`: with the directories in which sources differ, so that none meets another.

    Raises:
        DataError: an input means no file.
        UserError: an output would stand in the place of a source, or there is no such file system.
    """
    found: dict[Place, int] = {}
    for text in inputs:
        place = Place.of(text)
        files = _matching(place) if _WILD.search(place.path) else _below(place)
        if not files:
            raise DataError(
                f"no {SUFFIX} file is there", text, hint="a file, a directory or a pattern such as 'folder/*.parquet'"
            )
        found.update(files)
    common = _common([place.path for place in found])
    shards = [Shard(place, Place.of(out).below(place.path[len(common) :]), size) for place, size in found.items()]
    for shard in shards:
        if shard.output in found:
            raise UserError("an output would stand in the place of a source", str(shard.output), "name another -o DIR")
    return sorted(shards, key=lambda shard: str(shard.source))


def _below(place: Place) -> dict[Place, int]:
    """A file itself, or the Parquet files below a directory, but for hidden ones."""
    fs: Any = require("pyarrow.fs", "cluster")
    system, path = place.open()
    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return {place: info.size}
    if info.type != fs.FileType.Directory:
        return {}
    return _files(place, system, path)


def _matching(place: Place) -> dict[Place, int]:
    """The files that a pattern means; `*` stays within a directory."""
    before = place.path[: _WILD.search(place.path).start()]  # type: ignore[union-attr]
    above = Place(place.root, before.rpartition("/")[0] or "/")
    parts = place.path.split("/")
    files = _files(above, *above.open())
    return {
        found: size
        for found, size in files.items()
        if len(names := found.path.split("/")) == len(parts) and all(map(fnmatchcase, names, parts))
    }


def _files(place: Place, system: Any, path: str) -> dict[Place, int]:
    fs: Any = require("pyarrow.fs", "cluster")
    infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
    cut = len(path.rstrip("/"))
    return {
        Place(place.root, place.path.rstrip("/") + info.path[cut:]): info.size
        for info in infos
        if info.type == fs.FileType.File
        and info.path.endswith(SUFFIX)
        and not any(name.startswith((".", "_")) for name in info.path[cut:].split("/"))
    }


def _common(paths: Sequence[str]) -> str:
    """The directories that all paths begin with, a slash at their end."""
    heads = [path.split("/")[:-1] for path in paths]
    shared: list[str] = []
    for names in zip(*heads, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "".join(f"{name}/" for name in shared)
