"""A disk without space for appends, as an alarm of the store: it stands from the first refusal until there is space.

Every log refuses for itself and tries again by itself (segment_log.py). Whether the operator still has to do something
must not depend on somebody sending: so the space is looked at while the alarm stands, after 1 s and then ever later, up
to every 5 s. It is over when as much is free as the largest refused append lacked, and nothing was refused since the
last look: a quota of the file system refuses although bytes are free.
"""

from __future__ import annotations

from hubweir.alarms import DISK_FULL, Alarms
from hubweir.env import Env, Lane, Result, Timer

# A log that was refused for want of space tries again when this much more than the send needs is free: its share of
# a step, and the file system's own blocks. Not more, or one log would wait for what the others are using up.
RESUME_BYTES = 64 * 1024

FIRST_LOOK_MS, LAST_LOOK_MS = 1000, 5000


class FullDisk:
    """One for a store. Used on the owner's loop. about: the store, as its alarms name it."""

    def __init__(self, env: Env, alarms: Alarms, about: str) -> None:
        self._env = env
        self._alarms = alarms
        self._about = about
        self._needed_bytes = 0
        self._refused = False  # since the last look
        self._looks = False  # a look is due or under way
        self._timer: Timer | None = None
        self._delay_ms = FIRST_LOOK_MS
        self._stopped = False

    def refused(self, needed_bytes: int) -> None:
        """An append was refused: it would fit when this much is free."""
        if self._stopped:
            return
        self._refused = True
        self._needed_bytes = max(self._needed_bytes, needed_bytes)
        if not self._looks:
            self._delay_ms = FIRST_LOOK_MS
            self._look_later()
        self._alarms.begin(
            DISK_FULL, self._about, "the disk is full, and what is sent is refused; delete a hub, shorten retention or "
            "add space, and it goes on by itself"
        )  # fmt: skip

    def stop(self) -> None:
        """The store closes."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._looks = True
        self._timer = self._env.call_later(self._delay_ms, self._look)
        self._delay_ms = min(2 * self._delay_ms, LAST_LOOK_MS)

    def _look(self) -> None:
        was_refused, self._refused = self._refused, False

        def looked(result: Result[int]) -> None:
            self._looked(result, was_refused=was_refused or self._refused)

        self._env.offload(Lane.MAINTENANCE, self._env.files.free_bytes, looked)

    def _looked(self, result: Result[int], *, was_refused: bool) -> None:
        try:
            is_over = result.value() >= self._needed_bytes and not was_refused
        except OSError:
            is_over = False
        if self._stopped:
            return
        if is_over:
            self._looks, self._needed_bytes = False, 0
            self._alarms.end(DISK_FULL, self._about)
        else:
            self._look_later()
