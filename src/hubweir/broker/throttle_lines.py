"""Lines of the log about what is over its throughput units: one when that begins, one when it is over.

Of a namespace its gateways tell it, of a partition its owner, which lets at most one unit through. It is over when
nothing was refused and no read waited for QUIET_MS. Each process says what it refused and held up.
"""

from __future__ import annotations

import logging

from hubweir.env import Env, Timer
from hubweir.service_log import LineKind
from hubweir.throughput_unit.throughput_unit import capacity_of

logger = logging.getLogger(__name__)

QUIET_MS = 60_000


class ThrottleLines:
    """See the module's text."""

    def __init__(self, env: Env, begin: LineKind, over: LineKind, **whose: str) -> None:
        """begin, over: the kinds of the two lines. whose: the fields of both that say who is over its units."""
        self._env = env
        self._begin = begin
        self._over = over
        self._whose = whose
        self._timer: Timer | None = None  # while it is throttled
        self._began_ms = self._last_ms = 0
        self._refused = self._waited = 0

    def refused(self, text: str) -> None:
        """A send was refused just now, in these words."""
        self._refused += 1
        if self._begins():
            self._begin.say(logger, level=self._begin.level, text=text, **self._whose)

    def waits(self, units: int) -> None:
        """A piece of what a reader gets waits for its time, since so many units let no more out."""
        self._waited += 1
        if self._begins():
            rate = capacity_of(units).egress
            noun = "throughput unit lets" if units == 1 else "throughput units let"
            text = (
                f"readers wait: {units} {noun} {rate.bytes_per_second} bytes or {rate.events_per_second} events a "
                "second out"
            )
            self._begin.say(logger, level=self._begin.level, text=text, **self._whose)

    def stop(self) -> None:
        """The service stops: no line comes any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _begins(self) -> bool:
        self._last_ms = self._env.monotonic_ms()
        if self._timer is not None:
            return False
        self._began_ms = self._last_ms
        self._timer = self._env.call_later(QUIET_MS, self._look)
        return True

    def _look(self) -> None:
        quiet_ms = self._env.monotonic_ms() - self._last_ms
        if quiet_ms < QUIET_MS:
            self._timer = self._env.call_later(QUIET_MS - quiet_ms, self._look)
            return
        self._timer = None
        self._over.say(
            logger,
            level=self._over.level,
            seconds=(self._last_ms - self._began_ms) / 1_000,
            refused=self._refused,
            waited=self._waited,
            **self._whose,
        )
        self._refused = self._waited = 0
