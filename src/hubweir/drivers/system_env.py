"""The real Env: the clock of the machine, its randomness, files handed in, a running loop and pools of threads.

A test may set the clock forward (service_clock.py); until then it shows the machine's time.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from copy import copy
from typing import TypeVar

from hubweir.drivers.loop_turn import LoopTurn
from hubweir.drivers.monotonic import boottime_ns
from hubweir.drivers.offload_pool import OTHER_THREADS, THREADS, Completions, OffloadPool
from hubweir.drivers.service_clock import ServiceClock
from hubweir.drivers.system_time import SystemTime
from hubweir.env import Ahead, Files, Lane, Result

T = TypeVar("T")


def _no_fault(point: str) -> None:
    """Nothing is planted in production."""


class SystemEnv:
    """`hubweir.env.Env` on the asyncio or uvloop loop that runs now. One object a process and loop."""

    def __init__(
        self,
        files: Files,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        threads: int = THREADS,
        on_fault_point: Callable[[str], None] = _no_fault,
    ) -> None:
        """files: rooted where the owner keeps its data. Without a loop it must be made inside a running one.

        threads: for writes, and as many for reads.
        """
        self._files = files
        self._loop = loop or asyncio.get_running_loop()
        self.loop_turn = LoopTurn(self._loop)
        self.at_turn_end = self.loop_turn.at_end
        self.ahead = Ahead()
        self.clock = ServiceClock(self._loop, self.ahead)
        self.call_later = self.clock.call_later
        self.machine = SystemTime(self._loop)
        self._completions = Completions(self.loop_turn)
        self._begin_threads(threads, "")
        self._on_fault_point = on_fault_point

    def beside(self, files: Files, *, threads: int, name: str) -> SystemEnv:
        """The same Env with other files, and threads of its own: for a disk that must hold up nobody but its own.

        name: of what it is for, in the names of its threads. Who asks closes it.
        """
        made = copy(self)
        made._files = files
        made._begin_threads(threads, f"{name}-")
        return made

    def _begin_threads(self, threads: int, prefix: str) -> None:
        self._pools = {
            lane: OffloadPool(self._completions, threads=OTHER_THREADS.get(lane, threads), name=prefix + lane.value)
            for lane in Lane
        }

    @property
    def files(self) -> Files:
        return self._files

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead.clock_ms

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self.ahead.clock_ms

    def boottime_ms(self) -> int:
        return boottime_ns() // 1_000_000 + self.ahead.clock_ms

    monotonic_s = staticmethod(time.monotonic)

    def random_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

    def new_id(self) -> str:
        return secrets.token_hex(16)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def offload(self, lane: Lane, call: Callable[[], T], on_done: Callable[[Result[T]], None]) -> None:
        self._pools[lane].submit(call, on_done)

    def fault(self, point: str) -> None:
        self._on_fault_point(point)

    def close(self) -> None:
        """End the threads; blocks until the calls under way are done. The loop must still run for completions."""
        for pool in self._pools.values():
            pool.close()
