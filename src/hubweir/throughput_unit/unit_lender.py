"""Throughput units lent to several processes: of one direction, a limit out of which each gets what it needs.

A process asks for what it used and had to refuse since it asked last, or for what waits now, and gives back what it did
not use. Where there is enough for all, it gets that, and a part of what nobody asked for, so that a first send need not
wait. Where there is not, each gets a part of what is there, by what it asked for. So all of them together take no more
than one process alone would, at most one lease late.

Times are monotonic milliseconds. After a crash nothing is lent.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.throughput_unit.rate_limit import Amount, RateLimit

# What is lent is used in this time, or it is not.
LEASE_MS = 100
# What a process asked for counts so long when it asks for nothing more.
FORGET_MS = 10 * LEASE_MS


@dataclass(frozen=True, slots=True)
class LeaseAsked:
    """What a process says of one direction. unused: of its last lease. wanted: for the next. short: what of that waits
    now, because the last lease did not have it; units may be added for it. first: what of that passes whole or not.
    """

    unused: Amount = Amount()
    wanted: Amount = Amount()
    short: Amount = Amount()
    first: Amount = Amount()


class UnitLender:
    """See the module's text. Processes by their ids."""

    def __init__(self) -> None:
        self._wanted: dict[int, tuple[Amount, int]] = {}  # with the time at which it was asked for

    def forget(self, process: int) -> None:
        """It is gone, with what it was lent."""
        self._wanted.pop(process, None)

    def lend(self, limit: RateLimit, process: int, asked: LeaseAsked, now_ms: int) -> Amount:
        """What a process may use in its next lease: it is taken out of limit, to which it gives its unused back."""
        limit.give_back(asked.unused.size_bytes, asked.unused.events, now_ms)
        wanted, first = asked.wanted, asked.first
        self._wanted[process] = wanted, now_ms
        self._wanted = {each: its for each, its in self._wanted.items() if now_ms - its[1] < FORGET_MS}
        room = limit.room(now_ms)
        lent = Amount(
            self._part(room.size_bytes, wanted.size_bytes, sum(each.size_bytes for each, _ in self._wanted.values())),
            self._part(room.events, wanted.events, sum(each.events for each, _ in self._wanted.values())),
        )
        if not limit.wait_ms(first, now_ms):
            # A part of it would help nobody; and what is more than a whole burst leaves a debt (token_bucket.py).
            lent = Amount(max(lent.size_bytes, first.size_bytes), max(lent.events, first.events))
        limit.spend(lent)
        return lent

    def _part(self, room: int, wanted: int, together: int) -> int:
        """together: what all asked for, this one too."""
        if together > room:
            return room * wanted // together
        return wanted + (room - together) // (len(self._wanted) + 1)
