"""How many captured files are made at once: a few, so that threads of the pool stay for the logs.

Local files have four: one file alone waits for the disk half of its time. Storage accounts have two, together: one that
is away holds its callers up to a time-out, and an upload has several requests under way by itself. The two kinds do not
wait for one another. The pool has eight threads at least.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hubweir.namespace.capture_description import CaptureDestination

LOCAL_SLOTS, BLOB_SLOTS = 4, 2


class CaptureSlots:
    """Used on the loop. The queues are bounded by the partitions: each waits for one slot at most."""

    def __init__(self, local: int = LOCAL_SLOTS, blobs: int = BLOB_SLOTS) -> None:
        self._local, self._blobs = _Slots(local), _Slots(blobs)

    def take(self, destination: CaptureDestination, go: Callable[[], None]) -> None:
        """Call go when a slot is free, maybe at once. Whoever was called gives it back by `give`."""
        slots = self._of(destination)
        if slots.free:
            slots.free -= 1
            go()
        else:
            slots.waiting.append(go)

    def give(self, destination: CaptureDestination) -> None:
        """A slot is free: the one that waits longest has it."""
        slots = self._of(destination)
        if slots.waiting:
            slots.waiting.popleft()()
        else:
            slots.free += 1

    def _of(self, destination: CaptureDestination) -> _Slots:
        return self._local if destination is CaptureDestination.LOCAL_FOLDER else self._blobs


class _Slots:
    """Those of one kind of destination."""

    __slots__ = ("free", "waiting")

    def __init__(self, free: int) -> None:
        self.free = free
        self.waiting: deque[Callable[[], None]] = deque()
