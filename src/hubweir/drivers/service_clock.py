"""The clock of a service, which a test may set ahead of the machine's, and the timers that go by it.

Wall clock and monotonic clocks go forward together, so nothing in the service takes it for a clock that jumped: the
time passed. A timer that is due by then rings in one of the next turns of the loop, in the order of their times, and
the others come nearer by as much. It never goes back, and a start begins with the machine's time again.

Tokens have a clock of their own: whoever signs them goes by the machine's time, and renews them in time. So what passes
for everything else passes for them only when it is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter

from hubweir.env import Ahead

MS_PER_S = 1_000
GRAIN_S = 0.0011  # a millisecond, and what sums of times in seconds are off by


class ServiceTimer:
    """One that was set and has not rung (env.Timer). at_s: when it is due, by the loop's clock."""

    __slots__ = ("_callback", "_handle", "_waiting", "at_s")

    def __init__(self, callback: Callable[[], None], waiting: dict[ServiceTimer, None]) -> None:
        self._callback = callback
        self._waiting = waiting
        self._handle: asyncio.Handle
        self.at_s: float

    def cancel(self) -> None:
        self._handle.cancel()
        self._waiting.pop(self, None)

    def set(self, loop: asyncio.AbstractEventLoop, now_s: float, delay_s: float) -> None:
        """Ring so much later than now; a second call takes the place of the first."""
        self.at_s = now_s + delay_s
        self._handle = loop.call_later(max(0, delay_s), self._ring)
        self._waiting[self] = None

    def come_nearer(self, loop: asyncio.AbstractEventLoop, now_s: float, by_s: float) -> None:
        """Ring earlier by as much, or in one of the next turns."""
        self._handle.cancel()
        self.set(loop, now_s, self.at_s - by_s - now_s)

    def _ring(self) -> None:
        self._waiting.pop(self, None)
        self._callback()


class ServiceClock:
    """Of one loop, on which it is used."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ahead: Ahead) -> None:
        """ahead: of the Env that shows the time; written here alone."""
        self.ahead = ahead
        self._loop = loop
        self._waiting: dict[ServiceTimer, None] = {}  # a dict keeps the order in which they were set

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ServiceTimer:
        """See Env.call_later."""
        timer = ServiceTimer(callback, self._waiting)
        timer.set(self._loop, self._loop.time(), delay_ms / MS_PER_S)
        return timer

    def forward(self, by_ms: int, *, tokens_by_ms: int = 0) -> None:
        """Set the clock forward, and all timers with it. tokens_by_ms: so much of it passes for tokens, too."""
        self.ahead.clock_ms += by_ms
        self.ahead.tokens_ms += tokens_by_ms
        now_s = self._loop.time()
        for timer in sorted(self._waiting, key=attrgetter("at_s")):
            timer.come_nearer(self._loop, now_s, by_ms / MS_PER_S)

    async def rung(self, *, limit_s: float) -> None:
        """Wait until no timer is due any more, those included that others set behind them; no longer than limit_s.

        What comes within a millisecond is due: no loop tells times apart that are nearer.
        """
        end_s = self._loop.time() + limit_s
        while (now_s := self._loop.time()) < end_s and any(timer.at_s <= now_s + GRAIN_S for timer in self._waiting):
            await asyncio.sleep(0)
