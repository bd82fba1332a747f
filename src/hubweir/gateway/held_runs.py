"""Sizes each reader's reads, and limits what was read and waits in the process until it is sent.

A larger read is cheaper per byte. So a reader that catches up is given larger and larger runs: twice as much when it
sent a whole one, and the minimum again when it came to the end, or left a run lying. A run lies in memory until it is
sent. Every reader may hold one minimum run; larger runs draw on a pool of the process. While the pool is empty, reads
shrink to the minimum, and a reader that cannot send drops its run and reads it again later.
"""

from __future__ import annotations

# Thirty readers catch up at full speed with it; it is an eighth of what the process may hold of publishers' bytes.
HELD_RUNS_BYTES = 32 * 1024 * 1024


class HeldRuns:
    """The pool: bytes of runs that all readers of one process hold, and of large reads that are under way."""

    __slots__ = ("limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = HELD_RUNS_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    @property
    def left_bytes(self) -> int:
        """What may still be asked for beyond the least; 0 when the pool is used up, or more than that."""
        return max(0, self.limit_bytes - self.used_bytes)

    @property
    def is_used_up(self) -> bool:
        return self.used_bytes >= self.limit_bytes


class ReadSize:
    """Of one reader: it asks, the run comes, and it is sent or dropped; then it asks again.

    least_bytes, limit_bytes: of one read. No read is smaller than the least, whatever the pool holds.
    """

    __slots__ = ("_asked_bytes", "_counted_bytes", "_is_full", "_least_bytes", "_limit_bytes", "_pool", "_wanted_bytes")

    def __init__(self, pool: HeldRuns, *, least_bytes: int, limit_bytes: int) -> None:
        self._pool = pool
        self._least_bytes = least_bytes
        self._limit_bytes = max(least_bytes, limit_bytes)
        self._wanted_bytes = least_bytes
        self._asked_bytes = least_bytes
        self._counted_bytes = 0
        self._is_full = False

    def next_bytes(self) -> int:
        """How many bytes to read now. More than the least is counted from here on: such a read should not wait."""
        beyond = self._wanted_bytes - self._least_bytes
        if beyond:
            beyond = min(beyond, self._pool.left_bytes)
        if beyond:  # nothing of this reader is counted between two runs
            self._count(beyond)
        self._asked_bytes = self._least_bytes + beyond
        return self._asked_bytes

    def came(self, size_bytes: int) -> None:
        """The read is over and a run of this size is held; 0: none. Less than half of what was asked for means that
        the reader has come to the end: it waits there for little."""
        self._count(size_bytes)
        self._is_full = 2 * size_bytes >= self._asked_bytes
        if not self._is_full:
            self._wanted_bytes = self._least_bytes

    def sent(self) -> None:
        """The whole run is sent."""
        self._count(0)
        if self._is_full:
            self._wanted_bytes = min(self._limit_bytes, 2 * self._asked_bytes)

    def dropped(self) -> None:
        """The run was let go unsent, or the reader is over."""
        self._count(0)
        self._wanted_bytes = self._least_bytes

    def _count(self, size_bytes: int) -> None:
        self._pool.used_bytes += size_bytes - self._counted_bytes
        self._counted_bytes = size_bytes
