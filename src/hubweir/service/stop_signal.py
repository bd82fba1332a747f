"""Signals that have a process of a service stop: one that starts gives its start up, one that runs ends in order.

Whoever gives up a start stops what that had started, as after one that failed (whole_start.py), in the time that any
stop has. What stops already is not given up: a further signal changes nothing.

A start opens catalogs, and the store of a service that has one, on the loop's own thread. Where a disk hangs then, the
loop hears nothing, and a thread whose system call hangs runs no handler. So during a start the signals are kept from
all threads but one, which tells the loop of them, and ends the process where that hears nothing in time.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Collection
from types import TracebackType
from typing import Any, TypeVar

from hubweir.service.bounded_stop import StopLimit

S = TypeVar("S")


class StopSignal:
    """See the module's text. Made on a running loop, which has its handlers from then on."""

    def __init__(
        self, numbers: Collection[signal.Signals], limit: StopLimit, on_told: Callable[[], None] = lambda: None
    ) -> None:
        """limit: of the process. on_told: called once, at the first signal."""
        self._numbers = numbers
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
            with _SignalThread(self._numbers, self._limit, self._tell):
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


class _SignalThread:
    """A context manager on a loop: in it a thread hears the signals, and the loop is told of them.

    Programs that are started in it hear none of them before they want to (hear_signals).
    """

    def __init__(self, numbers: Collection[signal.Signals], limit: StopLimit, tell: Callable[[], None]) -> None:
        self._numbers = {*numbers, _OVER}
        self._limit = limit
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._is_heard = threading.Event()
        self._is_over = False
        self._ending = threading.Lock()  # the thread ends behind the signal that is sent to it
        self._thread = threading.Thread(target=self._hear, name="hubweir-signals", daemon=True)

    def __enter__(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, self._numbers)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_heard.set()  # the loop goes on from here
        with self._ending:
            self._is_over = True
            if self._thread.ident is not None and self._thread.is_alive():
                signal.pthread_kill(self._thread.ident, _OVER)
        self._thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _hear(self) -> None:
        while True:
            if signal.sigwait(self._numbers) != _OVER:
                self._loop.call_soon_threadsafe(self._heard)
                self._limit.wait_for_loop(self._is_heard)
                continue
            with self._ending:
                if self._is_over:
                    return

    def _heard(self) -> None:
        self._is_heard.set()
        self._tell()


def hear_signals() -> None:
    """Hear those that whoever started this process kept from itself at that moment."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT, _OVER})


# Wakes the thread when it is to end. Others may send it to the process: the thread takes it, too, and goes on.
_OVER = signal.SIGUSR1
