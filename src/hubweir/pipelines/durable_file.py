"""Files that appear whole: after a crash one is there under its name with all its bytes, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def publish(unfinished: Path, final: Path) -> None:
    """Give a whole file its name, durably, in place of one that is there. Both are in one folder."""
    sync(unfinished)
    unfinished.replace(final)
    sync(final.parent)


def sync(path: Path) -> None:
    """What a file, or a folder's list of names, holds is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
