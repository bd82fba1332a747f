"""The monotonic clocks of a process, in milliseconds: drivers and Env must agree on them."""

from __future__ import annotations

import time


def monotonic_ms() -> int:
    """Milliseconds of a clock that never runs back; the same count that `SystemEnv.monotonic_ms` gives."""
    return time.monotonic_ns() // 1_000_000


def boottime_ms() -> int:
    """The same, but it goes on while the machine sleeps, where the system has such a clock (Linux has)."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    return monotonic_ms()
