"""What a broker does by the clock: retention. A clock that jumps ahead removes nothing.

Retention compares stamps of the wall clock, and the wall clock may jump. A jump of more than JUMP_MS ahead of the
monotonic clock is not believed until the service starts again: events are then kept longer, never shorter. A jump
back is taken as it is; it keeps them longer, too. (Rule R20)
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hubweir.env import Env, Timer

logger = logging.getLogger(__name__)

SWEEP_MS = 10_000
JUMP_MS = 60_000


class TrustedClock:
    """Wall time that never runs ahead of the monotonic clock by a jump."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._at_ms = env.now_ms()
        self._monotonic_ms = env.monotonic_ms()
        self._warned = False

    def now_ms(self) -> int:
        """Wall time; after a jump ahead, the time that has really passed. Ask at least once a minute or so."""
        wall_ms, monotonic_ms = self._env.now_ms(), self._env.monotonic_ms()
        expected_ms = self._at_ms + monotonic_ms - self._monotonic_ms
        if wall_ms > expected_ms + JUMP_MS:
            if not self._warned:
                logger.error(
                    "the clock jumped ahead by %d s: retention goes by elapsed time until the service starts again",
                    (wall_ms - expected_ms) // 1000,
                )
            self._warned = True
            wall_ms = expected_ms
        self._at_ms, self._monotonic_ms = wall_ms, monotonic_ms
        return wall_ms


class RetentionSweep:
    """Visits every partition once a sweep, one a turn of the loop, so that no turn is long."""

    def __init__(self, env: Env, expire_next: Callable[[int], bool], *, sweep_ms: int = SWEEP_MS) -> None:
        """expire_next(now_ms) trims one partition and says whether this sweep has more to visit."""
        self._env = env
        self._expire_next = expire_next
        self._sweep_ms = sweep_ms
        self._clock = TrustedClock(env)
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
            more = self._expire_next(self._clock.now_ms())
        finally:  # also after a fault: a sweep that is not set up again never comes
            self._timer = self._env.call_later(0 if more else self._sweep_ms, self._step)
