"""How many captured files are made at once: a few of each destination, so that the pool's threads stay for the logs.

A destination that is away holds its callers up to a time-out. They are of its own slots, so capture to another place
goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hubweir.namespace.capture_description import CaptureDestination

SLOTS = 2


class CaptureSlots:
    """Used on the loop. The queue is bounded by the partitions: each waits for one slot at most."""

    def __init__(self, count: int = SLOTS) -> None:
        self._free = dict.fromkeys(CaptureDestination, count)
        self._waiting: dict[CaptureDestination, deque[Callable[[], None]]] = {
            destination: deque() for destination in CaptureDestination
        }

    def take(self, destination: CaptureDestination, go: Callable[[], None]) -> None:
        """Call go when a slot is free, maybe at once. Whoever was called gives it back by `give`."""
        if self._free[destination]:
            self._free[destination] -= 1
            go()
        else:
            self._waiting[destination].append(go)

    def give(self, destination: CaptureDestination) -> None:
        """A slot is free: the one that waits longest has it."""
        if self._waiting[destination]:
            self._waiting[destination].popleft()()
        else:
            self._free[destination] += 1
