"""The limit of one direction: bytes and events a second, two buckets that are always taken from together."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.throughput_unit.throughput_unit import Rate
from hubweir.throughput_unit.token_bucket import BURST_MS, TokenBucket


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes and events that pass one limit."""

    size_bytes: int = 0
    events: int = 0


class RateLimit:
    """Bytes and events, whichever runs out first. Times are monotonic milliseconds."""

    __slots__ = ("_bytes", "_events", "rate")

    def __init__(self, rate: Rate, *, now_ms: int, burst_ms: int = BURST_MS) -> None:
        self.rate = rate
        self._bytes = TokenBucket(rate.bytes_per_second, now_ms=now_ms, burst_ms=burst_ms)
        self._events = TokenBucket(rate.events_per_second, now_ms=now_ms, burst_ms=burst_ms)

    def admit(self, size_bytes: int, events: int, now_ms: int) -> int:
        """Take all of it and return 0; or take nothing and return in how many ms it would fit."""
        wait_ms = max(self._bytes.wait_ms(size_bytes, now_ms), self._events.wait_ms(events, now_ms))
        if wait_ms == 0:
            self._bytes.take(size_bytes)
            self._events.take(events)
        return wait_ms

    def room(self, now_ms: int) -> Amount:
        """What is there now; nothing in debt."""
        return Amount(self._bytes.room(now_ms), self._events.room(now_ms))

    def wait_ms(self, amount: Amount, now_ms: int) -> int:
        """How long until `admit` would take it; 0: now."""
        return max(self._bytes.wait_ms(amount.size_bytes, now_ms), self._events.wait_ms(amount.events, now_ms))

    def spend(self, amount: Amount) -> None:
        """Take it at the time of the last call."""
        self._bytes.take(amount.size_bytes)
        self._events.take(amount.events)

    def reserve(self, size_bytes: int, events: int, now_ms: int) -> int:
        """Take all of it in any case; return how many ms to wait before using it, 0: none."""
        return max(self._bytes.reserve(size_bytes, now_ms), self._events.reserve(events, now_ms))

    def give_back(self, size_bytes: int, events: int, now_ms: int) -> None:
        """Undo an admit or a reserve, or a part of it."""
        self._bytes.give_back(size_bytes, now_ms)
        self._events.give_back(events, now_ms)

    def would_admit(self, rate: Rate, size_bytes: int, events: int, now_ms: int) -> bool:
        """Whether `admit` would take it after a raise to rate."""
        bytes_wait_ms = self._bytes.wait_ms_at(rate.bytes_per_second, size_bytes, now_ms)
        return max(bytes_wait_ms, self._events.wait_ms_at(rate.events_per_second, events, now_ms)) == 0

    def would_flow(self, rate: Rate, size_bytes: int, events: int, now_ms: int) -> bool:
        """Whether `reserve` would return 0 after a raise to rate."""
        bytes_delay_ms = self._bytes.delay_ms_at(rate.bytes_per_second, size_bytes, now_ms)
        return max(bytes_delay_ms, self._events.delay_ms_at(rate.events_per_second, events, now_ms)) == 0

    def change(self, rate: Rate, now_ms: int) -> None:
        """Go on at another rate; a raise comes with its burst."""
        self.rate = rate
        self._bytes.change(rate.bytes_per_second, now_ms)
        self._events.change(rate.events_per_second, now_ms)
