"""What one capture fails of, or has lost: what people are told of it, and how long it waits before it tries again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hubweir.counters import Counters

logger = logging.getLogger(__name__)

FIRST_RETRY_MS, LONGEST_RETRY_MS = 1_000, 60_000


class CaptureFailure:
    """Used on the loop. name: of the capture, for people. quota_bytes: how far behind retention waits for it.

    text: what fails now; None: nothing.
    """

    def __init__(self, name: str, quota_bytes: int, counters: Counters) -> None:
        self._name = name
        self._quota_bytes = quota_bytes
        self._counters = counters
        self._retry_ms = 0
        self._is_over_quota = False
        self.text: str | None = None

    @property
    def alarm(self) -> str | None:
        """What the operator must know."""
        if self._is_over_quota:
            return f"capture of {self._name} is over its quota: events are lost to it ({self.text or 'too slow'})"
        return None if self.text is None else f"capture of {self._name} fails: {self.text}"

    def failed(self, error: Exception) -> int:
        """A step failed: how many milliseconds to wait before it is done again, ever longer."""
        self._counters.add("capture.failures")
        if self.text is None:
            logger.warning(
                "capture of %s fails and is tried again; events are kept meanwhile, up to %d bytes: %s",
                self._name, self._quota_bytes, error,
            )  # fmt: skip
        self.text = str(error)
        self._retry_ms = min(LONGEST_RETRY_MS, 2 * self._retry_ms) or FIRST_RETRY_MS
        return self._retry_ms

    def ended(self, behind_events: int) -> None:
        """It goes on."""
        if self.text is not None:
            logger.info("capture of %s goes on, %d events behind", self._name, behind_events)
        self.text = None
        self._retry_ms = 0

    def is_over_quota(self, behind_bytes: int) -> bool:
        """Whether it is so far behind that retention goes on without it."""
        is_over = behind_bytes > self._quota_bytes
        if is_over and not self._is_over_quota:
            logger.error(
                "capture of %s is %d bytes behind, over its quota of %d: retention removes what was not captured (%s)",
                self._name, behind_bytes, self._quota_bytes, self.text or "no failure",
            )  # fmt: skip
        self._is_over_quota = is_over
        return is_over

    def lost(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Events first to end, exclusive, of each are in no file and never will be."""
        for first, end in ranges:
            self._counters.add("capture.uncaptured_events", end - first)
            logger.error("capture of %s: events %d to %d were not captured", self._name, first, end - 1)
