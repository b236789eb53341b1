"""Writes a file whole or not at all. Knows paths and bytes; nothing of what they mean."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from eyeline.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Writes beside, flushes and renames, so that `path` is the old file or the whole new one.

    Raises:
        UserError: when the folder is absent or cannot be written, or the disk is full; nothing is left behind.
    """
    if path.is_dir():
        raise UserError("this is a folder, not a file", str(path))
    part = None
    try:
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)  # a temporary file is private, a picture is as any new file
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", str(path)) from error
    finally:
        if part is not None and os.path.exists(part):
            os.unlink(part)
