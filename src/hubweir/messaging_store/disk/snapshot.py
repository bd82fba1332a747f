"""A log owner's state as of one index, so that a start need not replay the whole log. (Rule R11)

`snapshot` is the newest, `snapshot.previous` the one before. Each is a sealed file (whole_file.py) whose body is: the
index up to which the log's records are in the state, 8 bytes, the log's next offset there, 8 bytes, then the owner's
bytes.

After a crash: each name holds a whole snapshot that covers durable records only, or the one before it; a damaged one is
skipped. Retention trims no further than the older of the two, so a damaged newest one costs a longer replay, nothing
else.
"""

from __future__ import annotations

import struct

from hubweir.env import Files, join_path
from hubweir.messaging_store.disk.layout import (
    PREVIOUS_SNAPSHOT_NAME,
    SNAPSHOT_NAME,
    UNFINISHED_SUFFIX,
)
from hubweir.messaging_store.disk.whole_file import read_sealed, seal
from hubweir.messaging_store.log import Snapshot

_PLACE = struct.Struct(">QQ")


def save_snapshot(files: Files, folder: str, snapshot: Snapshot) -> None:
    """Write a snapshot and keep the one before it. Blocking; raises OSError, and then an old one is still there."""
    path, unfinished = join_path(folder, SNAPSHOT_NAME), join_path(folder, SNAPSHOT_NAME + UNFINISHED_SUFFIX)
    if files.exists(unfinished):
        files.remove(unfinished)
    file = files.open(unfinished, create=True)
    try:
        file.write(0, [seal(_PLACE.pack(snapshot.index, snapshot.offset) + snapshot.state)])
        file.sync()
    finally:
        file.close()
    if load_snapshot(files, path) is not None:
        files.rename(path, join_path(folder, PREVIOUS_SNAPSHOT_NAME))
    files.rename(unfinished, path)
    files.sync_folder(folder)


def load_snapshot(files: Files, path: str) -> Snapshot | None:
    """The snapshot in a file; None when it is absent or damaged. Blocking."""
    body = read_sealed(files, path)
    if body is None or len(body) < _PLACE.size:
        return None
    index, offset = _PLACE.unpack_from(body)
    return Snapshot(index, offset, body[_PLACE.size :])


def load_snapshots(files: Files, folder: str) -> list[Snapshot]:
    """The snapshots that verify, newest first; at most two. Blocking."""
    found = [load_snapshot(files, join_path(folder, name)) for name in (SNAPSHOT_NAME, PREVIOUS_SNAPSHOT_NAME)]
    return [snapshot for snapshot in found if snapshot is not None]
