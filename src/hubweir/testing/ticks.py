"""Ticks of a SimulatedEnv: of whatever looks every few milliseconds whether it has something to do.

Nearly all ticks find nothing. While nobody has anything to do, ticks are left out up to the time at which something
happens: a timer, or what one of them waits for. Those that are played come in the order, among themselves and among
timers, in which they come when none is left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Protocol


class Ticking(Protocol):
    """tick_ms: how long after one tick the next one is due."""

    tick_ms: int

    def tick(self) -> bool:
        """Look, and do what there is to do. False: it ticks no more."""

    def idle_until_ms(self) -> int | None:
        """Until when its ticks do nothing if nothing else happens; None: for ever. A time that has passed: the next
        one has something to do.
        """


class Ticks:
    """line: the next tick of each, with its number among all that is due; a heap. numbers: gives new numbers."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.line: list[tuple[int, int, Ticking]] = []
        self._numbers = numbers

    def next_ms(self, now_ms: int, until_ms: int | None) -> int | None:
        """Leave out what does nothing, and return when the next tick is; None: no tick will find anything to do.

        until_ms: something else happens then; None: nothing else does any more.
        """
        if self.line and (until_ms is None or self.line[0][0] < until_ms):
            times = [] if until_ms is None else [until_ms]
            for _, _, ticking in self.line:
                idle_ms = ticking.idle_until_ms()
                if idle_ms is not None:
                    times.append(idle_ms)
                    if idle_ms <= now_ms:
                        break
            if not times:
                return None
            self._leave_out(min(times))
        return self.line[0][0] if self.line else None

    def play(self) -> None:
        """Play the next one."""
        at, _, ticking = heapq.heappop(self.line)
        if ticking.tick():
            self.put(at, ticking)

    def put(self, at: int, ticking: Ticking) -> None:
        """One was played at this time: the next one is due a while later."""
        heapq.heappush(self.line, (at + ticking.tick_ms, next(self._numbers), ticking))

    def _leave_out(self, until_ms: int) -> None:
        """The ticks before this time.

        A tick gets its number when the one before it is played. So of two at the same time that one is first whose
        last tick was earlier; those that tick together keep their order.
        """
        kept = [each for each in self.line if each[0] >= until_ms]
        late: list[tuple[int, int, int, Ticking]] = []
        for at, number, ticking in self.line:
            if at < until_ms:
                last_ms = at + (until_ms - 1 - at) // ticking.tick_ms * ticking.tick_ms
                late.append((last_ms, -at, number, ticking))
        if late:
            late.sort(key=lambda each: each[:3])
            self.line[:] = kept
            heapq.heapify(self.line)
            for last_ms, _, _, ticking in late:
                self.put(last_ms, ticking)
