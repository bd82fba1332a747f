"""Limits how many captured files are made at once, since each takes processor and disk from the publishers.

Local files have four: one file alone waits for the disk half of its time. Storage accounts have two, together: one that
is away holds its callers up to a time-out, and an upload has several requests under way by itself. The two kinds do not
wait for one another: their lane has eight threads (drivers/offload_pool.py). While capture gives way to publishers
(capture/pace.py) half as many are begun: what it may do then finishes a few files early, not all of them late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hubweir.capture.pace import CapturePace
from hubweir.namespace.capture_description import CaptureDestination

LOCAL_SLOTS, BLOB_SLOTS = 4, 2


class CaptureSlots:
    """Used on the loop. The queues are bounded by the partitions: each waits for one slot at most."""

    def __init__(self, pace: CapturePace, *, local: int = LOCAL_SLOTS, blobs: int = BLOB_SLOTS) -> None:
        self._pace = pace
        self._local, self._blobs = _Slots(local), _Slots(blobs)

    def take(self, destination: CaptureDestination, go: Callable[[], None]) -> None:
        """Call go when a slot is free, maybe at once. Whoever was called gives it back by `give`."""
        slots = self._of(destination)
        slots.waiting.append(go)
        self._hand_out(slots)

    def withdraw(self, destination: CaptureDestination, go: Callable[[], None]) -> bool:
        """Wait no more; False when go was called already: then its slot is given back by `give`."""
        waiting = self._of(destination).waiting
        if go not in waiting:
            return False
        waiting.remove(go)
        return True

    def give(self, destination: CaptureDestination) -> None:
        """A slot is free: the one that waits longest has it."""
        slots = self._of(destination)
        slots.taken -= 1
        self._hand_out(slots)

    def _hand_out(self, slots: _Slots) -> None:
        # Who is called may give its slot back at once: that is for this loop to see, not for a call inside the call.
        if slots.is_handing_out:
            return
        slots.is_handing_out = True
        try:
            while slots.waiting and slots.taken < ((slots.count + 1) // 2 if self._pace.gives_way else slots.count):
                slots.taken += 1
                slots.waiting.popleft()()
        finally:
            slots.is_handing_out = False

    def _of(self, destination: CaptureDestination) -> _Slots:
        return self._local if destination is CaptureDestination.LOCAL_FOLDER else self._blobs


class _Slots:
    """Those of one kind of destination."""

    __slots__ = ("count", "is_handing_out", "taken", "waiting")

    def __init__(self, count: int) -> None:
        self.count = count
        self.taken = 0
        self.is_handing_out = False
        self.waiting: deque[Callable[[], None]] = deque()
