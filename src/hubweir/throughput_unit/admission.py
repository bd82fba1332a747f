"""Admits what one namespace takes in and hands out: its units, shared by all of its hubs, whoever comes first.

*In*: `admit`, once for each run of events that is about to be appended: all of it or nothing. What was admitted and
then not stored is given back. *Out*: `reserve_egress`, once for each run of events that is about to be sent to a
consumer: never refused; the answer is how long to wait before sending. Runs wait in the order in which they asked, so
readers of one namespace get their turns. With auto-inflate, units are added inside these calls, before anything is
refused or waits.

Units are off (None) or 1 to RAISED_UNITS_LIMIT, and may be changed at any time; usage is counted in either case. A send
that waits keeps the delay it was told when units change meanwhile.

Times are monotonic milliseconds. After a crash: buckets start full, usage as it was stored last.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.throughput_unit.auto_inflate import Cause, UnitsRaised, inflated
from hubweir.throughput_unit.rate_limit import Amount, RateLimit
from hubweir.throughput_unit.throughput_unit import Capacity, capacity_of
from hubweir.throughput_unit.unit_lender import LeaseAsked, UnitLender
from hubweir.throughput_unit.usage import Usage

# The service asks for about this long, and the Python client waits so long after a server-busy in any case.
WAIT_HINT_S = 4
# What clients of the service know the condition by, beside its symbol.
ERROR_CODE = 50002


class Admitted(Struct, frozen=True):
    """May be stored. Kept until it is, since `give_back` wants it: it says what was taken, where, in which hour."""

    size_bytes: int
    events: int
    hour_ms: int
    limit: RateLimit | None = None


class Busy(Struct, frozen=True):
    """Nothing of it may be stored. retry_after_ms: when it would fit if nobody else sent."""

    retry_after_ms: int


class Paced(Struct, frozen=True):
    """May be sent to a consumer when delay_ms have passed; 0: now. The rest is for `give_back_unsent`."""

    delay_ms: int
    hour_ms: int
    limit: RateLimit | None = None


class NamespaceAdmission:
    """See the module's text. The hot calls, admit and reserve_egress, cost a few microseconds for a run of any length.

    usage: counts what is admitted here. maximum_units: how far auto-inflate may go, or None.
    """

    def __init__(
        self, namespace: str, usage: Usage, *, now_ms: int, units: int | None, maximum_units: int | None = None
    ) -> None:
        self._namespace = namespace
        self._usage = usage
        self.units: int | None = None  # held now; None: off. Changed by set_units
        self._ingress: RateLimit | None = None
        self._egress: RateLimit | None = None
        self._raised: list[UnitsRaised] = []
        self._lenders = UnitLender(), UnitLender()  # in and out
        self.maximum_units = maximum_units
        self.set_units(units, now_ms)

    @property
    def usage(self) -> Usage:
        return self._usage

    # Events that come in

    def admit(self, size_bytes: int, events: int, now_ms: int) -> Admitted | Busy:
        """Ask for all of these events at once. Busy has no effect but that it is counted."""
        row = self._usage.row(now_ms)
        limit = self._ingress
        if limit is not None:
            wait_ms = limit.admit(size_bytes, events, now_ms)
            if wait_ms and self._inflate(Cause.INGRESS, limit, size_bytes, events, now_ms):
                wait_ms = limit.admit(size_bytes, events, now_ms)
            if wait_ms:
                row.refusals += 1
                row.refused_events += events
                return Busy(wait_ms)
        row.bytes_in += size_bytes
        row.events_in += events
        return Admitted(size_bytes, events, row.hour_ms, limit)

    def give_back(self, admitted: Admitted, now_ms: int, *, busy: bool = False) -> None:
        """These events were not stored after all. busy: because a partition's own limit refused them.

        Once for each Admitted; events that may have been stored are not given back.
        """
        if admitted.limit is not None:
            admitted.limit.give_back(admitted.size_bytes, admitted.events, now_ms)
        row = self._usage.find(admitted.hour_ms)
        if row is not None:
            row.bytes_in -= admitted.size_bytes
            row.events_in -= admitted.events
        if busy:
            refused = self._usage.row(now_ms)
            refused.refusals += 1
            refused.refused_events += admitted.events

    def busy_error(self, busy: Busy) -> ServiceError:
        """The refusal as a sender sees it."""
        return units_exceeded(self._namespace, self.units or 0, busy)

    # Events that go out

    def reserve_egress(self, size_bytes: int, events: int, now_ms: int) -> Paced:
        """Reserve the sending of these events; the answer says how long to wait before sending them."""
        row = self._usage.row(now_ms)
        row.bytes_out += size_bytes
        row.events_out += events
        limit = self._egress
        if limit is None:
            return Paced(0, row.hour_ms)
        delay_ms = limit.reserve(size_bytes, events, now_ms)
        if delay_ms:
            # What was reserved is put back first, so that the units to add are found for the whole of it.
            limit.give_back(size_bytes, events, now_ms)
            self._inflate(Cause.EGRESS, limit, size_bytes, events, now_ms)
            delay_ms = limit.reserve(size_bytes, events, now_ms)
            row.delays += delay_ms > 0
        return Paced(delay_ms, row.hour_ms, limit)

    def give_back_unsent(self, paced: Paced, size_bytes: int, events: int, now_ms: int) -> None:
        """This much of what `reserve_egress` reserved was not sent: less credit than events, or the link ended."""
        if paced.limit is not None:
            paced.limit.give_back(size_bytes, events, now_ms)
        row = self._usage.find(paced.hour_ms)
        if row is not None:
            row.bytes_out -= size_bytes
            row.events_out -= events

    # Other processes

    def lend(self, process: int, asked: tuple[LeaseAsked, LeaseAsked], now_ms: int) -> tuple[Amount, Amount]:
        """What another process may use in its next lease, in and out, as it asks; nothing while units are off."""
        lent = [Amount(), Amount()]
        for number, cause in enumerate(Cause):
            limit, its = (self._ingress, self._egress)[number], asked[number]
            if limit is None:
                continue
            if limit.wait_ms(its.short, now_ms):
                self._inflate(cause, limit, its.short.size_bytes, its.short.events, now_ms)
            if self._may_grow:
                its = replace(its, first=its.short)  # nobody is refused a part while there are units to add
            lent[number] = self._lenders[number].lend(limit, process, its, now_ms)
        return lent[0], lent[1]

    @property
    def _may_grow(self) -> bool:
        return self.units is not None and self.maximum_units is not None and self.units < self.maximum_units

    def forget(self, process: int) -> None:
        """Another process is gone, with what it was lent."""
        for lender in self._lenders:
            lender.forget(process)

    # Units

    def set_units(self, units: int | None, now_ms: int) -> None:
        """Hold this many units from now on (checked by check_units); None: no limits.

        Added units come with their burst. A lower number still counts for this hour of the bill.
        """
        self.units = units
        self._usage.hold(units or 0, now_ms)
        if units is None:
            self._ingress = self._egress = None
        else:
            self._set_capacity(capacity_of(units), now_ms)

    def take_raised(self) -> list[UnitsRaised]:
        """What auto-inflate did since the last call: to be stored with the namespace, and told to people."""
        raised, self._raised = self._raised, []
        return raised

    def _set_capacity(self, capacity: Capacity, now_ms: int) -> None:
        if self._ingress is None or self._egress is None:
            self._ingress = RateLimit(capacity.ingress, now_ms=now_ms)
            self._egress = RateLimit(capacity.egress, now_ms=now_ms)
            return
        self._ingress.change(capacity.ingress, now_ms)
        self._egress.change(capacity.egress, now_ms)

    def _inflate(self, cause: Cause, limit: RateLimit, size_bytes: int, events: int, now_ms: int) -> bool:
        """Add the units that this request needs, as far as there are any; True when some were added."""
        before, maximum = self.units, self.maximum_units
        if before is None or maximum is None:
            return False

        def suffices(units: int) -> bool:
            if cause is Cause.INGRESS:
                return limit.would_admit(capacity_of(units).ingress, size_bytes, events, now_ms)
            return limit.would_flow(capacity_of(units).egress, size_bytes, events, now_ms)

        after = inflated(before, maximum, suffices)
        if after == before:
            return False
        self.set_units(after, now_ms)
        self._usage.row(now_ms).inflations += 1
        self._raised.append(UnitsRaised(before, after, cause, now_ms))
        return True


def units_exceeded(namespace: str, units: int, busy: Busy) -> ServiceError:
    """The refusal of events that are over the units, as a sender sees it; on HTTPS the seconds are its Retry-After."""
    rate = capacity_of(units).ingress
    text = (
        f"Namespace '{namespace}' is over its throughput units ({units}: {rate.bytes_per_second} bytes or "
        f"{rate.events_per_second} events a second in); nothing was stored. Error code: {ERROR_CODE}. Please wait "
        f"{retry_after_s(busy)} seconds and send again, or raise the units."
    )
    return ServiceError(SERVER_BUSY, text)


def retry_after_s(busy: Busy) -> int:
    """Whole seconds to ask a client to wait: never less than WAIT_HINT_S."""
    return max(WAIT_HINT_S, -(-busy.retry_after_ms // 1_000))
