"""One process at a time joins the files of a table, or ends what a killed one has left: two would remove each other's.

The lock is `.compaction.lock` in the table's folder, held by the process that works, and free when it ends however it
ends. So what a killed run has left at work for another moment is in nobody's way, and nobody in its.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".compaction.lock"


@contextmanager
def locked(table: Path) -> Iterator[bool]:
    """Whether the table is this process's alone while inside; False: another one is at work, or there is no table."""
    try:
        fd = os.open(table / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
