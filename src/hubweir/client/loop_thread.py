"""An event loop on a thread of its own, for callers who have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from hubweir.errors import ILLEGAL_STATE, ServiceError

T = TypeVar("T")

# Steps that are cancelled and do not end are left alone after this.
_END_S = 5.0


class LoopThread:
    """Runs coroutines for other threads. The thread is a daemon: a program that forgets `close` still ends."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._mutex = threading.Lock()  # no step begins behind the end of the loop: nobody would answer it
        self._is_ending = False
        self._under_way: dict[Future[Any], None] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Do step on the loop and wait for its result. What interrupts the wait cancels the step.

        ServiceError ILLEGAL_STATE after close, and on the loop's own thread, where waiting would stop the loop.
        """
        return wait(self.begin(step))

    def begin(self, step: Coroutine[Any, Any, T]) -> Future[T]:
        """Do step on the loop; steps begin in the order of these calls. ServiceError ILLEGAL_STATE as above."""
        with self._mutex:
            refusal = None
            if self._is_ending:
                refusal = "this client is closed: make another one"
            elif threading.current_thread() is self._thread:
                refusal = "this would block the client's own loop: call it from another thread"
            if refusal is not None:
                step.close()
                raise ServiceError(ILLEGAL_STATE, refusal)
            future = asyncio.run_coroutine_threadsafe(step, self._loop)
            self._under_way[future] = None
        future.add_done_callback(self._ended)
        return future

    def close(self) -> None:
        """End the loop and the thread. Safe to call twice.

        What still runs on the loop is cancelled: who waits for it in another thread gets ServiceError ILLEGAL_STATE.
        """
        with self._mutex:
            if not self._is_ending:
                self._is_ending = True
                asyncio.run_coroutine_threadsafe(_end(self._loop), self._loop)
        self._thread.join()
        for future in list(self._under_way):  # of steps that did not end: whoever waits need not
            future.cancel()
        self._loop.close()

    def _ended(self, future: Future[Any]) -> None:
        self._under_way.pop(future, None)


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_END_S)
    loop.stop()


def wait(future: Future[T]) -> T:
    """The result; the step is cancelled when the wait is interrupted, such as by Ctrl-C.

    ServiceError ILLEGAL_STATE when the client was closed, or the step cancelled, while this waited.
    """
    try:
        return future.result()
    except CancelledError:
        raise ServiceError(ILLEGAL_STATE, "this client was closed while a call waited: make another one") from None
    except BaseException:
        future.cancel()
        raise
