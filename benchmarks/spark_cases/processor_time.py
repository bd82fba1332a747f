"""What this process and all below it have used: driver, JVM, workers, server. On a shared machine it tells more than
a clock, which also counts what others do.
"""

from __future__ import annotations

import os
from pathlib import Path

_PARENT, _TIMES = 1, slice(11, 15)  # behind the name; own user and system time, and those of children that ended


def processor_seconds() -> float:
    """User and system time of the whole tree; 0.0 where there is no /proc."""
    found = {int(entry.name): entry for entry in Path("/proc").glob("[0-9]*")} if os.name == "posix" else {}
    times: dict[int, tuple[int, int]] = {}
    for pid, entry in found.items():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended meanwhile; its parent has its time
        times[pid] = int(fields[_PARENT]), sum(map(int, fields[_TIMES]))
    own, grown = {os.getpid()}, True
    while grown:
        below = {pid for pid, (parent, _) in times.items() if parent in own} - own
        own |= below
        grown = bool(below)
    return sum(times[pid][1] for pid in own if pid in times) / os.sysconf("SC_CLK_TCK")
