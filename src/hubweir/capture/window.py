"""A window of capture ends after its interval or at its size, whichever comes first. Time is passed in.

Durations are of the monotonic clock, so a jump of the wall clock neither ends a window nor keeps it open. Sizes are
bytes as the log counts them (offsets), so a window's size is known without reading its events.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """One window. opened_ms: monotonic. first_offset: the log's offset at its start."""

    opened_ms: int
    interval_ms: int
    first_offset: int
    size_bytes: int

    def wait_ms(self, now_ms: int) -> int:
        """How long until its time is over; 0 when it is. now_ms: monotonic."""
        return max(0, self.opened_ms + self.interval_ms - now_ms)

    def size_end(self, next_offset: int) -> int | None:
        """The offset at which it is full, when the log has come that far; None when it has not."""
        end = self.first_offset + self.size_bytes
        return end if next_offset >= end else None

    def next_opened_ms(self, now_ms: int) -> int:
        """When the window behind this one starts: where this one ended, or now if that is a whole interval ago.

        So windows keep their rhythm though timers come late, and a time away makes one window, not many.
        """
        ended_ms = self.opened_ms + self.interval_ms
        return ended_ms if ended_ms <= now_ms < ended_ms + self.interval_ms else now_ms
