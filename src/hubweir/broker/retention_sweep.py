"""The sweep of a broker: residents expire and trim by a clock that no jump of the wall clock moves (rule R20)."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.deadlines import BrokerDeadlines, Deadline
from hubweir.limits import StoreLimits
from hubweir.messaging_store.trusted_clock import TrustedClock

SWEEP_MS = StoreLimits.retention_sweep_ms


class RetentionSweep:
    """Visits every resident once a sweep, one a turn of the loop, so that no turn is long."""

    def __init__(
        self,
        deadlines: BrokerDeadlines,
        clock: TrustedClock,
        visit_next: Callable[[int], bool],
        *,
        at_end: Callable[[], None],
        sweep_ms: int = SWEEP_MS,
    ) -> None:
        """visit_next(now_ms) visits one resident and says whether this sweep has more to visit.

        at_end: called once a sweep, when all were visited.
        """
        self._deadlines = deadlines
        self._clock = clock
        self._visit_next = visit_next
        self._at_end = at_end
        self._sweep_ms = sweep_ms
        self._next: Deadline | None = None

    def start(self) -> None:
        """Sweep now and then until `stop`."""
        self._next = self._deadlines.arm_in(self._sweep_ms, self)

    def stop(self) -> None:
        if self._next is not None:
            self._deadlines.cancel(self._next)

    def due(self, key: None, now_ms: int) -> None:
        """Visit one resident."""
        more = False
        try:
            more = self._visit_next(self._clock.now_ms())
        finally:  # also after a fault: a sweep that is not set up again never comes
            self._next = self._deadlines.arm(now_ms if more else now_ms + self._sweep_ms, self)
        if not more:
            self._at_end()
