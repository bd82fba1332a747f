"""Measures how late the loop is: a timer knows when it should have come, and counts what kept it.

Everything of a service happens on one loop, so whatever keeps the loop keeps everybody. A beat that comes late was kept
by a callback, by a garbage collection, or by a machine that gave the process no processor. Counters: `loop.stalls` of
beats more than STALL_MS late; `loop.longest_stall_ms`; `collector.long_collections` of more than LONG_MS, and
`collector.longest_ms` (garbage_collector.py).

When nobody has been connected for QUIET_MS, and somebody was before, everything is collected: that may take long, and
then it keeps nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from hubweir.counters import Counters
from hubweir.drivers.garbage_collector import GarbageCollector

BEAT_MS = 50  # 20 beats a second cost a ten-thousandth of a processor
STALL_MS = 20  # far above what the loop's own turns take under load, far below what a client notices
QUIET_MS = 60_000


class Cancellable(Protocol):
    """A timer of the loop."""

    def cancel(self) -> None: ...


class LoopWatch:
    """Of one loop. call_later: the loop's own, in seconds. connections: how many there are now."""

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], Cancellable],
        counters: Counters,
        connections: Callable[[], int],
        *,
        collector: GarbageCollector | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._call_later = call_later
        self._counters = counters
        self._connections = connections
        self._clock = clock
        self._collector = collector or GarbageCollector()
        self._timer: Cancellable | None = None
        self._due_s = 0.0
        self._longest_ms = 0
        self._quiet_ms = 0
        self._was_used = False

    def start(self) -> None:
        """Begin at the end of a start: what is there now lives as long as the service."""
        self._collector.start()
        self._plan()

    def stop(self) -> None:
        """Watch no more. Does nothing when it does not watch."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._collector.stop()

    def _plan(self) -> None:
        self._due_s = self._clock() + BEAT_MS / 1000
        self._timer = self._call_later(BEAT_MS / 1000, self._beat)

    def _beat(self) -> None:
        late_ms = int((self._clock() - self._due_s) * 1000)
        if late_ms > STALL_MS:
            self._counters["loop.stalls"] += 1
        self._longest_ms = max(self._longest_ms, late_ms)
        self._counters["loop.longest_stall_ms"] = self._longest_ms
        self._counters["collector.long_collections"] = self._collector.long_count
        self._counters["collector.longest_ms"] = self._collector.longest_ms
        self._collector.beat()
        self._look_for_quiet()
        self._plan()

    def _look_for_quiet(self) -> None:
        if self._connections():
            self._was_used, self._quiet_ms = True, 0
        elif self._was_used:
            self._quiet_ms += BEAT_MS
            if self._quiet_ms >= QUIET_MS:
                self._was_used, self._quiet_ms = False, 0
                self._collector.collect_all()
