"""Signals that have a process of a service stop: one that starts gives its start up, one that runs ends in order.

Whoever gives up a start stops what that had started, as after one that failed (whole_start.py), in the time that any
stop has. What stops already is not given up: a further signal changes nothing.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from hubweir.service.bounded_stop import StopLimit

S = TypeVar("S")


class StopSignal:
    """See the module's text. Made on a running loop, which has its handlers from then on."""

    def __init__(
        self, numbers: Iterable[signal.Signals], limit: StopLimit, on_told: Callable[[], None] = lambda: None
    ) -> None:
        """limit: of the process. on_told: called once, at the first signal."""
        self._limit = limit
        self._on_told = on_told
        self._told = asyncio.Event()
        self._starting: asyncio.Task[Any] | None = None
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, self._tell)

    async def started(self, start: Awaitable[S]) -> S | None:
        """What the start made. None: it was given up, and all that it had started has stopped."""
        task = self._starting = asyncio.current_task()
        try:
            return await start
        except asyncio.CancelledError:
            if task is None or not self._told.is_set():
                raise
            task.uncancel()
            return None
        finally:
            self._starting = None

    async def wait(self) -> None:
        """Returns when the process is to stop."""
        await self._told.wait()

    def _tell(self) -> None:
        if self._told.is_set():
            return
        self._told.set()
        self._on_told()
        if self._starting is not None and not self._limit.has_begun:
            self._starting.cancel()
