"""Garbage collections that stop nobody for long: each looks only at what came since the one before.

A collection stops every thread while it looks at all objects that may know each other, 5,000 to 10,000 a millisecond:
half a second with 1,024 partitions live. So what has survived two of them, a young one and an older one, is frozen: no
collection looks at it again. What has survived a young one that had much to look at is frozen at once, or the older one
would look at all of that, and at as much again that came since. Little comes in between: thresholds bound what comes in
a burst, and beats of the loop what comes and goes. (The interpreter counts objects that came less those that went, so
without beats it would find, after a while, all that sends under way on a slow disk have made.)

Why that is safe: a frozen object is freed as any other when nobody knows it any more. What a collection alone can free
are objects that know each other in a circle, and are forgotten together. Whatever lives long here breaks its circles
when it ends: a log when it is closed, a session, a connection. Tests run without collections and find nothing left. Of
a circle that no test knows, only what was frozen before it was forgotten stays, until `collect_all`, which
loop_watch.py calls when nobody is connected.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import ClassVar

# A young collection after 500 objects that stay, 30 us here; an older one, which freezes, after four of those, 0.2 ms.
# As some go while others come, a burst of sends makes them look at several times as many. None of the oldest.
THRESHOLDS = (500, 4, 1_000_000)
# Of so many beats one is an older collection. So what lives longer than 200 ms, or than a burst, counts as long-lived.
# Beats cost a hundredth of a processor under load, and 0.1 ms a second without.
BEATS_PER_FREEZE = 4
# A young collection that took longer had some thousand objects before it.
MUCH_MS = 0.5
LONG_MS = 5
_YOUNG, _OLDER = 0, 1


class GarbageCollector:
    """The collector of this process while a service runs, and how long its collections took.

    long_count: collections of more than LONG_MS. longest_ms: of all, rounded up. Those of a start and of `collect_all`
    do not count.
    """

    _running: ClassVar[list[GarbageCollector]] = []  # a process of tests may run several services
    _thresholds_before: ClassVar[tuple[int, int, int]] = (700, 10, 10)

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.long_count = 0
        self.longest_ms = 0
        self._begun_s: float | None = None
        self._is_counting = True
        self._beats = 0

    def start(self) -> None:
        """Freeze what a start has made, which lives as long as the service, and hold collections short from now on.

        What is frozen already is not looked at: that would hold up other services of this process, and one that was
        forked has its memory from another process as long as nobody writes there.
        """
        if not self._running:
            GarbageCollector._thresholds_before = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
        self._running.append(self)
        gc.callbacks.append(self._collected)
        self._collect()

    def stop(self) -> None:
        """Leave the process as it was. Does nothing the second time."""
        if self not in self._running:
            return
        gc.callbacks.remove(self._collected)
        self._running.remove(self)
        if not self._running:
            gc.set_threshold(*GarbageCollector._thresholds_before)
            gc.unfreeze()

    def beat(self) -> None:
        """Called every 50 ms or so: look at what came meanwhile, while it is little."""
        if gc.isenabled():
            self._beats += 1
            gc.collect(_YOUNG if self._beats % BEATS_PER_FREEZE else _OLDER)

    def collect_all(self) -> None:
        """Look at everything, also at what is frozen: long, so only when it holds up nobody."""
        gc.unfreeze()
        self._collect()

    def _collect(self) -> None:
        """Look at all that is not frozen."""
        self._is_counting = False
        try:
            gc.collect()  # ends in a freeze, as every one that is not young
        finally:
            self._is_counting = True

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Called by the interpreter, on whatever thread collects, before and after each collection."""
        if phase == "start":
            self._begun_s = self._clock()
            return
        took_ms = 0.0 if self._begun_s is None else (self._clock() - self._begun_s) * 1000
        if info["generation"] >= _OLDER or took_ms > MUCH_MS:
            gc.freeze()
        if self._is_counting:
            self.longest_ms = max(self.longest_ms, int(-(-took_ms // 1)))
            self.long_count += took_ms > LONG_MS
        self._begun_s = None
