"""Throughput units of a namespace in a process that follows its catalog: charged to what the keeper lends.

While units are on, or connections have a quota, a lease is asked for every LEASE_MS in which something moved. A run
that what is lent does not let in waits for a lease that is asked for at once, and others behind it, so that runs keep
their order; when that lease has not enough either, they are refused, and so is what comes until the next. What moved is
told with each lease, and every REPORT_MS where there are none. While the keeper is away each process goes on with its
part. So it does while a keeper that is there leaves a lease unanswered for LATE_MS: its process stalls, and nobody
knows for how long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.keeper import LeaseUnits, UnitsLent
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered
from hubweir.broker.throttle_lines import ThrottleLines
from hubweir.env import Env, Timer
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.append_queue import PendingAppend, Taker
from hubweir.gateway.keeper.answer_limit import answered_within
from hubweir.gateway.keeper.followed_namespace import FollowedNamespace
from hubweir.gateway.namespace_units import OnUnits, OnUsage, unused_units
from hubweir.limits import UnitsLimits
from hubweir.service_log import THROTTLED, THROTTLED_OVER
from hubweir.throughput_unit.admission import Admitted, Busy
from hubweir.throughput_unit.lent_admission import LentAdmission
from hubweir.throughput_unit.rate_limit import Amount
from hubweir.throughput_unit.unit_lender import LEASE_MS

REPORT_MS = 1_000
# Runs that come one after the other, each a little over what is lent, ask together.
ASK_GAP_MS = 10
# A keeper that is well answers within some milliseconds, and under much load within a part of a second.
LATE_MS = 1_000


@dataclass(slots=True)
class _Run:
    """A run on its way in. is_asked: a lease was asked for that lets it in."""

    broker: Taker
    command: AppendEvents | AppendNumbered
    pending: PendingAppend
    is_asked: bool = False


class LentUnits:
    """See the module's text. In the place of NamespaceUnits, for the gateway of a namespace that is followed."""

    def __init__(
        self,
        env: Env,
        source: FollowedNamespace,
        *,
        limits: UnitsLimits,
        connections: Callable[[], int],
        has_connection_quota: bool,
        processes: int,
    ) -> None:
        """connections: how many are this namespace's here. processes: of the service, with this one."""
        self._env = env
        self._source = source
        self._limits = limits
        self._connections = connections
        self._has_connection_quota = has_connection_quota
        self.other_connections = 0
        namespace = source.namespace.description
        self.admission = LentAdmission(
            namespace.name, units=namespace.units.held or None, processes=processes, now_ms=env.monotonic_ms()
        )
        self._throttle_lines = ThrottleLines(env, THROTTLED, THROTTLED_OVER, namespace=namespace.name)
        self._waiting: deque[_Run] = deque()
        self._is_asking = False
        self._is_late = False  # the lease that was asked for, by LATE_MS and more
        self._late_timer: Timer | None = None
        self._asked_ms = -ASK_GAP_MS
        self._soon: Timer | None = None
        self._short_until_ms = 0  # the newest lease has not enough for more until then
        self._timer: Timer = env.call_later(self._period_ms, self._tick)

    # Events

    def append(self, broker: Taker, command: AppendEvents | AppendNumbered, pending: PendingAppend) -> None:
        """Have a run stored, when the namespace's units let it in; else a known refusal, and nothing is stored."""
        run = _Run(broker, command, pending)
        if self._waiting:
            self._waiting.append(run)
            return
        busy = self._admit(run)
        if busy is None:
            return
        if self._is_alone or (not self._is_asking and self._env.monotonic_ms() < self._short_until_ms):
            self._refuse(run, busy)
            return
        self._waiting.append(run)
        self._ask_soon()

    def not_stored(self, admitted: Admitted, answer: Answer) -> None:
        """Give back what a run was charged, unless it may be stored all the same."""
        if isinstance(answer, AlreadyAppended):
            self.admission.give_back(admitted, self._env.monotonic_ms())
        elif isinstance(answer, Refusal) and answer.known:
            busy = answer.condition is SERVER_BUSY
            self.admission.give_back(admitted, self._env.monotonic_ms(), busy=busy)

    def inflated(self) -> None:
        """Events are to go out. Where they are more than what is lent, the next lease brings it, and units may grow."""
        if self.admission.owes and not self._is_alone:
            self._ask_soon()

    def read_waits(self) -> None:
        """A piece of what a reader gets waits for its time."""
        self._throttle_lines.waits(self.admission.units or 0)

    # Units and usage

    def change(self, on_done: OnUnits, *, held: int | None = None, maximum: int | None = None) -> None:
        """As NamespaceUnits."""
        self._source.change_units(held, maximum, on_done)

    def catalog_changed(self) -> None:
        """Apply the throughput units that are now in the catalog."""
        units = self._source.namespace.description.units.held or None
        if units != self.admission.units:
            self.admission.set_units(units, self._env.monotonic_ms())

    @property
    def warning(self) -> str | None:
        """As NamespaceUnits."""
        return unused_units(self._source.namespace, self._limits)

    def ask_usage(self, on_done: OnUsage) -> None:
        """What each hour was used for by all processes, oldest first."""
        self._source.ask_usage(on_done)

    def stop(self, on_done: Callable[[object], None]) -> None:
        """Tell what moved, and count no more. What waits is let in or refused first. A keeper that stalls is waited for
        no longer than LATE_MS."""

        def told(answer: Answer) -> None:
            self._leased(answer)
            on_done(answer)

        self._timer.cancel()
        self._throttle_lines.stop()
        if self._soon is not None:
            self._soon.cancel()
        self._lease(answered_within(LATE_MS, self._env, told))

    def end(self) -> None:
        """The namespace is served no more: what waits is refused."""
        self.stop(lambda _: None)

    # Leases

    @property
    def _is_alone(self) -> bool:
        """Whether there is no keeper, or one that does not answer."""
        return self._is_late or not self._source.link.is_up

    @property
    def _period_ms(self) -> int:
        return LEASE_MS if self.admission.units is not None or self._has_connection_quota else REPORT_MS

    def _tick(self) -> None:
        self._timer = self._env.call_later(self._period_ms, self._tick)
        self.admission.go_on_alone(self._env.monotonic_ms(), is_alone=self._is_alone)
        if self._source.link.is_up and not self._is_asking and self._has_news():
            self._ask()

    def _has_news(self) -> bool:
        """Whether there is something to tell, or to hear: connections that come elsewhere are told with a lease."""
        return self.admission.has_moved or self._has_connection_quota

    def _ask_soon(self) -> None:
        """Ask for what waits, unless that is under way."""
        if self._is_asking or self._soon is not None:
            return
        wait_ms = self._asked_ms + ASK_GAP_MS - self._env.monotonic_ms()
        if wait_ms > 0:
            self._soon = self._env.call_later(wait_ms, self._ask_now)
        else:
            self._ask()

    def _ask_now(self) -> None:
        self._soon = None
        if not self._is_asking:
            self._ask()  # it is refused while the keeper is away, and what waits goes by this process's own part

    def _ask(self) -> None:
        self._is_asking = True
        self._asked_ms = self._env.monotonic_ms()
        self._late_timer = self._env.machine.call_later(LATE_MS, self._late)
        self._lease(self._leased)

    def _late(self) -> None:
        """The keeper does not answer. Nothing more is asked until it does; what waits goes by this process's part."""
        self._late_timer, self._is_late = None, True
        self.admission.go_on_alone(self._env.monotonic_ms(), is_alone=True)
        self._let_in(is_lent=False)

    def _lease(self, on_answer: Callable[[Answer], None]) -> None:
        """Ask for a lease that lets in what waits."""
        size_bytes = events = 0
        for run in self._waiting:
            run.is_asked = True
            size_bytes += run.command.size_bytes
            events += run.command.events
        counts = self.admission.take_counts()
        first = self._waiting[0].command if self._waiting else None
        alone = Amount() if first is None else Amount(first.size_bytes, first.events)
        asked_in, asked_out = self.admission.ask(Amount(size_bytes, events), alone, self._env.monotonic_ms())
        connections = self._connections()
        link = self._source.link

        def answered(answer: Answer) -> None:
            if isinstance(answer, Refusal) and answer.known:
                self.admission.count_again(counts)
            on_answer(answer)

        link.submit(LeaseUnits(link.owner, self._source.name, counts, asked_in, asked_out, connections), answered)

    def _leased(self, answer: Answer) -> None:
        self._is_asking = self._is_late = False
        if self._late_timer is not None:
            self._late_timer.cancel()
            self._late_timer = None
        now_ms = self._env.monotonic_ms()
        if isinstance(answer, UnitsLent):
            self.admission.go_on_alone(now_ms, is_alone=False)
            self.admission.lend((answer.amount_in, answer.amount_out), now_ms)
            self.other_connections = answer.connections
        else:
            self.admission.go_on_alone(now_ms, is_alone=True)
        self._let_in(is_lent=isinstance(answer, UnitsLent))

    def _let_in(self, *, is_lent: bool) -> None:
        """Have what waits stored, or refuse it. is_lent: by a lease, which was asked for what had come by then."""
        while self._waiting:
            busy = self._admit(self._waiting[0])
            if busy is not None and is_lent and not self._waiting[0].is_asked:
                self._ask_soon()  # it came while this lease was on its way
                return
            run = self._waiting.popleft()
            if busy is not None:
                self._short_until_ms = self._env.monotonic_ms() + LEASE_MS
                self._refuse(run, busy)

    def _admit(self, run: _Run) -> Busy | None:
        """Have it stored, or say why not now."""
        command = run.command
        admitted = self.admission.admit(command.size_bytes, command.events, self._env.monotonic_ms())
        if isinstance(admitted, Busy):
            return admitted
        run.pending.units, run.pending.admitted = self, admitted
        run.broker.submit(command, run.pending.answered)
        return None

    def _refuse(self, run: _Run, busy: Busy) -> None:
        self.admission.refuse(run.command.size_bytes, run.command.events)
        error = self.admission.busy_error(busy)
        self._throttle_lines.refused(error.text)
        run.pending.answered(Refusal(error.condition, error.text))
