"""Wall time for token checks that never runs back: a clock set back must not bring expired tokens to life (rule R20).

After a wrong jump ahead tokens fail closed until the clock catches up, or the process starts anew.
"""

from __future__ import annotations


class HighWaterTime:
    """The latest wall time seen by this process, milliseconds since 1970."""

    def __init__(self) -> None:
        self._latest_ms = 0

    def observe(self, now_ms: int) -> int:
        """Take the wall clock's time; return the time to check tokens against."""
        self._latest_ms = max(self._latest_ms, now_ms)
        return self._latest_ms
