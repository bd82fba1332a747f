"""Idle time-outs both ways (part 2, section 2.4.5). Times are milliseconds of a clock that is passed in.

We write a frame before each half of the time the peer asked for is over, and give the peer twice the time we
advertised: some clients only write when more than half of it has passed, and only while their application polls.
"""

from __future__ import annotations

# A tick is skipped when something else was written since the last one, so two pass at most: they are less than half,
# and a machine that is busy may make the second late.
TICKS_PER_TIMEOUT = 5
# A peer that asks for a time-out of a few milliseconds does not make us write all the time.
SHORTEST_TICK_MS = 100
GRACE = 2


class IdleClock:
    """When to write an empty frame, and when to give the peer up. has_written: set by whoever writes frames."""

    __slots__ = ("_allowed_ms", "_drop_at_ms", "_next_tick_ms", "_tick_ms", "has_written")

    def __init__(self, idle_timeout_ms: int, now_ms: int) -> None:
        self._allowed_ms = GRACE * idle_timeout_ms  # 0: never give up
        self._drop_at_ms = now_ms + self._allowed_ms
        self._tick_ms = 0
        self._next_tick_ms = 0
        self.has_written = False

    def peer_wants(self, idle_timeout_ms: int | None, now_ms: int) -> None:
        """Take the peer's idle-time-out from its open; None or 0: it wants nothing."""
        if idle_timeout_ms:
            self._tick_ms = max(SHORTEST_TICK_MS, idle_timeout_ms // TICKS_PER_TIMEOUT)
            self._next_tick_ms = now_ms + self._tick_ms

    def received(self, now_ms: int) -> None:
        """Bytes came: the peer lives."""
        self._drop_at_ms = now_ms + self._allowed_ms

    def heartbeat_due(self, now_ms: int) -> bool:
        """Whether to write an empty frame now."""
        if not self._tick_ms or now_ms < self._next_tick_ms:
            return False
        self._next_tick_ms = now_ms + self._tick_ms
        due, self.has_written = not self.has_written, False
        return due

    def peer_is_lost(self, now_ms: int) -> bool:
        """Whether the peer has been silent for too long."""
        return bool(self._allowed_ms) and now_ms >= self._drop_at_ms

    def next_deadline_ms(self) -> int | None:
        """When to look again."""
        times = [self._next_tick_ms] * bool(self._tick_ms) + [self._drop_at_ms] * bool(self._allowed_ms)
        return min(times, default=None)
