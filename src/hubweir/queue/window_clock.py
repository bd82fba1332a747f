"""The time of a window of duplicate detection: what passed while the service ran, as the log's stamps tell it.

Ids grow old by enqueued times, which a replay knows too. These follow the wall clock, and a jump of it would end a
window early (promise P11: clocks may make it longer, never shorter). So when a stamp is farther from the one before
than the monotonic clock says, the fragment logs SKIPPED in front of its messages: so much of that time does not count.
A start saw nothing of what passed before it, so none of that counts.
"""

from __future__ import annotations

from hubweir.queue.fragment_values import Times

# What stamps may run ahead before it is logged; every window is longer by as much. A clock that is set right a little
# every second, at 0.05 %, comes to it in 200 s.
SLACK_MS = 100


class WindowClock:
    """Of one fragment, since it was opened."""

    def __init__(self) -> None:
        self._ahead_ms = 0  # how far a stamp may be ahead of the monotonic clock and have skipped nothing

    def begin(self, stamp_ms: int, monotonic_ms: int) -> None:
        """Nothing was skipped up to this stamp, and from here on the monotonic clock counts."""
        self._ahead_ms = stamp_ms - monotonic_ms

    def skipped_ms(self, times: Times) -> int:
        """How much stamps skipped by now and was not logged; 0 within the slack."""
        skipped_ms = times.stamp_ms - times.monotonic_ms - self._ahead_ms
        return skipped_ms if skipped_ms > SLACK_MS else 0

    def logged(self, times: Times, skipped_ms: int) -> None:
        """What `skipped_ms` said now is on its way to the log."""
        # A clock that was set back, and then right again, skips what it lay back.
        self._ahead_ms = min(self._ahead_ms + skipped_ms, times.stamp_ms - times.monotonic_ms)

    def refused(self, skipped_ms: int) -> None:
        """The log did not take it: the next messages tell of it."""
        self._ahead_ms -= skipped_ms
