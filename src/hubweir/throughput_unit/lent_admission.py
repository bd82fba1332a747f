"""Admits what one of several processes takes in and hands out, by what the namespace's keeper has lent it.

As NamespaceAdmission: *in* is all or nothing, *out* is told how long to wait. What is lent holds for one lease; what is
left of it then is given back with the next one that is asked for. Where more is wanted than is lent, the next lease may
bring it. Without a keeper the process goes on with an equal part of the units, by itself: that of one process of all
that the service has, so that they never have more together, whichever of them is away.

Everything that moves is counted, for `take_counts`: the keeper sums the counts of all processes up, and bills them.
Times are monotonic milliseconds. After a crash: what was not told yet is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from hubweir.errors import ServiceError
from hubweir.throughput_unit.admission import Admitted, Busy, Paced, units_exceeded
from hubweir.throughput_unit.rate_limit import Amount, RateLimit
from hubweir.throughput_unit.throughput_unit import Rate, capacity_of
from hubweir.throughput_unit.unit_lender import LEASE_MS, LeaseAsked
from hubweir.throughput_unit.usage import MovedCounts


@dataclass(slots=True)
class _Lent:
    """Of one direction. left_*: of what was lent; below 0 where more was used. used_*: since the last lease, with what
    was refused. unused: what was left when a lease ended. alone: its part of the units while there is no keeper.
    """

    rate: Rate
    left_bytes: int = 0
    left_events: int = 0
    until_ms: int = 0
    used_bytes: int = 0
    used_events: int = 0
    unused: Amount = Amount()
    alone: RateLimit | None = None

    def fits(self, size_bytes: int, events: int, now_ms: int) -> bool:
        self.expire(now_ms)
        return self.left_bytes >= size_bytes and self.left_events >= events

    def use(self, size_bytes: int, events: int) -> None:
        self.left_bytes -= size_bytes
        self.left_events -= events
        self.want(size_bytes, events)

    def want(self, size_bytes: int, events: int) -> None:
        self.used_bytes += size_bytes
        self.used_events += events

    def expire(self, now_ms: int) -> None:
        """What is left when the lease is over is not used any more, but given back. A debt stays."""
        if now_ms >= self.until_ms:
            size_bytes, events = max(0, self.left_bytes), max(0, self.left_events)
            self.unused = Amount(self.unused.size_bytes + size_bytes, self.unused.events + events)
            self.left_bytes -= size_bytes
            self.left_events -= events

    def ask(self, short: Amount, first: Amount, now_ms: int) -> LeaseAsked:
        is_late = now_ms >= self.until_ms + LEASE_MS  # the bucket is as full again as it would be with what was left
        self.until_ms = min(self.until_ms, now_ms)
        self.expire(now_ms)
        unused, self.unused = Amount() if is_late else self.unused, Amount()
        used_bytes, used_events = max(0, self.used_bytes), max(0, self.used_events)
        self.used_bytes = self.used_events = 0
        wanted = Amount(max(used_bytes, short.size_bytes), max(used_events, short.events))
        return LeaseAsked(unused, wanted, short, first)

    def delay_ms(self) -> int:
        """How long until a debt is paid, if all of the units were for this process."""
        bytes_ms = -(self.left_bytes * 1_000 // self.rate.bytes_per_second)
        return max(0, bytes_ms, -(self.left_events * 1_000 // self.rate.events_per_second))


class LentAdmission:
    """See the module's text.

    units: held by the namespace; None: off, and nothing is limited. processes: of the service, with this one.
    """

    def __init__(self, namespace: str, *, units: int | None, processes: int, now_ms: int) -> None:
        self._namespace = namespace
        self._counts = MovedCounts()
        self._processes = processes
        self._is_alone = False
        self.set_units(units, now_ms)

    def set_units(self, units: int | None, now_ms: int) -> None:
        """The namespace holds this many from now on."""
        self.units = units
        capacity = capacity_of(units or 1)
        self._in, self._out = _Lent(capacity.ingress), _Lent(capacity.egress)
        self.go_on_alone(now_ms, is_alone=self._is_alone)

    # Events that come in

    def admit(self, size_bytes: int, events: int, now_ms: int) -> Admitted | Busy:
        """Ask for all of these events at once. Busy: not with what is lent now; it is not counted yet (`refuse`)."""
        if self.units is not None:
            if self._in.alone is not None:
                wait_ms = self._in.alone.admit(size_bytes, events, now_ms)
                if wait_ms:
                    return Busy(wait_ms)
            elif not self._in.fits(size_bytes, events, now_ms):
                return Busy(LEASE_MS)
            else:
                self._in.use(size_bytes, events)
        self._counts.bytes_in += size_bytes
        self._counts.events_in += events
        return Admitted(size_bytes, events, 0)

    def refuse(self, size_bytes: int, events: int) -> None:
        """They were refused. What was wanted counts for the next lease."""
        self._in.want(size_bytes, events)
        self._counts.refusals += 1
        self._counts.refused_events += events

    def give_back(self, admitted: Admitted, now_ms: int, *, busy: bool = False) -> None:
        """As NamespaceAdmission."""
        if self.units is not None:
            if self._in.alone is not None:
                self._in.alone.give_back(admitted.size_bytes, admitted.events, now_ms)
            else:
                self._in.use(-admitted.size_bytes, -admitted.events)
        self._counts.bytes_in -= admitted.size_bytes
        self._counts.events_in -= admitted.events
        if busy:
            self._counts.refusals += 1
            self._counts.refused_events += admitted.events

    def busy_error(self, busy: Busy) -> ServiceError:
        """The refusal as a sender sees it."""
        return units_exceeded(self._namespace, self.units or 0, busy)

    # Events that go out

    def reserve_egress(self, size_bytes: int, events: int, now_ms: int) -> Paced:
        """Reserve the sending of these events; the answer says how long to wait before sending them."""
        self._counts.bytes_out += size_bytes
        self._counts.events_out += events
        if self.units is None:
            return Paced(0, 0)
        if self._out.alone is not None:
            delay_ms = self._out.alone.reserve(size_bytes, events, now_ms)
        else:
            self._out.expire(now_ms)
            self._out.use(size_bytes, events)
            delay_ms = self._out.delay_ms()
        self._counts.delays += delay_ms > 0
        return Paced(delay_ms, 0)

    def give_back_unsent(self, paced: Paced, size_bytes: int, events: int, now_ms: int) -> None:
        """As NamespaceAdmission."""
        self._counts.bytes_out -= size_bytes
        self._counts.events_out -= events
        if self.units is None:
            return
        if self._out.alone is not None:
            self._out.alone.give_back(size_bytes, events, now_ms)
        else:
            self._out.use(-size_bytes, -events)

    @property
    def owes(self) -> bool:
        """Whether more goes out than was lent for it."""
        return self.units is not None and self._out.alone is None and self._out.delay_ms() > 0

    # Leases

    def ask(self, waiting: Amount, first: Amount, now_ms: int) -> tuple[LeaseAsked, LeaseAsked]:
        """End the lease, and say what the next one should bring: what was used or refused in this one, all debts, and
        what waits to come in. first: of that, the run at the front. Nothing is admitted until `lend`.
        """
        debt = Amount(max(0, -self._out.left_bytes), max(0, -self._out.left_events))
        return self._in.ask(waiting, first, now_ms), self._out.ask(debt, Amount(), now_ms)

    def lend(self, amounts: tuple[Amount, Amount], now_ms: int) -> None:
        """The next lease."""
        for lent, amount in zip((self._in, self._out), amounts, strict=True):
            lent.left_bytes += amount.size_bytes
            lent.left_events += amount.events
            lent.until_ms = now_ms + LEASE_MS

    def go_on_alone(self, now_ms: int, *, is_alone: bool) -> None:
        """Whether there is no keeper; while there is none, the process has its part of the units."""
        self._is_alone = is_alone
        for lent in (self._in, self._out):
            if not is_alone:
                lent.alone = None
            elif lent.alone is None:
                part = Rate(
                    max(1, lent.rate.bytes_per_second // self._processes),
                    max(1, lent.rate.events_per_second // self._processes),
                )
                lent.alone = RateLimit(part, now_ms=now_ms)

    @property
    def has_moved(self) -> bool:
        """Whether anything was counted since the counts were taken."""
        return self._counts != MovedCounts()

    def count_again(self, counts: MovedCounts) -> None:
        """They were taken, and could not be told."""
        for column in fields(counts):
            name = column.name
            setattr(self._counts, name, getattr(self._counts, name) + getattr(counts, name))

    def take_counts(self) -> MovedCounts:
        """What moved since the last call."""
        counts, self._counts = self._counts, MovedCounts()
        return counts
