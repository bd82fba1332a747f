"""A small pool of threads for calls that would stall the loop: syncs of files, cold reads.

Completions come back on the loop in batches: however many calls end while the loop is busy, one wake-up carries them.
An idle thread waits on a raw lock of its own, so that handing over a call costs one release.

Bounds: the pool has a fixed number of threads. Its queue has no bound of its own, because each caller has at most one
call under way (one sync round a log, one read a reader) and those are counted where they are admitted.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)

# 8 to 16: 32 logs synced one after another took 79-134 ms a round, on 8 threads 4-7 ms.
THREADS = 12


@dataclass(frozen=True, slots=True)
class CallResult(Generic[T]):
    """How a call ended; `hubweir.env.Result`."""

    returned: T | None
    raised: BaseException | None

    def value(self) -> T:
        """What the call returned; raises what it raised."""
        if self.raised is not None:
            raise self.raised
        return self.returned  # type: ignore[return-value]  # a call that returned None has T = None


@dataclass(slots=True)
class _Job:
    call: Callable[[], Any]
    on_done: Callable[[CallResult[Any]], None]


class _Worker:
    """One thread, its next job and the lock that it sleeps on."""

    __slots__ = ("job", "thread", "wake")

    def __init__(self) -> None:
        self.job: _Job | None = None
        self.wake = threading.Lock()
        self.wake.acquire()
        self.thread: threading.Thread | None = None


class OffloadPool:
    """Runs calls on threads, and their completions on the loop that made the pool."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int = THREADS) -> None:
        self._loop = loop
        self._limit = threads
        self._mutex = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._idle: list[_Worker] = []
        self._workers: list[_Worker] = []
        self._done: deque[tuple[_Job, CallResult[Any]]] = deque()
        self._drain_is_due = False
        self._closed = False

    def submit(self, call: Callable[[], T], on_done: Callable[[CallResult[T]], None]) -> None:
        """Run `call` on a thread, then `on_done` on the loop. Called on the loop only; RuntimeError after close."""
        if self._closed:
            raise RuntimeError("the pool of this loop is closed; nothing may be offloaded any more")
        job = _Job(call, on_done)
        with self._mutex:
            if self._idle:
                worker = self._idle.pop()
                worker.job = job
                worker.wake.release()
                return
            if len(self._workers) >= self._limit:
                self._waiting.append(job)
                return
        self._start_worker(job)

    def close(self) -> None:
        """Let the threads finish what they have, then end them. Completions that are due still come on the loop."""
        self._closed = True
        with self._mutex:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.wake.release()
        for worker in self._workers:
            if worker.thread is not None:
                worker.thread.join()

    def _start_worker(self, job: _Job) -> None:
        worker = _Worker()
        worker.job = job
        name = f"hubweir-offload-{len(self._workers)}"
        worker.thread = threading.Thread(target=self._run, args=(worker,), name=name, daemon=True)
        self._workers.append(worker)
        worker.thread.start()

    def _run(self, worker: _Worker) -> None:
        job = worker.job
        while job is not None:
            try:
                result: CallResult[Any] = CallResult(job.call(), None)
            except BaseException as error:  # the owner of the call sees it; the thread must live on
                result = CallResult(None, error)
            self._report(job, result)
            job = self._next_job(worker)

    def _next_job(self, worker: _Worker) -> _Job | None:
        """Wait for work; None when the pool closes."""
        with self._mutex:
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                return None
            worker.job = None
            self._idle.append(worker)
        worker.wake.acquire()
        return worker.job

    def _report(self, job: _Job, result: CallResult[Any]) -> None:
        self._done.append((job, result))
        with self._mutex:
            if self._drain_is_due:
                return
            self._drain_is_due = True
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            logger.error("an offloaded call ended after its loop was closed; its completion is lost")

    def _drain(self) -> None:
        with self._mutex:
            self._drain_is_due = False
        while self._done:
            job, result = self._done.popleft()
            try:
                job.on_done(result)
            except Exception:
                # The last resort: who may leave something waiting contains its own faults (messaging_store/steps.py).
                logger.exception("a completion failed; its owner is in an unknown state")
