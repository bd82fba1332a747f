"""Error state of one capture: the last error, events lost, alarms and log messages, the delay before a retry."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hubweir.alarms import CAPTURE_FAILING, CAPTURE_OVER_QUOTA, Alarms
from hubweir.counters import Counters

logger = logging.getLogger(__name__)

FIRST_RETRY_MS, RETRY_LIMIT_MS = 1_000, 60_000


class CaptureFailure:
    """Used on the loop. name: of the capture, for people. quota_bytes: how far behind retention waits for it.

    text: what fails now; None: nothing.
    """

    def __init__(self, name: str, quota_bytes: int, counters: Counters, alarms: Alarms) -> None:
        self._name = name
        self._quota_bytes = quota_bytes
        self._counters = counters
        self._alarms = alarms
        self._retry_ms = 0
        self.text: str | None = None

    def failed(self, error: Exception) -> int:
        """A step failed: how many milliseconds to wait before it is done again, ever longer."""
        self._counters["capture.failures"] += 1
        if self.text is None:  # what storage accounts say has another id in it each time
            kept = f"; it is tried again, and events are kept meanwhile, up to {self._quota_bytes} bytes"
            self._alarms.begin(CAPTURE_FAILING, self._name, f"{error}{kept}")
        self.text = str(error)
        self._retry_ms = min(RETRY_LIMIT_MS, 2 * self._retry_ms) or FIRST_RETRY_MS
        return self._retry_ms

    def ended(self, behind_events: int) -> None:
        """It goes on."""
        if self.text is not None:
            logger.info("%s goes on, %d events behind", self._name, behind_events)
        self._alarms.end(CAPTURE_FAILING, self._name)
        self.text = None
        self._retry_ms = 0

    def is_over_quota(self, behind_bytes: int) -> bool:
        """Whether it is so far behind that retention goes on without it."""
        is_over = behind_bytes > self._quota_bytes
        if is_over:
            why = "too slow" if self.text is None else "it fails"
            text = f"it is over its quota of {self._quota_bytes} bytes: retention removes events that it lacks ({why})"
            self._alarms.begin(CAPTURE_OVER_QUOTA, self._name, text)
        else:
            self._alarms.end(CAPTURE_OVER_QUOTA, self._name)
        return is_over

    def lost(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Events first to end, exclusive, of each are in no file and never will be."""
        for first, end in ranges:
            self._counters["capture.uncaptured_events"] += end - first
            logger.error("%s: events %d to %d were not captured", self._name, first, end - 1)
