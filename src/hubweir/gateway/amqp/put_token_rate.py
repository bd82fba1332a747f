"""How fast one connection may put tokens: a burst, then so many a second. Late ones wait, none is refused.

One client puts one token for each partition that it reads, so the burst is generous; checking a signature costs CPU,
so the rest is slow.
"""

from __future__ import annotations


class PutTokenRate:
    """A bucket of permits. Times are milliseconds of the monotonic clock."""

    def __init__(self, burst: int, per_second: int, now_ms: int) -> None:
        self._burst_ms = burst * 1000  # permits are counted in thousandths, so that integers do
        self._per_second = per_second
        self._level = burst * 1000
        self._filled_ms = now_ms

    def delay_ms(self, now_ms: int) -> int:
        """Take a permit and return 0, or take none and return how long to wait before asking again."""
        self._level = min(self._burst_ms, self._level + (now_ms - self._filled_ms) * self._per_second)
        self._filled_ms = now_ms
        if self._level >= 1000:
            self._level -= 1000
            return 0
        return -(-(1000 - self._level) // self._per_second)
