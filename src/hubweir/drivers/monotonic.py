"""The one monotonic clock of a process, in milliseconds: drivers and Env must agree on it."""

from __future__ import annotations

import time


def monotonic_ms() -> int:
    """Milliseconds of a clock that never runs back; the same count that `SystemEnv.monotonic_ms` gives."""
    return time.monotonic_ns() // 1_000_000
