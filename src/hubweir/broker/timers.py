"""The timers of a broker: retention, on a clock that no jump of the wall clock moves (rule R20)."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Env, Timer
from hubweir.limits import StoreLimits
from hubweir.messaging_store.trusted_clock import TrustedClock

SWEEP_MS = StoreLimits.retention_sweep_ms


class RetentionSweep:
    """Visits every resident once a sweep, one a turn of the loop, so that no turn is long."""

    def __init__(
        self,
        env: Env,
        clock: TrustedClock,
        visit_next: Callable[[int], bool],
        *,
        at_end: Callable[[], None],
        sweep_ms: int = SWEEP_MS,
    ) -> None:
        """visit_next(now_ms) visits one resident and says whether this sweep has more to visit.

        at_end: called once a sweep, when all were visited.
        """
        self._env = env
        self._clock = clock
        self._visit_next = visit_next
        self._at_end = at_end
        self._sweep_ms = sweep_ms
        self._timer: Timer | None = None
        self._stopped = False

    def start(self) -> None:
        """Sweep now and then until `stop`."""
        self._timer = self._env.call_later(self._sweep_ms, self._step)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _step(self) -> None:
        if self._stopped:
            return
        more = False
        try:
            more = self._visit_next(self._clock.now_ms())
        finally:  # also after a fault: a sweep that is not set up again never comes
            self._timer = self._env.call_later(0 if more else self._sweep_ms, self._step)
        if not more:
            self._at_end()
