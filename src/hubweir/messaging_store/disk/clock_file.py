"""The file CLOCK of a store: the time that its processes saw pass. (trusted_clock.py)

A sealed file (whole_file.py), whose body is, big-endian:

| offset | size | name   | meaning |
|-------:|-----:|--------|---------|
|      0 |    8 | passed | signed: retention's time, ms |
|      8 |    8 | offset | signed: where from it the wall clock is right, ms |

After a crash: a state that is a minute old at most, whole.
"""

from __future__ import annotations

import struct

from hubweir.env import Files, join_path
from hubweir.messaging_store.disk.layout import CLOCK_NAME
from hubweir.messaging_store.disk.whole_file import read_sealed, seal, write_whole
from hubweir.messaging_store.trusted_clock import ClockState

_STATE = struct.Struct(">qq")


def load_clock(files: Files, folder: str) -> ClockState | None:
    """The state that the process before left in a store's folder; None when there is no sound one. Raises OSError."""
    body = read_sealed(files, join_path(folder, CLOCK_NAME))
    return None if body is None or len(body) != _STATE.size else ClockState(*_STATE.unpack(body))


def save_clock(files: Files, folder: str, state: ClockState) -> None:
    """Make the state durable. Blocking; raises OSError, then the old one or the new one is there."""
    write_whole(files, folder, CLOCK_NAME, seal(_STATE.pack(state.passed_ms, state.offset_ms)))
