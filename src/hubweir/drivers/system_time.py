"""Time of the machine on one loop, whatever the service's clock shows (env.MachineTime)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from hubweir.drivers.monotonic import monotonic_ms
from hubweir.env import Timer


class SystemTime:
    """Of one loop, on which it is used."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    monotonic_ms = staticmethod(monotonic_ms)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(max(0, delay_ms) / 1000, callback)
