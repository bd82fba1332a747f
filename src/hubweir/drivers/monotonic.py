"""The monotonic clocks of a process: drivers and Env must agree on them."""

from __future__ import annotations

import time
from functools import partial

# Of the clock that goes on while the machine sleeps, where the system has such a clock (Linux has).
_HAS_BOOTTIME = hasattr(time, "CLOCK_BOOTTIME")
boottime_ns = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if _HAS_BOOTTIME else time.monotonic_ns


def monotonic_ms() -> int:
    """Milliseconds of a clock that never runs back; the same count that `SystemEnv.machine.monotonic_ms` gives."""
    return time.monotonic_ns() // 1_000_000
