"""An event loop on a thread of its own, for callers who have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from hubweir.errors import ILLEGAL_STATE, ServiceError

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads. The thread is a daemon: a program that forgets `close` still ends."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Do step on the loop and wait for its result. What interrupts the wait cancels the step.

        ServiceError ILLEGAL_STATE after close, and on the loop's own thread, where waiting would stop the loop.
        """
        return wait(self.begin(step))

    def begin(self, step: Coroutine[Any, Any, T]) -> Future[T]:
        """Do step on the loop; steps begin in the order of these calls. ServiceError ILLEGAL_STATE as above."""
        refusal = None
        if self._loop.is_closed():
            refusal = "this client is closed: make another one"
        elif threading.current_thread() is self._thread:
            refusal = "this would block the client's own loop: call it from another thread"
        if refusal is not None:
            step.close()
            raise ServiceError(ILLEGAL_STATE, refusal)
        return asyncio.run_coroutine_threadsafe(step, self._loop)

    def close(self) -> None:
        """End the loop and the thread. Safe to call twice. What still runs on the loop is dropped."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def wait(future: Future[T]) -> T:
    """The result; the step is cancelled when the wait is interrupted, such as by Ctrl-C."""
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
