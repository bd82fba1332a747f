"""A token bucket: how many bytes, or how many events, may pass by now. Exact integers; time is passed in.

A bucket fills at rate tokens a second up to its burst, and what passes takes tokens out. Levels are counted in
thousandths of a token: a rate a second times a number of milliseconds is a whole number of them, so refilling never
rounds and never drifts, whatever the steps of time. Over any stretch of T ms at most burst + rate * T / 1000 tokens
are taken, and a caller who always asks gets every one of them.

The burst is what the rate gives in BURST_MS: a limit of 1,000 events a second has to let 1,000 events pass that come
in one batch once a second, and nothing larger than it may collect while a namespace is idle.

Two ways to take. *All or nothing* (`wait_ms`, then `take`): a request above the whole burst would never fit, so it
passes when the bucket is full and leaves a debt, which the next ones wait for. *Reserving* (`reserve`): the tokens are
taken at once, down into debt, and the caller waits until they have come in; so waiting callers are served in turn.

now_ms is a monotonic clock's. A step back of up to the burst is two callers who read the clock in another order: time
stands still until it is made up, so no token is given twice. A longer one is another clock: time goes on from there.
A step ahead fills the bucket at most.
"""

from __future__ import annotations

BURST_MS = 1_000


class TokenBucket:
    """See the module's text. Starts full. rate_per_second and burst_ms are positive."""

    __slots__ = ("_burst_ms", "_capacity", "_level", "_now_ms", "_rate")

    def __init__(self, rate_per_second: int, *, now_ms: int, burst_ms: int = BURST_MS) -> None:
        assert rate_per_second > 0 and burst_ms > 0
        self._rate = rate_per_second
        self._burst_ms = burst_ms
        self._capacity = rate_per_second * burst_ms  # thousandths of a token, as is the level
        self._level = self._capacity
        self._now_ms = now_ms

    def room(self, now_ms: int) -> int:
        """Whole tokens that are there now; 0 in debt."""
        self._refill(now_ms)
        return max(0, self._level // 1_000)

    def wait_ms(self, count: int, now_ms: int) -> int:
        """How long until count tokens may be taken at once, if nobody else takes any; 0: now. Takes nothing."""
        self._refill(now_ms)
        missing = min(count * 1_000, self._capacity) - self._level
        return -(-missing // self._rate) if missing > 0 else 0

    def wait_ms_at(self, rate_per_second: int, count: int, now_ms: int) -> int:
        """What `wait_ms` would be after `change(rate_per_second)`."""
        return self._changed(rate_per_second, now_ms).wait_ms(count, now_ms)

    def delay_ms_at(self, rate_per_second: int, count: int, now_ms: int) -> int:
        """What `reserve` would return after `change(rate_per_second)`."""
        return self._changed(rate_per_second, now_ms).reserve(count, now_ms)

    def take(self, count: int) -> None:
        """Take count tokens, at the time of the last call. The caller asked `wait_ms` just before."""
        self._level -= count * 1_000

    def reserve(self, count: int, now_ms: int) -> int:
        """Take count tokens, if need be before they are there; return in how many ms they will be, 0: now."""
        self._refill(now_ms)
        self._level -= count * 1_000
        return -(self._level // self._rate) if self._level < 0 else 0

    def give_back(self, count: int, now_ms: int) -> None:
        """Undo a take whose use did not happen."""
        self._refill(now_ms)
        self._level = min(self._level + count * 1_000, self._capacity)

    def change(self, rate_per_second: int, now_ms: int) -> None:
        """Go on at another rate from now on; up to now the old one counts.

        A raise comes with the burst of what was added, filled, so that it helps at once. A lower rate leaves no more
        than its own burst.
        """
        assert rate_per_second > 0
        self._refill(now_ms)
        capacity = rate_per_second * self._burst_ms
        added = max(0, capacity - self._capacity)
        self._rate, self._capacity = rate_per_second, capacity
        self._level = min(self._level + added, capacity)

    def _changed(self, rate_per_second: int, now_ms: int) -> TokenBucket:
        other = TokenBucket(self._rate, now_ms=self._now_ms, burst_ms=self._burst_ms)
        other._level = self._level
        other.change(rate_per_second, now_ms)
        return other

    def _refill(self, now_ms: int) -> None:
        passed_ms = now_ms - self._now_ms
        if passed_ms > 0:
            self._level = min(self._level + self._rate * passed_ms, self._capacity)
            self._now_ms = now_ms
        elif -passed_ms > self._burst_ms:
            self._now_ms = now_ms
