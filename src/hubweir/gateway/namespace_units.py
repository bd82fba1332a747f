"""The namespace's throughput units at work: appends are admitted, sends paced, usage recorded, units changed.

What is held stands in the catalog and may change while events flow; auto-inflate's raises are written there at once.
Usage is written there once a minute, as far as it changed, and when the service stops. After a crash: units as the
catalog has them, full buckets, usage as of the last minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from hubweir.alarms import UNITS_UNUSED, Alarms
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import CapPartitions, Refusal
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered
from hubweir.broker.throttle_lines import ThrottleLines
from hubweir.env import Env, Timer
from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.gateway.append_queue import PendingAppend, Taker
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.limits import UnitsLimits
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.service_log import THROTTLED, THROTTLED_OVER
from hubweir.throughput_unit.admission import Admitted, Busy, NamespaceAdmission
from hubweir.throughput_unit.auto_inflate import UnitsRaised, check_maximum
from hubweir.throughput_unit.rate_limit import Amount
from hubweir.throughput_unit.throughput_unit import check_units, units_beyond_partitions
from hubweir.throughput_unit.unit_lender import LeaseAsked
from hubweir.throughput_unit.usage import FORMAT, HOUR_MS, HOURS_KEPT, MovedCounts, Usage

logger = logging.getLogger(__name__)

RECORD_EVERY_MS = 60_000

OnUnits = Callable[[NamespaceDescription | ServiceError], None]
OnUsage = Callable[[list[tuple[int, ...]] | ServiceError], None]
Rows = dict[int, tuple[int, ...]]


class NamespaceUnits:
    """See the module's text."""

    def __init__(
        self,
        env: Env,
        namespace: Namespace,
        keeper: CatalogKeeper,
        brokers: Brokers,
        *,
        limits: UnitsLimits,
        alarms: Alarms,
    ) -> None:
        self._env = env
        self._namespace = namespace
        self._keeper = keeper
        self._brokers = brokers
        self._limits = limits
        self._alarms = alarms
        self._recorded: Rows = {row[0]: row for row in namespace.usage}
        self._capped = False
        self._throttle_lines = ThrottleLines(env, THROTTLED, THROTTLED_OVER, namespace=namespace.description.name)
        self.other_connections = 0  # those of processes that follow are told to each of them
        now_ms = env.monotonic_ms()
        rows = {"format": FORMAT, "hours": [list(row) for row in namespace.usage]}
        usage = Usage.restored(rows, now_ms=now_ms, wall_ms=env.now_ms())
        held = namespace.description.units
        self.admission = NamespaceAdmission(
            namespace.description.name,
            usage,
            now_ms=now_ms,
            units=held.held or None,
            maximum_units=held.maximum or None,
        )
        self._applied = held
        self._tell_brokers()
        self._tell_unused()
        self._timer: Timer = env.call_later(RECORD_EVERY_MS, self._record_now_and_then)

    # Events

    def append(self, broker: Taker, command: AppendEvents | AppendNumbered, pending: PendingAppend) -> None:
        """Have a run stored, when the namespace's units let it in; else a known refusal, and nothing is stored."""
        admission = self.admission
        admitted = admission.admit(command.size_bytes, command.events, self._env.monotonic_ms())
        if admission.maximum_units is not None:
            self._write_raises()
        if isinstance(admitted, Busy):
            error = admission.busy_error(admitted)
            self._throttle_lines.refused(error.text)
            pending.answered(Refusal(error.condition, error.text))
            return
        pending.units, pending.admitted = self, admitted
        broker.submit(command, pending.answered)

    def not_stored(self, admitted: Admitted, answer: Answer) -> None:
        """Give back what a run was charged, unless it may be stored all the same."""
        if isinstance(answer, AlreadyAppended):
            self.admission.give_back(admitted, self._env.monotonic_ms())
        elif isinstance(answer, Refusal) and answer.known:
            busy = answer.condition is SERVER_BUSY
            self.admission.give_back(admitted, self._env.monotonic_ms(), busy=busy)

    def inflated(self) -> None:
        """A read may have made units grow: write it down."""
        if self.admission.maximum_units is not None:
            self._write_raises()

    def read_waits(self) -> None:
        """A piece of what a reader gets waits for its time."""
        self._throttle_lines.waits(self.admission.units or 0)

    # Units

    def change(self, on_done: OnUnits, *, held: int | None = None, maximum: int | None = None) -> None:
        """Hold other units, or let auto-inflate go elsewhere; None leaves a number as it is, 0 is off and none.

        on_done: when it holds and is durable, or with ServiceError ARGUMENT_OUT_OF_RANGE.
        """

        def decide(known: UnitsDescription) -> UnitsDescription:
            return self._checked(
                replace(
                    known,
                    held=known.held if held is None else held,
                    maximum=known.maximum if maximum is None else maximum,
                    inflated=known.inflated if held is None else 0,
                )
            )

        self._change_units(decide, on_done)

    def ask(self, held: int | None, maximum: int | None, on_done: OnUnits) -> None:
        """At a start: hold what it says, None what is held already. What auto-inflate added to as many units stays, up
        to the maximum.

        on_done: as of `change`.
        """

        def decide(known: UnitsDescription) -> UnitsDescription:
            asked = known.asked if held is None else held
            most = known.maximum if maximum is None else maximum
            inflated = known.inflated if asked == known.asked else 0
            if most:
                inflated = max(0, min(inflated, most - asked))
            return self._checked(UnitsDescription(asked + inflated, most, inflated))

        self._change_units(decide, on_done)

    def catalog_changed(self) -> None:
        """Apply the throughput units that are now in the catalog."""
        units = self._namespace.description.units
        if units == self._applied:
            self._tell_unused()  # hubs came or went
            return
        self._applied = units
        self.admission.maximum_units = units.maximum or None
        if (units.held or None) != self.admission.units:
            self.admission.set_units(units.held or None, self._env.monotonic_ms())
        self._tell_brokers()
        self._tell_unused()

    @property
    def warning(self) -> str | None:
        """What an operator should know about the units held; None: nothing."""
        return unused_units(self._namespace, self._limits)

    # Other processes

    def lend(self, process: int, asked: tuple[LeaseAsked, LeaseAsked], moved: MovedCounts) -> tuple[Amount, Amount]:
        """Count what moved in another process, and what it may use in its next lease, in and out."""
        now_ms = self._env.monotonic_ms()
        self.admission.usage.add(moved, now_ms)
        lent = self.admission.lend(process, asked, now_ms)
        self.inflated()
        return lent

    def process_left(self, process: int) -> None:
        """Another process is gone, with what it was lent."""
        self.admission.forget(process)

    def broker_came(self, broker: Taker) -> None:
        """A broker began anew: it is told what all were told."""
        if self._capped:
            broker.submit(CapPartitions(True, self._namespace.description.name), _log_refusal)

    # Usage

    def hours(self) -> list[tuple[int, ...]]:
        """What each hour was used for, oldest first: the columns of HourUsage in order."""
        now_ms = self._env.monotonic_ms()
        return list(_rows(self.admission.usage, now_ms).values())

    def ask_usage(self, on_done: OnUsage) -> None:
        """As `hours`, told to on_done."""
        on_done(self.hours())

    def stop(self, on_done: Callable[[object], None]) -> None:
        """Record what was used and count no more; on_done when it is written, or could not be."""
        self._timer.cancel()
        self._throttle_lines.stop()
        self._record(on_done)

    def end(self) -> None:
        """The namespace is served no more: what stands for it outside its catalog goes."""
        self.stop(_log_refusal)
        self._alarms.end(UNITS_UNUSED, f"namespace {self._namespace.description.name}")
        self._applied = UnitsDescription()
        self._tell_brokers()

    def _record_now_and_then(self) -> None:
        self._timer = self._env.call_later(RECORD_EVERY_MS, self._record_now_and_then)
        self.admission.usage.set_clocks(self._env.monotonic_ms(), self._env.now_ms())
        self._record(_log_refusal)

    def _record(self, on_done: Callable[[object], None]) -> None:
        now = _rows(self.admission.usage, self._env.monotonic_ms())
        changed = [row for hour_ms, row in now.items() if self._recorded.get(hour_ms) != row]
        # An hour in which nothing was held and nothing moved is not worth a write.
        if not any(any(row[1:]) for row in changed):
            on_done(None)
            return
        oldest_ms = self._env.now_ms() - HOURS_KEPT * HOUR_MS

        def recorded(result: NamespaceDescription | ServiceError) -> None:
            if not isinstance(result, ServiceError):
                self._recorded = now
            on_done(result)

        self._keeper.record_usage(changed, oldest_ms, recorded)

    # Inside

    def _change_units(self, decide: Callable[[UnitsDescription], UnitsDescription], on_done: OnUnits) -> None:
        """decide: from the units of the moment in which the change has its turn; it may raise ServiceError."""
        self._keeper.describe(lambda known: replace(known, units=decide(known.units)), on_done)

    def _checked(self, units: UnitsDescription) -> UnitsDescription:
        return checked_units(self._namespace.description.name, units, self._limits)

    def _write_raises(self) -> None:
        for raised in self.admission.take_raised():
            logger.warning(
                "namespace %s: %s reached the limit, throughput units were raised from %d to %d",
                self._namespace.description.name, raised.cause.value, raised.before, raised.after,
            )  # fmt: skip
            self._change_units(_raise_by(raised), _log_refusal)

    def _tell_unused(self) -> None:
        """An alarm while more units are held than the partitions can use."""
        about, text = f"namespace {self._namespace.description.name}", self.warning
        if text is None:
            self._alarms.end(UNITS_UNUSED, about)
        else:
            self._alarms.begin(UNITS_UNUSED, about, text)

    def _tell_brokers(self) -> None:
        is_capped = self._limits.partition_cap and self._applied.held > 0
        if is_capped != self._capped:
            self._capped = is_capped
            for broker in self._brokers:
                if broker.is_up:
                    broker.submit(CapPartitions(is_capped, self._namespace.description.name), _log_refusal)


def checked_units(name: str, units: UnitsDescription, limits: UnitsLimits) -> UnitsDescription:
    """The units, when a namespace of that name may hold them; ServiceError ARGUMENT_OUT_OF_RANGE."""
    if units.held:
        check_units(name, units.held, units_limit=limits.max_throughput_units)
        if units.maximum:
            check_maximum(name, units.held, units.maximum, units_limit=limits.max_throughput_units)
    elif units.maximum:
        check_units(name, units.maximum, units_limit=limits.max_throughput_units)
    return units


def unused_units(namespace: Namespace, limits: UnitsLimits) -> str | None:
    """A warning when a namespace holds more units than its partitions can use; None: it does not."""
    units = namespace.description.units.held
    if not limits.partition_cap or not units:
        return None
    hubs = {hub.name: hub.description.partition_count for hub in namespace.entities(EventHubDescription)}
    return units_beyond_partitions(namespace.description.name, units, hubs)


def _raise_by(raised: UnitsRaised) -> Callable[[UnitsDescription], UnitsDescription]:
    """What an operator did meanwhile wins: units that were turned off or bounded lower are not raised."""

    def decide(known: UnitsDescription) -> UnitsDescription:
        if not known.held or known.maximum < raised.after:
            return known
        more = max(0, raised.after - known.held)
        return replace(known, held=known.held + more, inflated=known.inflated + more)

    return decide


def _rows(usage: Usage, now_ms: int) -> Rows:
    hours: list[list[int]] = usage.snapshot(now_ms)["hours"]  # type: ignore[assignment]  # its documented shape
    return {row[0]: tuple(row) for row in hours}


def _log_refusal(result: object) -> None:
    if isinstance(result, ServiceError | Refusal):
        logger.error("throughput units: %s", result.text)
